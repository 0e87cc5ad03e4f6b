package folder

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is far after the note: Windows also refuses reads of a locked
// range, and the note must stay readable.
const lockedByte = 1 << 30

// lock takes the file without waiting. errLocked means that another process
// has it.
func lock(file *os.File, shared bool) error {
	var flags uint32 = windows.LOCKFILE_FAIL_IMMEDIATELY
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}
