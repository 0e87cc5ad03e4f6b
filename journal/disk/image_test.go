package disk_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// image is a folder's files by path. Tests damage copies of it.
type image map[string][]byte

// takeImage reads a folder. A file that an open engine removes meanwhile is left
// out.
func takeImage(t testing.TB, fs vfs.FS, dir string) image {
	t.Helper()
	img := image{}
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, name := range names {
		file := path.Join(dir, name)
		info, err := fs.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			maps.Copy(img, takeImage(t, fs, file))
			continue
		}
		f, err := fs.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		img[file] = data
	}
	return img
}

// mount makes a file system in memory from the image, all of it synced.
func (img image) mount(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	dirs := map[string]bool{}
	for file, data := range img {
		if err := fs.MkdirAll(path.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create(file, "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Clone(data)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for dir := path.Dir(file); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		d, err := fs.OpenDir(dir)
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// with returns a copy in which one file has other contents.
func (img image) with(file string, data []byte) image {
	other := maps.Clone(img)
	other[file] = data
	return other
}

func (img image) paths() []string { return slices.Sorted(maps.Keys(img)) }
