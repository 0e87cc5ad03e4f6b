package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

var snapshotLog = journal.PartitionName{Tenant: "t", Partition: "p"}.In("f", "1")

func putSnapshot(t *testing.T, e *disk.Engine, name string, size int) {
	t.Helper()
	err := e.PutSnapshot(t.Context(), journal.ValueKey{Partition: snapshotLog.Of(), Name: name}, journal.Snapshot{
		Logs: []journal.LogPosition{{Log: snapshotLog}}, Data: bytes.Repeat([]byte("x"), size),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hasSnapshot(t *testing.T, e *disk.Engine, name string) bool {
	t.Helper()
	s, err := e.Snapshot(t.Context(), journal.ValueKey{Partition: snapshotLog.Of(), Name: name}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s != nil
}

// TestSnapshotsAreBounded puts more snapshots than there is room for: the
// oldest are removed, also after a restart.
func TestSnapshotsAreBounded(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	opts := disk.Options{FS: fs, MinFree: -1, SnapshotBytes: 10_000}
	open := func() *disk.Engine {
		e, err := disk.Open("/data", opts)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	for i := range 8 {
		putSnapshot(t, e, fmt.Sprint(i), 2_000)
	}
	for i := range 8 {
		if got, want := hasSnapshot(t, e, fmt.Sprint(i)), i >= 4; got != want {
			t.Errorf("snapshot %d: there is %v, want %v", i, got, want)
		}
	}
	mustClose(t, e)
	e = open()
	putSnapshot(t, e, "large", 9_000)
	names, err := fs.List("/data/snapshots")
	if err != nil || len(names) != 1 || !hasSnapshot(t, e, "large") {
		t.Errorf("the folder has %v, error %v", names, err)
	}
	mustClose(t, e)
}

// TestSnapshotsAreChecked damages the file of a snapshot at every byte: the snapshot
// is then missing, and never has other contents.
func TestSnapshotsAreChecked(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e, err := disk.Open("/data", disk.Options{FS: fs, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	putSnapshot(t, e, "s", 20)
	names, err := fs.List("/data/snapshots")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	path := "/data/snapshots/" + names[0]
	whole := fileBytes(t, fs, path)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		writeBytes(t, fs, path, damaged)
		if hasSnapshot(t, e, "s") {
			t.Fatalf("byte %d was damaged, and the snapshot is there", i)
		}
		writeBytes(t, fs, path, whole[:i])
		if hasSnapshot(t, e, "s") {
			t.Fatalf("the file was cut at %d, and the snapshot is there", i)
		}
	}
	writeBytes(t, fs, path, whole)
	if !hasSnapshot(t, e, "s") {
		t.Error("the whole file is not taken")
	}
	mustClose(t, e)
}

func fileBytes(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeBytes(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
