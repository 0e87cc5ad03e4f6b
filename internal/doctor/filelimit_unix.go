//go:build unix

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// wantedFiles is enough for a few thousand connections and the store.
const wantedFiles = 8192

func fileLimit() Finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Finding{"file limit", Warning, err.Error(), "find out why the limit cannot be read"}
	}
	found := fmt.Sprintf("%d open files, %d at most", limit.Cur, limit.Max)
	if limit.Max < wantedFiles {
		return Finding{"file limit", Warning, found, fmt.Sprintf("raise it to %d or more (ulimit -n, LimitNOFILE=): each connection is one", wantedFiles)}
	}
	return Finding{"file limit", Fine, found, ""}
}
