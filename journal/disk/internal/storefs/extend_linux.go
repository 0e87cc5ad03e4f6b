package storefs

import (
	"golang.org/x/sys/unix"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// extend writes zeros after the end of a file, a page at a time. Preallocated space
// would be cheaper to get but slower to use: the first write to it is one more
// metadata change for a sync to write. The zeros are not written in one large piece,
// because the kernel would keep them in one large piece of memory, all of which a
// sync of a few bytes would then have to go through.
func extend(f vfs.File, from int64, zeros []byte) error {
	const page = 4 << 10
	for at := 0; at < len(zeros); at += page {
		if _, err := unix.Pwrite(int(f.Fd()), zeros[at:at+page], from+int64(at)); err != nil {
			return err
		}
	}
	return nil
}
