//go:build fuse

package lossyfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-hub/parley/internal/lossyfs"
)

func mount(t *testing.T) (dir string, cut func() int) {
	t.Helper()
	dir = t.TempDir()
	f, err := lossyfs.Mount(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	top := filepath.Join(dir, "machine")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	return top, func() int { return f.CutPower(rng, "machine") }
}

func open(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s has %q, want %q, error %v", filepath.Base(path), got, want, err)
	}
}

func TestWhatIsSyncedIsKept(t *testing.T) {
	t.Parallel()
	dir, cut := mount(t)
	synced, direct := filepath.Join(dir, "synced"), filepath.Join(dir, "direct")
	f := open(t, synced, os.O_CREATE|os.O_RDWR)
	write(t, f, "kept")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, f, " lost")
	if _, err := f.WriteAt([]byte("K"), 0); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, direct, os.O_CREATE|os.O_WRONLY|os.O_SYNC), "each write")
	has(t, synced, "Kept lost")
	if lost := cut(); lost != len(" lost")+1 {
		t.Errorf("%d bytes were lost", lost)
	}
	has(t, synced, "kept")
	has(t, direct, "each write")
	if _, err := f.WriteString("late"); err == nil {
		t.Error("a file that was open before the loss of power is written")
	}
}

func TestWhatIsCutAndGrowsAgain(t *testing.T) {
	t.Parallel()
	dir, cut := mount(t)
	path := filepath.Join(dir, "file")
	f := open(t, path, os.O_CREATE|os.O_RDWR)
	write(t, f, "0123456789")
	if err := errors.Join(f.Sync(), f.Truncate(4), f.Truncate(6)); err != nil {
		t.Fatal(err)
	}
	has(t, path, "0123\x00\x00")
	cut()
	has(t, path, "0123456789")
	f = open(t, path, os.O_RDWR)
	if err := errors.Join(f.Truncate(4), f.Truncate(6), f.Sync()); err != nil {
		t.Fatal(err)
	}
	cut()
	has(t, path, "0123\x00\x00")
}

func TestNamesAreKept(t *testing.T) {
	t.Parallel()
	dir, cut := mount(t)
	f := open(t, filepath.Join(dir, "new"), os.O_CREATE|os.O_RDWR)
	write(t, f, "new")
	write(t, open(t, filepath.Join(dir, "old"), os.O_CREATE|os.O_WRONLY|os.O_SYNC), "old")
	if err := errors.Join(f.Sync(), os.Rename(f.Name(), filepath.Join(dir, "old")), os.MkdirAll(filepath.Join(dir, "a/b"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err == nil {
		t.Error("a folder with something in it was removed")
	}
	write(t, open(t, filepath.Join(dir, "mark"), os.O_CREATE|os.O_WRONLY), "lost")
	if err := open(t, dir, os.O_RDONLY).Sync(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		cut()
		has(t, filepath.Join(dir, "mark"), "")
	}
	has(t, filepath.Join(dir, "old"), "new")
	if _, err := os.Stat(filepath.Join(dir, "a/b")); err != nil {
		t.Error(err)
	}
}

func TestAFileThatWasNeverSynced(t *testing.T) {
	t.Parallel()
	dir, cut := mount(t)
	var gone, empty int
	for i := range 20 {
		path := filepath.Join(dir, string(rune('a'+i)))
		write(t, open(t, path, os.O_CREATE|os.O_WRONLY), "lost")
		cut()
		switch got, err := os.ReadFile(path); {
		case errors.Is(err, fs.ErrNotExist):
			gone++
		case err == nil && len(got) == 0:
			empty++
		default:
			t.Errorf("it has %q, error %v", got, err)
		}
	}
	if gone == 0 || empty == 0 {
		t.Errorf("%d are gone, %d empty", gone, empty)
	}
}

func TestAFileLargerThanOneRequest(t *testing.T) {
	t.Parallel()
	dir, cut := mount(t)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	f := open(t, filepath.Join(dir, "large"), os.O_CREATE|os.O_RDWR)
	write(t, f, string(want))
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	cut()
	has(t, f.Name(), string(want))
}
