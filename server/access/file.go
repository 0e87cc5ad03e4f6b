package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeysFile is the file of the data folder in which earlier versions stored the
// keys. It is imported once.
const KeysFile = "keys.json"

// formatVersion of the file only goes up. Version 1 had no agents.
const formatVersion = 2

// maxKeysFile bounds what is read: the most keys, generously counted.
const maxKeysFile = maxKeys * 2048

type document struct {
	Version int      `json:"version"`
	Keys    []stored `json:"keys"`
	// Agents are the names that a key was ever made for.
	Agents []string `json:"agents"`
}

// readFile reads the keys that versions before this one kept beside the store; ok
// is false where there is no such file.
func readFile(dir string) (doc document, ok bool, err error) {
	file := filepath.Join(dir, KeysFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return doc, false, nil
	}
	if err != nil {
		return doc, false, fmt.Errorf("access keys: %w", err)
	}
	if info.Size() > maxKeysFile {
		return doc, false, fmt.Errorf("access keys: %s has %d bytes; the limit is %d", file, info.Size(), maxKeysFile)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return doc, false, fmt.Errorf("access keys: %w", err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return doc, false, fmt.Errorf("access keys: %s is damaged (%w); put a backup of it in place, or remove it and make new keys", file, err)
	}
	if doc.Version < 1 || doc.Version > formatVersion {
		return doc, false, fmt.Errorf("access keys: %s has format %d; this parley reads formats 1 to %d", file, doc.Version, formatVersion)
	}
	return doc, true, nil
}

// retireFile renames a file whose keys are in the store: they may be revoked
// there, and must not be imported again.
func retireFile(dir string) error {
	file := filepath.Join(dir, KeysFile)
	if err := os.Rename(file, file+".imported"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("access keys: %s is imported and cannot be renamed: %w", file, err)
	}
	return nil
}
