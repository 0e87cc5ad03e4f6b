package storefs

import (
	"golang.org/x/sys/unix"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// extend writes zeros behind the end of a file, a page at a time. Room that was
// only set aside would be cheaper to get and dearer to use: the first write to
// it is one more change that a sync has to write down. And what is written in
// one large piece is kept in one large piece of memory, all of which a sync of
// a few bytes then has to go through.
func extend(f vfs.File, from int64, zeros []byte) error {
	const page = 4 << 10
	for at := 0; at < len(zeros); at += page {
		if _, err := unix.Pwrite(int(f.Fd()), zeros[at:at+page], from+int64(at)); err != nil {
			return err
		}
	}
	return nil
}
