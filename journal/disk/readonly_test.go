package disk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// readOnly is a file system that refuses changes in one folder.
type readOnly struct {
	vfs.FS
	dir string
}

func (r readOnly) refuse(name string) error {
	if strings.HasPrefix(name, r.dir) {
		return &os.PathError{Op: "open", Path: name, Err: os.ErrPermission}
	}
	return nil
}

func (r readOnly) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := r.refuse(name); err != nil {
		return nil, err
	}
	return r.FS.Create(name, c)
}

func (r readOnly) Lock(name string) (io.Closer, error) {
	if err := r.refuse(name); err != nil {
		return nil, err
	}
	return r.FS.Lock(name)
}

func (r readOnly) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := r.refuse(name); err != nil {
		return nil, err
	}
	return r.FS.OpenReadWrite(name, c, opts...)
}

func (r readOnly) Remove(name string) error {
	if err := r.refuse(name); err != nil {
		return err
	}
	return r.FS.Remove(name)
}

func (r readOnly) Rename(from, to string) error {
	if err := r.refuse(to); err != nil {
		return err
	}
	return r.FS.Rename(from, to)
}

func (r readOnly) MkdirAll(dir string, perm os.FileMode) error {
	if err := r.refuse(dir); err != nil {
		return err
	}
	return r.FS.MkdirAll(dir, perm)
}

// TestLookingWritesNothing reads a folder that was used, one that was copied without
// its locks, and both without write permission.
func TestLookingWritesNothing(t *testing.T) {
	t.Parallel()
	used, _ := smallStore(t)
	copied := image{}
	for name, data := range used {
		if name != "/data/LOCK" && name != "/data/PID" {
			copied[name] = data
		}
	}
	for name, img := range map[string]image{"used": used, "copied": copied} {
		for _, frozen := range []bool{false, true} {
			var fs vfs.FS = img.mount(t)
			if frozen {
				fs = readOnly{fs, "/data"}
			}
			opts := testOptions(fs)
			report, err := repair.Check("/data", opts, nil)
			if err != nil || !report.OK() || report.Records == 0 {
				t.Errorf("%s, frozen %t: the check says %+v, %v", name, frozen, report, err)
			}
			if stats, err := repair.ReadStats("/data", opts, nil); err != nil || stats.Logs == 0 {
				t.Errorf("%s, frozen %t: the statistics are %+v, %v", name, frozen, stats, err)
			}
			if salvaged, err := repair.Salvage("/data", "/new", opts, nil); err != nil || salvaged.Records == 0 || len(salvaged.Unreadable) > 0 {
				t.Errorf("%s, frozen %t: the salvage says %+v, %v", name, frozen, salvaged, err)
			}
			if diff := cmp.Diff(img, takeImage(t, fs, "/data")); diff != "" {
				t.Errorf("%s, frozen %t: the folder was written to: %s", name, frozen, diff)
			}
		}
	}
}

// TestAFrozenFolderInUse reads a folder without write permission while another process
// has it open.
func TestAFrozenFolderInUse(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("PARLEY_TEST_LOOK"); dir != "" {
		_, err := repair.Check(dir, disk.Options{}, nil)
		var inUse *disk.InUseError
		if !errors.As(err, &inUse) {
			t.Errorf("a check of a folder in use is answered with %v", err)
		}
		if !disk.ShareLock(filepath.Join(dir, "LOCK")) {
			t.Error("the lock that another process holds can be shared")
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	e, err := disk.Open(dir, disk.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	for _, name := range []string{"LOCK", "PID"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o444); err != nil { // only root may write it
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFrozenFolderInUse$")
	c.Env = append(os.Environ(), "PARLEY_TEST_LOOK="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestABackupIsChecked checks a backup, the folder restored from it, and a backup that
// ends before the position in its CHECKPOINT.
func TestABackupIsChecked(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	populate(t, e)
	var archive bytes.Buffer
	at, err := e.Backup(ctx, &archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	opts := testOptions(fs)
	if err := repair.Unpack(&archive, "/backup", opts, nil); err != nil {
		t.Fatal(err)
	}
	img := takeImage(t, fs, "/backup")
	report, err := repair.Check("/backup", opts, nil)
	if err != nil || !report.OK() || !report.Backup || report.Offset != at[0].Offset || report.Records == 0 || len(report.Cuts) > 0 {
		t.Errorf("the backup: %+v, %v", report, err)
	}
	if diff := cmp.Diff(img, takeImage(t, fs, "/backup")); diff != "" {
		t.Errorf("the backup was written to: %s", diff)
	}
	if err := repair.Restore("/backup", "/restored", opts, nil); err != nil {
		t.Fatal(err)
	}
	report, err = repair.Check("/restored", opts, nil)
	if err != nil || !report.OK() || report.Backup || len(report.Cuts) > 0 {
		t.Errorf("what was restored: %+v, %v", report, err)
	}

	later := journal.ShardPosition{Epoch: at[0].Epoch, Offset: at[0].Offset + 1}
	for text, want := range map[string]string{
		later.String() + "\n": "CHECKPOINT says",
		"nonsense\n":          "CHECKPOINT",
	} {
		report, err := repair.Check("/backup", testOptions(img.with("/backup/CHECKPOINT", []byte(text)).mount(t)), nil)
		if err != nil || !strings.Contains(strings.Join(report.Problems, "\n"), want) {
			t.Errorf("with CHECKPOINT %q: %+v, %v", text, report, err)
		}
	}
}

// closedFS is a file system without permission to Stat the files of /closed.
type closedFS struct{ vfs.FS }

func (c closedFS) Stat(name string) (vfs.FileInfo, error) {
	if strings.HasPrefix(name, "/closed/") {
		return nil, fmt.Errorf("wrapped, as by the store's file system: %w", &os.PathError{Op: "stat", Path: name, Err: syscall.EACCES})
	}
	return c.FS.Stat(name)
}

func TestAFolderWithoutPermissionIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	fs := closedFS{vfs.NewMem()}
	if err := fs.MkdirAll("/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	opts := testOptions(fs)
	_, checked := repair.Check("/closed", opts, nil)
	_, described := repair.ReadStats("/closed", opts, nil)
	_, salvaged := repair.Salvage("/closed", "/salvaged", opts, nil)
	restored := repair.Restore("/closed", "/restored", opts, nil)
	for _, err := range []error{checked, described, salvaged, restored} {
		if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "permission denied; run this as the user that the hub runs as") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAFolderThatIsNone(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("/empty", 0o750); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"/nowhere": "does not exist",
		"/empty":   "/empty is not a data folder: it has neither FORMAT nor store",
	} {
		_, checked := repair.Check(dir, testOptions(fs), nil)
		_, described := repair.ReadStats(dir, testOptions(fs), nil)
		for _, err := range []error{checked, described} {
			if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, journal.ErrDamaged) {
				t.Errorf("%s: %v, want %q", dir, err, want)
			}
		}
	}
}

func TestACutIsJSONAsEverythingElse(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(store.Cut{File: "000007.log", Offset: 5, Bytes: 3})
	if want := `{"file":"000007.log","offset":5,"bytes":3}`; err != nil || string(got) != want {
		t.Errorf("a cut is %s, %v; want %s", got, err, want)
	}
}
