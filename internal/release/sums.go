package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// sum writes SHA256SUMS, as sha256sum --check reads it.
func (r *release) sum() error {
	files, err := os.ReadDir(r.out) // by name
	if err != nil {
		return err
	}
	return create(filepath.Join(r.out, "SHA256SUMS"), func(w io.Writer) error {
		for _, file := range files {
			h := sha256.New()
			if err := copyFile(h, filepath.Join(r.out, file.Name())); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%x  %s\n", h.Sum(nil), file.Name()); err != nil {
				return err
			}
		}
		return nil
	})
}
