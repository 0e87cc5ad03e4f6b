package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// checkpointed returns a checkpoint of a diary, part of it in a table, the rest
// in the log.
func checkpointed(t testing.TB, entries int) image {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	for i := range entries {
		commit(t, e, diaryEntry(i, 1))
		if i == entries/2 {
			if err := e.FlushStore(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := e.Checkpoint(ctx, "/backup"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	return takeImage(t, fs, "/backup")
}

// TestADamagedBackupIsRefused flips bits of every file of a backup and cuts each
// file. Restoring yields everything that was backed up, or an error that names the
// file.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	const entries = 10
	whole := checkpointed(t, entries)
	old := image{}
	for file, data := range whole {
		if path.Base(file) != "SUMS" {
			old[file] = data
		}
	}
	for what, img := range map[string]image{"with sums": whole, "as older versions made it": old} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if _, sums := img["/backup/SUMS"]; sums != (what == "with sums") {
				t.Fatalf("the backup's files are %v", img.paths())
			}
			if err := restoreDiary(t, img, entries); err != nil {
				t.Fatalf("a whole backup: %v", err)
			}
			for _, file := range img.paths() {
				data := img[file]
				step := max(1, len(data)/scale.N(8))
				for at := 0; at < len(data); at += step {
					flipped := bytes.Clone(data)
					flipped[at] ^= 0x10
					check(t, img, fmt.Sprintf("byte %d of %s flipped", at, file), file, flipped, entries)
					check(t, img, fmt.Sprintf("%s cut at %d", file, at), file, data[:at], entries)
				}
			}
		})
	}
}

func check(t *testing.T, img image, what, file string, data []byte, entries int) {
	t.Helper()
	err := restoreDiary(t, img.with(file, data), entries)
	_, sums := img["/backup/SUMS"]
	switch {
	case err == nil && sums:
		t.Errorf("%s: restored", what)
	case err != nil && sums && path.Base(file) != "SUMS" && !strings.Contains(err.Error(), path.Base(file)):
		t.Errorf("%s: the error does not name the file: %v", what, err)
	}
}

// restoreDiary restores a backup, and fails the test if the restored store has
// anything but all of its entries. A damaged table may be noticed only when it is
// read.
func restoreDiary(t *testing.T, img image, entries int) error {
	t.Helper()
	fs := img.mount(t)
	if err := repair.Restore("/backup", "/new", testOptions(fs), nil); err != nil {
		if _, err := fs.Stat("/new"); err == nil {
			t.Errorf("a backup that is refused leaves a folder")
		}
		return err
	}
	e, err := disk.Open("/new", testOptions(fs))
	if err != nil {
		t.Errorf("restored, and then refused by open: %v", err)
		return err
	}
	defer e.Close() //nolint:errcheck // on a file system in memory
	n := 0
	for entry, err := range journal.Records(ctx, e, diary, journal.ReadOptions{}) {
		if err != nil {
			if !errors.Is(err, journal.ErrDamaged) {
				t.Error(err)
			}
			return err
		}
		if want := fmt.Sprintf("entry %d", n); string(entry.Data) != want {
			t.Errorf("entry %d is %q", n, entry.Data)
		}
		n++
	}
	if n != entries {
		t.Errorf("%d of %d entries are restored", n, entries)
	}
	return nil
}

// TestABackupKeepsItsSums damages a backup that was unpacked from a stream.
func TestABackupKeepsItsSums(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	for i := range 3 {
		commit(t, e, diaryEntry(i, 1))
	}
	if err := e.CompactStore(); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := e.Backup(ctx, &archive, nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	if err := repair.Unpack(&archive, "/backup", testOptions(fs), nil); err != nil {
		t.Fatal(err)
	}
	img := takeImage(t, fs, "/backup")
	if err := restoreDiary(t, img, 3); err != nil {
		t.Fatal(err)
	}
	for _, file := range img.paths() {
		if !strings.HasSuffix(file, ".sst") {
			continue
		}
		flipped := bytes.Clone(img[file])
		flipped[len(flipped)/2] ^= 1
		check(t, img, file, file, flipped, 3)
		less := img.with(file, nil)
		delete(less, file)
		if err := restoreDiary(t, less, 3); err == nil || !strings.Contains(err.Error(), path.Base(file)) {
			t.Errorf("without %s: %v", file, err)
		}
		more := img.with("/backup/store/999999.log", []byte("more"))
		if err := restoreDiary(t, more, 3); err == nil || !strings.Contains(err.Error(), "999999.log") {
			t.Errorf("with a file that was not there: %v", err)
		}
	}
}

// TestAnInterruptedRestoreIsNotOpened crashes restores and salvages at
// operations that change the file system, from a scale of 6 on at every one.
// The folder that is left is complete, or is refused with an error that names the
// interrupted command.
func TestAnInterruptedRestoreIsNotOpened(t *testing.T) {
	t.Parallel()
	const entries = 4
	source := vfs.NewCrashableMem()
	e := mustOpen(t, source)
	for i := range entries {
		commit(t, e, diaryEntry(i, 1))
	}
	if _, err := e.Checkpoint(ctx, "/data/backup"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	img := takeImage(t, source, "/data")
	for what, make := range map[string]func(vfs.FS) error{
		"restore": func(fs vfs.FS) error { return repair.Restore("/data/backup", "/new", testOptions(fs), nil) },
		"salvage": func(fs vfs.FS) error { _, err := repair.Salvage("/data", "/new", testOptions(fs), nil); return err },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var none, refused int
			for at := 1; ; at += max(1, 6/scale.N(1)) {
				mem := img.mount(t)
				fs := &countdownFS{FS: mem, left: at, mem: mem}
				if err := make(fs); err != nil {
					t.Fatal(err)
				}
				left := fs.picture()
				if left == nil {
					break
				}
				if _, err := left.Stat("/new"); err != nil {
					none++
					continue
				}
				e, err := disk.Open("/new", testOptions(left))
				if err != nil {
					refused++
					if !strings.Contains(err.Error(), "unfinished "+what+": remove") {
						t.Errorf("after a crash at operation %d: %v", at, err)
					}
					continue
				}
				if got := readDiary(t, e); len(got) != entries {
					t.Errorf("after a crash at operation %d the folder opens with %q", at, got)
				}
				mustClose(t, e)
			}
			if none == 0 || refused == 0 {
				t.Errorf("%d crashes left no folder, %d one that is refused; want some of each", none, refused)
			}
		})
	}
}
