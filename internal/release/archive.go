package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is one file of an archive.
type entry struct {
	name string // in the archive
	file string // on disk
	mode fs.FileMode
}

// archive puts a system's binary, the licence, the completions and the man pages
// into one file: a zip for Windows, a tar.gz for the others.
func (r *release) archive(binary, name string) error {
	windows := strings.HasSuffix(binary, ".exe")
	command := "parley"
	if windows {
		command += ".exe"
	}
	entries := []entry{
		{command, binary, 0o755},
		{"LICENSE", "LICENSE", 0o644},
		{"README.md", "README.md", 0o644},
	}
	err := filepath.WalkDir(r.extras, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(r.extras, file)
		entries = append(entries, entry{filepath.ToSlash(inside), file, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	if windows {
		return r.zip(entries, name)
	}
	return r.tarGz(entries, name)
}

func (r *release) tarGz(entries []entry, name string) error {
	return create(filepath.Join(r.out, name+".tar.gz"), func(w io.Writer) error {
		compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		to := tar.NewWriter(compressed)
		for _, e := range entries {
			info, err := os.Stat(e.file)
			if err != nil {
				return err
			}
			header := &tar.Header{
				Typeflag: tar.TypeReg, Name: path.Join(name, e.name), Size: info.Size(),
				Mode: int64(e.mode), ModTime: r.at, Format: tar.FormatUSTAR,
			}
			if err := to.WriteHeader(header); err != nil {
				return err
			}
			if err := copyFile(to, e.file); err != nil {
				return err
			}
		}
		if err := to.Close(); err != nil {
			return err
		}
		return compressed.Close()
	})
}

func (r *release) zip(entries []entry, name string) error {
	return create(filepath.Join(r.out, name+".zip"), func(w io.Writer) error {
		to := zip.NewWriter(w)
		for _, e := range entries {
			header := &zip.FileHeader{Name: path.Join(name, e.name), Method: zip.Deflate, Modified: r.at}
			header.SetMode(e.mode)
			file, err := to.CreateHeader(header)
			if err != nil {
				return err
			}
			if err := copyFile(file, e.file); err != nil {
				return err
			}
		}
		return to.Close()
	})
}

func copyFile(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// create makes a file from what write writes.
func create(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}
