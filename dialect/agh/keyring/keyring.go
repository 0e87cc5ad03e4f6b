// Package keyring keeps the Ed25519 keys of AGH's trust profile in the data
// folder, each in a file that only its owner may read. It never sends a key
// anywhere and never prints one.
package keyring

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

const (
	// Folder is where keys lie in the data folder.
	Folder = "agh-keys"
	// MaxKeys is how many keys a ring takes.
	MaxKeys = 1000

	suffix  = ".json"
	maxFile = 4096
)

// Info is what may be told of a key.
type Info struct {
	Profile string `json:"profile"`
	Handle  string `json:"handle"`
	KeyID   string `json:"key_id"`
	PubKey  string `json:"pubkey"`
	File    string `json:"file,omitempty"`
}

// Of tells of a key.
func Of(key *wire.Key, file string) Info {
	return Info{Profile: wire.Profile, Handle: key.Handle(), KeyID: key.KeyID(), PubKey: key.Public(), File: file}
}

// Ring is the keys of a data folder. Its methods may be called at any time,
// also while a hub runs.
type Ring struct{ dir string }

// At returns the ring of a data folder, which need not exist.
func At(data string) *Ring { return &Ring{filepath.Join(data, Folder)} }

// New makes a key for a nickname and keeps it.
func (r *Ring) New(nickname string) (Info, error) {
	handles, err := r.handles()
	if err != nil {
		return Info{}, err
	}
	if len(handles) >= MaxKeys {
		return Info{}, fault.New(fault.TooLarge, "the data folder has %d keys, which is the limit; remove some from %s", len(handles), r.dir)
	}
	key, err := wire.NewKey(nickname)
	if err != nil {
		return Info{}, err
	}
	text, err := key.Marshal()
	if err != nil {
		return Info{}, err
	}
	file := r.file(key.Handle())
	if err := write(file, text); err != nil {
		return Info{}, fault.Wrap(fault.Unavailable, err, "the key cannot be kept: %v", err)
	}
	return Of(key, file), nil
}

// write makes a file that only its owner may read, durable and whole, or not
// at all.
func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // readable by its owner only
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(file))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// List tells of every key, by handle.
func (r *Ring) List() ([]Info, error) {
	handles, err := r.handles()
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(handles))
	for _, handle := range handles {
		key, err := Read(r.file(handle))
		if err != nil {
			return nil, err
		}
		list = append(list, Of(key, r.file(handle)))
	}
	return list, nil
}

// Find returns the key of a handle, or of a nickname that only one key has.
func (r *Ring) Find(name string) (*wire.Key, Info, error) {
	handles, err := r.handles()
	if err != nil {
		return nil, Info{}, err
	}
	found := slices.DeleteFunc(handles, func(handle string) bool {
		nickname, _, _ := strings.Cut(handle, "@")
		return handle != name && nickname != name
	})
	switch len(found) {
	case 0:
		return nil, Info{}, fault.New(fault.NotFound, "there is no key %q in %s", name, r.dir)
	case 1:
		key, err := Read(r.file(found[0]))
		if err != nil {
			return nil, Info{}, err
		}
		return key, Of(key, r.file(found[0])), nil
	}
	return nil, Info{}, fault.New(fault.Conflict, "%d keys have the nickname %q; give the handle: %s", len(found), name, strings.Join(found, ", "))
}

// Read reads a key file. A file that others may read is refused.
func Read(file string) (*wire.Key, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the key cannot be read: %v", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Invalid, "%s holds a private key, and other users can read it; run chmod 600 on it, and make a new key if somebody has read it", file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	key, err := wire.ParseKey(text)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "%s: %v", file, err)
	}
	return key, nil
}

func (r *Ring) file(handle string) string { return filepath.Join(r.dir, handle+suffix) }

func (r *Ring) handles() ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the keys cannot be listed: %v", err)
	}
	var handles []string
	for _, entry := range entries {
		if handle, ok := strings.CutSuffix(entry.Name(), suffix); ok && wire.ValidHandle(handle) {
			handles = append(handles, handle)
		}
	}
	return handles, nil
}
