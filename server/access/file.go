package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-hub/parley/fault"
)

// KeysFile is the file's name in the data folder.
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

// OpenKeys reads the keys of a data folder; a folder without any has none.
// Only one process at a time may change them: whoever holds the folder.
func OpenKeys(dir string) (*Keys, error) {
	k := &Keys{file: filepath.Join(dir, KeysFile), now: time.Now}
	info, err := os.Stat(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("access keys: %w", err)
	}
	if info.Size() > maxKeysFile {
		return nil, fmt.Errorf("access keys: %s has %d bytes; the limit is %d", k.file, info.Size(), maxKeysFile)
	}
	raw, err := os.ReadFile(k.file)
	if err != nil {
		return nil, fmt.Errorf("access keys: %w", err)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("access keys: %s is damaged (%w); put a backup of it in place, or remove it and make new keys", k.file, err)
	}
	if doc.Version < 1 || doc.Version > formatVersion {
		return nil, fmt.Errorf("access keys: %s has format %d; this parley reads formats 1 to %d", k.file, doc.Version, formatVersion)
	}
	k.adopt(doc.Keys, agentsOf(doc.Keys, doc.Agents))
	return k, nil
}

// agentsOf are the agents of keys, and those known already.
func agentsOf(keys []stored, known []string) map[string]bool {
	agents := make(map[string]bool, len(known))
	for _, name := range known {
		agents[name] = true
	}
	for _, entry := range keys {
		if entry.Role == Agent {
			agents[entry.Agent] = true
		}
	}
	return agents
}

func (k *Keys) adopt(list []stored, agents map[string]bool) {
	k.claimed = true
	k.list, k.agents = list, agents
	k.byID = make(map[string]stored, len(list))
	for _, entry := range list {
		k.byID[entry.ID] = entry
	}
}

// replace makes list durable, and only then the list in force.
func (k *Keys) replace(list []stored) error {
	agents := agentsOf(list, slices.Collect(maps.Keys(k.agents)))
	if len(agents) > maxKeys {
		return fault.New(fault.TooLarge, "keys were made for %d agents, as many as can be", maxKeys)
	}
	raw, err := json.MarshalIndent(document{formatVersion, list, slices.Sorted(maps.Keys(agents))}, "", " ")
	if err != nil {
		return fmt.Errorf("access keys: %w", err)
	}
	if err := writeFile(k.file, append(raw, '\n')); err != nil {
		return fmt.Errorf("access keys: %w", err)
	}
	k.adopt(list, agents)
	return nil
}

// writeFile replaces a file in one step that survives a power loss.
func writeFile(name string, data []byte) (err error) {
	dir := filepath.Dir(name)
	temp, err := os.CreateTemp(dir, filepath.Base(name)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
