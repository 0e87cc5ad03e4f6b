package disk

import (
	"golang.org/x/sys/unix"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// extend writes zeros behind the end of a file. Room that was only set aside
// would be cheaper to get and dearer to use: the first write to it is one more
// change that a sync has to write down.
func extend(f vfs.File, from int64, zeros []byte) error {
	_, err := unix.Pwrite(int(f.Fd()), zeros, from)
	return err
}
