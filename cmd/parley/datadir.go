package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-hub/parley/dialect/agh/keyring"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/folder"
)

// expandHome replaces a leading ~ by the home folder, which shells do not after an
// equals sign, and configuration files never.
func expandHome(file string, environ []string) (string, error) {
	rest, found := strings.CutPrefix(file, "~")
	if !found || rest != "" && !os.IsPathSeparator(rest[0]) {
		return file, nil
	}
	home := lookup(environ, "HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("%s: the home folder for ~ is unknown: %w; write the full path", file, err)
		}
	}
	return filepath.Join(home, rest), nil
}

// mustExist refuses a data folder that was named and does not exist.
func mustExist(dir string) error {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the data folder %s does not exist; start a hub on it with parley serve --data %s, or name another with --data or --hub URL", dir, shellWord(dir))
	}
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	return nil
}

// ofNode reports whether a folder belongs to a cluster's node.
func ofNode(dir string) bool {
	_, err := os.Stat(cluster.Folder(disk.Options{}, dir, 0))
	return err == nil
}

// checkAlone refuses the folder of a cluster's node: a separate store in it would be
// unknown to all nodes.
func checkAlone(dir string) error {
	if !ofNode(dir) {
		return nil
	}
	return fmt.Errorf("%s is the data folder of a cluster's node; start it with parley serve --cluster URL --node-name NAME, and ask the node that serves with --hub URL; parley cluster operator-key makes an operator's key while all nodes are stopped", dir)
}

// checkNode refuses the folder of a single hub, whose data a node would not see.
func checkNode(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "FORMAT")); err != nil || ofNode(dir) {
		return nil
	}
	return fmt.Errorf("%s is the data folder of a hub that was alone; choose another with --data, or begin the cluster with its data: parley backup DIR, and parley cluster init --from DIR --data NEW", dir)
}

// checkOneStore refuses the folder of a cluster's node for commands about one store.
func checkOneStore(dir string) error {
	if !ofNode(dir) {
		return nil
	}
	return fmt.Errorf("%s is the data folder of a cluster's node, with a copy of each shard; name one of them, such as %s", dir, cluster.Folder(disk.Options{}, dir, 0))
}

// ourFiles are names that show that a folder is a hub's. Keys of AGH's trust profile
// may exist before a hub ever ran; the root of a file system has lost+found.
var ourFiles = []string{"FORMAT", "UNFINISHED", "store", folder.LockFile, access.KeysFile, keyring.Folder, "cluster"}

// checkOurs refuses a folder that is not empty and has no file of a hub. It
// accepts a folder that cannot be read: opening it reports the error.
func checkOurs(dir string) error {
	ours, other := lookInto(dir)
	if ours || other == "" {
		return nil
	}
	return fmt.Errorf("%s is not a data folder, and it is not empty: it holds %q; choose another with --data, or, with parley serve, add --force-init to make it one", dir, other)
}

// mustBeOurs refuses a folder that no hub has used, for commands that only read and
// would otherwise create a store in it.
func mustBeOurs(dir string) error {
	if err := mustExist(dir); err != nil {
		return err
	}
	if _, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	if ours, _ := lookInto(dir); !ours {
		return fmt.Errorf("%s is not a data folder: no hub has used it; name another with --data, or a hub with --hub URL", dir)
	}
	return nil
}

// lookInto reports whether a folder has a file of a hub, and the name of one that is
// not a hub's.
func lookInto(dir string) (ours bool, other string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, ""
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case slices.Contains(ourFiles, name):
			return true, other
		case name != "lost+found" && other == "":
			other = name
		}
	}
	return false, other
}
