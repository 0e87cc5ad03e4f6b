package disk_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

var update = flag.Bool("update", false, "write the golden folder anew; only for a new format version")

func TestANewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	img, _ := smallStore(t)
	newer := fmt.Sprintf("parley journal format %d\n", disk.FormatVersion+1)
	fs := img.with("/data/FORMAT", []byte(newer)).mount(t)
	_, err := disk.Open("/data", testOptions(fs))
	var format *disk.FormatError
	if !errors.As(err, &format) || format.Has != disk.FormatVersion+1 || format.Know != disk.FormatVersion {
		t.Fatalf("got %v, want a format error", err)
	}
	if want := fmt.Sprintf("use a version that knows format %d", disk.FormatVersion+1); !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
	if _, err := repair.Check("/data", testOptions(fs), nil); !errors.As(err, &format) {
		t.Errorf("a check answers %v", err)
	}
	if _, err := repair.Salvage("/data", "/new", testOptions(fs), nil); !errors.As(err, &format) {
		t.Errorf("a salvage answers %v", err)
	}
}

// TestGoldenFolder opens a folder that version 1 wrote. Every version must open it.
func TestGoldenFolder(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "v1")
	if *update {
		img, _ := smallStore(t)
		for file, data := range img {
			name := filepath.Join(golden, strings.TrimPrefix(file, "/data"))
			if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	fs := goldenImage(t, golden).mount(t)
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	if !e.Recovery().Clean {
		t.Error("the folder was not closed cleanly")
	}
	got, errs := readAll(e)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := contents{
		Logs: map[string][]string{
			"0": {"1@1 record 0 with some text to it", "2@1 second", "3@4 record 3 with some text to it", "4@4 second"},
			"1": {"1@2 record 1 with some text to it", "2@2 second", "3@5 record 4 with some text to it", "4@5 second"},
		},
		Index: []string{"key/0=value", "key/1=value", "key/3=value", "key/4=value"},
		Claims: map[string]string{
			"claim/0": "acme/room-1/history/0 1", "claim/1": "acme/room-1/history/1 1",
			"claim/3": "acme/room-1/history/0 3", "claim/4": "acme/room-1/history/1 3",
		},
		Values: map[string]string{"lazytrue": "cursor@1", "v0false": "4@5", "v1false": "5@6"},
	}
	delete(got.Values, "tickfalse") // its version depends on timing
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the golden folder reads otherwise (-want +got):\n%s", diff)
	}
	commit(t, e, diaryEntry(1, 1))
}

