package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

const (
	LockFile = "LOCK"
	pidFile  = "PID" // apart from LOCK, because closing any handle of a locked file unlocks it
)

// InUseError is the error for a folder that another process has open.
type InUseError struct {
	Dir string
	PID string // "" if it is not known
}

func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID != "" {
		holder = "process " + e.PID
	}
	return fmt.Sprintf("data folder %s is in use by %s", e.Dir, holder)
}

// Lock locks the data dir for this process.
func Lock(fs vfs.FS, dir string) (io.Closer, error) {
	if err := poisoned(fs, dir); err != nil {
		return nil, err
	}
	lock, err := fs.Lock(fs.PathJoin(dir, LockFile))
	if err != nil {
		if os.IsPermission(err) || os.IsNotExist(err) {
			return nil, err
		}
		return nil, inUse(fs, dir)
	}
	f, err := fs.Create(fs.PathJoin(dir, pidFile), "journal-guard")
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// inUse returns an InUseError with the process that has a data dir open. A process
// that opens the data dir writes PID; one that only reads it does not.
func inUse(fs vfs.FS, dir string) error {
	text, err := storefs.ReadFile(fs, fs.PathJoin(dir, pidFile))
	pid, atoiErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || atoiErr != nil {
		return &InUseError{Dir: dir}
	}
	if p, err := os.FindProcess(pid); err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return &InUseError{Dir: dir}
	}
	return &InUseError{Dir: dir, PID: strconv.Itoa(pid)}
}

// poisonedDirs are the folders whose engine failed in this process.
var poisonedDirs sync.Map

type place struct {
	fs  vfs.FS
	dir string
}

func placeOf(fs vfs.FS, dir string) place {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return place{fs, dir}
}

// Poison records that the engine of a folder failed: reopening the folder in the same
// process would trust pages that the kernel may have discarded.
func Poison(fs vfs.FS, dir string, cause error) { poisonedDirs.LoadOrStore(placeOf(fs, dir), cause) }

func poisoned(fs vfs.FS, dir string) error {
	if cause, ok := poisonedDirs.Load(placeOf(fs, dir)); ok {
		return fmt.Errorf("data folder %s failed in this process; restart the process to open it: %w: %w",
			dir, journal.ErrFailed, cause.(error))
	}
	return nil
}
