package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parley-hub/parley/fault"
)

// FileLedger keeps what was spent in a file, for one process at a time.
type FileLedger string

// Load reads the file; one that does not exist has nothing spent.
func (f FileLedger) Load(context.Context) (Spent, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Spent{}, nil
	}
	if err != nil {
		return Spent{}, err
	}
	var s Spent
	if err := json.Unmarshal(raw, &s); err != nil || s.Version < 1 || s.Tokens < 0 || s.Money < 0 || s.Turns < 0 {
		return Spent{}, fault.New(fault.Invalid, "%s is not what a budget has spent; remove it to begin with nothing spent", string(f))
	}
	return s, nil
}

// Save replaces the file, whole or not at all.
func (f FileLedger) Save(_ context.Context, s Spent) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(append(raw, '\n'))
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), string(f))
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}