// goldenImage reads a folder of testdata.
func goldenImage(t *testing.T, golden string) image {
	t.Helper()
	img := image{}
	err := filepath.WalkDir(golden, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name) //nolint:gosec // a file of this test
		relative, _ := filepath.Rel(golden, name)
		img["/data/"+filepath.ToSlash(relative)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestAnOlderFormatIsRaised opens a folder that version 1 wrote: it has the new format
// before anything is written that version 1 cannot read, and both kinds of records are
// in the index that is made again from them.
func TestAnOlderFormatIsRaised(t *testing.T) {
	t.Parallel()
	fs := goldenImage(t, filepath.Join("testdata", "v1")).mount(t)
	e := mustOpen(t, fs)
	format := takeImage(t, fs, "/data")["/data/FORMAT"]
	if want := fmt.Sprintf("parley journal format %d\n", disk.FormatVersion); string(format) != want {
		t.Errorf("FORMAT is %q once the folder is open, want %q", format, want)
	}
	line, home := strings.Repeat("line ", 10), strings.Repeat("home ", 10)
	commit(t, e, journal.Batch{Appends: []journal.Append{{Log: layer(7), Records: []journal.Record{{
		Data: []byte(line),
		Put: []journal.IndexPut{
			{Key: []byte("new/1"), Value: []byte(line)},
			{Key: []byte("new/2"), Value: []byte(home)},
			{Key: []byte("new/3"), Value: []byte(home)},
			{Key: []byte("new/4"), Value: []byte("other")},
		},
	}}}}})
	if err := e.RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	if report, err := repair.Check("/data", testOptions(fs), nil); err != nil || len(report.Problems) > 0 {
		t.Errorf("a check finds %v, %v", report.Problems, err)
	}
	e = mustOpen(t, fs)
	defer mustClose(t, e)
	got, errs := readAll(e)
	want := []string{
		"key/0=value", "key/1=value", "key/3=value", "key/4=value",
		"new/1=" + line, "new/2=" + home, "new/3=" + home, "new/4=other",
	}
	if diff := cmp.Diff(want, got.Index); diff != "" || len(errs) > 0 {
		t.Errorf("the index (-want +got):\n%s%v", diff, errs)
	}
}

func TestAFolderIsUsedByOneProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := disk.Open(dir, disk.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = disk.Open(dir, disk.Options{MinFree: -1})
	var inUse *disk.InUseError
	if !errors.As(err, &inUse) || inUse.PID != fmt.Sprint(os.Getpid()) || inUse.Dir != dir {
		t.Errorf("the second open is answered with %v", err)
	}
	if _, err := repair.Check(dir, disk.Options{}, nil); !errors.As(err, &inUse) {
		t.Errorf("a check of an open folder is answered with %v", err)
	}
	mustClose(t, e)
	e, err = disk.Open(dir, disk.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
}

// TestAFolderThatLostSomething: a folder without one of its files is refused, and the
// error names the file.
func TestAFolderThatLostSomething(t *testing.T) {
	t.Parallel()
	img, _ := smallStore(t)
	for _, name := range []string{"FORMAT", "MARK"} {
		less := img.with("/data/"+name, nil)
		delete(less, "/data/"+name)
		if _, err := disk.Open("/data", testOptions(less.mount(t))); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	onlyGuards := image{"/data/FORMAT": img["/data/FORMAT"], "/data/MARK": img["/data/MARK"]}
	if _, err := disk.Open("/data", testOptions(onlyGuards.mount(t))); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("without the store: %v", err)
	}
}

// TestCreationIsAllOrNothing crashes a creation at operations that change the
// file system, from a scale of 6 on at every one, and opens the folder that is left.
func TestCreationIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for at := 1; ; at += max(1, 6/scale.N(1)) {
		mem := vfs.NewCrashableMem()
		fs := &countdownFS{FS: mem, left: at, mem: mem}
		e, err := disk.Open("/data", testOptions(fs))
		if err == nil {
			_ = e.Close()
		}
		if fs.crashed == nil {
			if at < 20 {
				t.Fatalf("creation took only %d operations", at)
			}
			return
		}
		again, err := disk.Open("/data", testOptions(fs.crashed))
		if err != nil {
			t.Fatalf("after a crash at operation %d: %v", at, err)
		}
		commit(t, again, diaryEntry(1, 1))
		mustClose(t, again)
	}
}

// countdownFS takes a snapshot of what would survive a crash at one operation.
type countdownFS struct {
	vfs.FS
	mem *vfs.MemFS

	mu      sync.Mutex
	left    int
	crashed *vfs.MemFS
}

func (c *countdownFS) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.crashed = c.mem.CrashClone(vfs.CrashCloneCfg{})
	}
}

// picture returns the snapshot, or nil if the operation was not reached.
func (c *countdownFS) picture() *vfs.MemFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

func (c *countdownFS) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	c.step()
	return c.FS.Create(name, k)
}

func (c *countdownFS) Rename(from, to string) error {
	c.step()
	return c.FS.Rename(from, to)
}

func (c *countdownFS) Remove(name string) error {
	c.step()
	return c.FS.Remove(name)
}

func (c *countdownFS) OpenDir(name string) (vfs.File, error) {
	c.step()
	return c.FS.OpenDir(name)
}
