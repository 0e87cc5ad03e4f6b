package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// left out of the copy: nothing that a test of a pure package reads.
var left = map[string]bool{"bin": true, "build": true, "interop": true, "node_modules": true, "parley-data": true}

// copyTree copies the module, because gremlins copies everything it finds
// beside go.mod once for each of its workers.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		switch {
		case entry.IsDir() && (left[name] || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir():
			return os.Mkdir(filepath.Join(to, name), 0o750)
		case !entry.Type().IsRegular():
			return nil
		}
		return copyFile(path, filepath.Join(to, name))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
