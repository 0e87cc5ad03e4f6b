// Package folder makes sure that one process at a time uses a data folder, and
// lets others find out which one that is. It never reads what is stored there.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// LockFile is the name of the file that the holder has locked.
const LockFile = "parley.lock"

// maxNote bounds what is read from a lock file.
const maxNote = 4096

// Holder is who uses a folder.
type Holder struct {
	PID int    `json:"pid"`
	URL string `json:"url,omitempty"` // where it serves; empty for a short command
}

// InUseError says that another process uses the folder.
type InUseError struct {
	Dir    string
	Holder Holder
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.Holder.PID > 0 {
		who = "the process with pid " + strconv.Itoa(e.Holder.PID)
	}
	if e.Holder.URL != "" {
		who += ", which serves " + e.Holder.URL
	}
	return fmt.Sprintf("the data folder %s is in use by %s; stop it first, or choose another folder with --data", e.Dir, who)
}

// errLocked is what lock returns when another process has the file.
var errLocked = errors.New("another process has locked the file")

// Folder is a data folder that this process holds.
type Folder struct {
	Dir  string
	file *os.File
}

// Hold makes the folder if it is missing and takes it for this process, or
// returns *InUseError. The system releases it when the process ends, however it
// ends.
func Hold(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s cannot be written: %w", dir, err)
	}
	if err := takeFor(file, glance); err != nil {
		inUse := &InUseError{Dir: dir, Holder: note(file)}
		closed := file.Close()
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("data folder %s: lock: %w", dir, errors.Join(err, closed))
		}
		return nil, inUse
	}
	f := &Folder{Dir: dir, file: file}
	if err := f.Announce(""); err != nil {
		return nil, errors.Join(err, f.Release())
	}
	return f, nil
}

// glance is longer than Look holds the lock of a folder that no other process holds.
const glance = 250 * time.Millisecond

// takeFor tries to take the file for a while, because Look holds the lock only
// briefly.
func takeFor(file *os.File, patience time.Duration) error {
	for late := time.Now().Add(patience); ; time.Sleep(patience / 50) {
		err := lock(file, false)
		if !errors.Is(err, errLocked) || time.Now().After(late) {
			return err
		}
	}
}

// Look returns who uses a folder, without taking it; false means nobody.
func Look(dir string) (Holder, bool, error) {
	file, err := os.Open(filepath.Join(dir, LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, fmt.Errorf("data folder %s: %w", dir, err)
	}
	defer file.Close() // and with it the lock
	err = lock(file, true)
	if errors.Is(err, errLocked) {
		return note(file), true, nil
	}
	if err != nil {
		return Holder{}, false, fmt.Errorf("data folder %s: lock: %w", dir, err)
	}
	return Holder{}, false, nil
}

// note reads who holds the file. If the note is half written, it names nobody.
func note(file *os.File) Holder {
	var holder Holder
	raw, err := io.ReadAll(io.LimitReader(file, maxNote))
	if err == nil {
		_ = json.Unmarshal(raw, &holder)
	}
	return holder
}

// Announce writes the note for others: this process, and where it serves.
func (f *Folder) Announce(url string) error {
	raw, err := json.Marshal(Holder{PID: os.Getpid(), URL: url})
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := f.file.Truncate(0); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if _, err := f.file.WriteAt(append(raw, '\n'), 0); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// Release frees the folder. It empties the note, so that no client is sent to a
// process that has ended.
func (f *Folder) Release() error {
	return errors.Join(f.file.Truncate(0), f.file.Close())
}
