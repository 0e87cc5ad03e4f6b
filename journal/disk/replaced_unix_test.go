//go:build unix

package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestReplaced removes or replaces files of an open store. The next append is not
// acknowledged, and nothing more is admitted.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		says   string
	}{
		"the folder is removed":          {func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, "was removed"},
		"the folder is moved away":       {func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".away")) }, "was removed"},
		"another folder is in its place": {swapDir, "was replaced"},
		"the store is moved away": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "store"), filepath.Join(dir, "away")))
		}, "was removed"},
		"MARK is replaced": {func(t *testing.T, dir string) { replaceFile(t, filepath.Join(dir, "MARK")) }, "was replaced"},
		"LOCK is removed":  {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "LOCK"))) }, "was removed"},
		"the newest log is removed": {func(t *testing.T, dir string) {
			must(t, os.Remove(newestLog(t, dir)))
		}, "was removed"},
		"the newest log is replaced": {func(t *testing.T, dir string) { replaceFile(t, newestLog(t, dir)) }, "was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			e, err := disk.Open(dir, disk.Options{MinFree: -1}.Checked().Tuned(withoutFigures))
			must(t, err)
			defer e.Close() //nolint:errcheck // it has failed
			log := journal.PartitionName{Tenant: "t", Partition: "p"}.In("f", "1")
			must(t, appendOne(t, e, log))
			c.damage(t, dir)
			if err := appendOne(t, e, log); err == nil {
				t.Fatal("an append was acknowledged though its store is gone")
			}
			<-e.Failed()
			err = appendOne(t, e, log)
			if !errors.Is(err, journal.ErrFailed) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got error %v, want one that %s", err, c.says)
			}
			if state := e.Health().State; state != journal.Broken {
				t.Fatalf("the engine is %v", state)
			}
		})
	}
}

// TestReplacedSoon uses the default interval: no append is acknowledged a second after
// the folder was removed.
func TestReplacedSoon(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := disk.Open(dir, disk.Options{MinFree: -1})
	must(t, err)
	defer e.Close() //nolint:errcheck // it has failed
	log := journal.PartitionName{Tenant: "t", Partition: "p"}.In("f", "1")
	must(t, appendOne(t, e, log))
	must(t, os.RemoveAll(dir))
	removed := time.Now()
	for {
		began := time.Now()
		if err := appendOne(t, e, log); err != nil {
			break
		}
		if began.Sub(removed) > time.Second {
			t.Fatal("an append was acknowledged a second after the folder was removed")
		}
	}
	<-e.Failed()
}

// TestReplacedIsNoticedAtARotation writes into the next logs of a store that lost
// a file: nothing in them is acknowledged, however long the check interval is.
func TestReplacedIsNoticedAtARotation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := disk.Open(dir, disk.Options{MinFree: -1, MemTableSize: 256 << 10}.CheckedRarely())
	must(t, err)
	defer e.Close() //nolint:errcheck // it has failed
	log := journal.PartitionName{Tenant: "t", Partition: "p"}.In("f", "1")
	must(t, appendOne(t, e, log))
	must(t, os.Remove(filepath.Join(dir, "LOCK")))
	for range 64 { // each log takes at most 256 KiB
		ticket, err := e.Append(t.Context(), journal.Batch{Appends: []journal.Append{
			{Log: log, Records: []journal.Record{{Data: make([]byte, 32<<10)}}},
		}})
		if err == nil {
			err = ticket.Wait(t.Context())
		}
		if err != nil {
			<-e.Failed()
			return
		}
	}
	t.Error("2 MiB in new logs were acknowledged though LOCK is gone")
}

// TestReplacedIdle removes the folder of a store without writes.
func TestReplacedIdle(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := disk.Open(dir, disk.Options{MinFree: -1})
	must(t, err)
	defer e.Close() //nolint:errcheck // it has failed
	must(t, os.RemoveAll(dir))
	<-e.Failed()
}

// TestRotationsAreNotReplacements writes through many logs while each is
// checked with each group.
func TestRotationsAreNotReplacements(t *testing.T) {
	t.Parallel()
	e, err := disk.Open(filepath.Join(t.TempDir(), "data"), disk.Options{MinFree: -1, MemTableSize: 256 << 10}.Checked())
	must(t, err)
	log := journal.PartitionName{Tenant: "t", Partition: "p"}.In("f", "1")
	for range 200 {
		ticket, err := e.Append(t.Context(), journal.Batch{Appends: []journal.Append{
			{Log: log, Records: []journal.Record{{Data: make([]byte, 32<<10)}}},
		}})
		must(t, err)
		must(t, ticket.Wait(t.Context()))
	}
	must(t, e.Close())
}

func appendOne(t *testing.T, e *disk.Engine, log journal.LogName) error {
	ticket, err := e.Append(t.Context(), journal.Batch{Appends: []journal.Append{
		{Log: log, Records: []journal.Record{{Data: []byte("x")}}},
	}})
	if err != nil {
		return err
	}
	return ticket.Wait(t.Context())
}

func swapDir(t *testing.T, dir string) {
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.CopyFS(dir, os.DirFS(dir+".old")))
}

func replaceFile(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".copy", data, 0o600))
	must(t, os.Rename(path+".copy", path))
}

func newestLog(t *testing.T, dir string) string {
	logs, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
	must(t, err)
	newest := ""
	for _, path := range logs {
		newest = max(newest, path)
	}
	return newest
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
