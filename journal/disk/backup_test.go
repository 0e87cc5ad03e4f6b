package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// TestBackupUnderLoad streams a backup while writers continue, and restores it to
// a consistent prefix.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	const writers = 4
	stop := make(chan struct{})
	begun := make(chan struct{}, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{
					{Log: layer(w), Records: []journal.Record{{Data: fmt.Append(nil, i)}}},
					{Log: room.In("twin", fmt.Sprint(w)), Records: []journal.Record{{Data: fmt.Append(nil, i)}}},
				}})
				if err == nil {
					err = ticket.Wait(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if i == 20 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	var archive bytes.Buffer
	at, err := e.Backup(ctx, &archive, nil)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	for name := range takeImage(t, fs, "/data") {
		if strings.Contains(name, "backup-") {
			t.Errorf("%s is left of the backup", name)
		}
	}

	opts := testOptions(fs)
	if err := repair.Unpack(bytes.NewReader(archive.Bytes()), "/backup", opts, nil); err != nil {
		t.Fatal(err)
	}
	if err := repair.Restore("/backup", "/restored", opts, nil); err != nil {
		t.Fatal(err)
	}
	if err := repair.Restore("/backup", "/restored", opts, nil); err == nil {
		t.Error("a folder was restored over another")
	}
	report, err := repair.Check("/restored", opts, nil)
	if err != nil || !report.OK() {
		t.Fatalf("the restored folder: %+v, %v", report, err)
	}
	r, err := disk.Open("/restored", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	place, err := r.Place(ctx, 0)
	if err != nil || place.Durable != at[0].Offset || place.Epoch != at[0].Epoch+1 {
		t.Errorf("restored to %+v, %v; the backup was of %v", place, err, at)
	}
	for w := range writers {
		got, err := readLayer(r, w)
		if err != nil {
			t.Fatal(err)
		}
		page, err := r.Head(ctx, room.In("twin", fmt.Sprint(w)))
		if err != nil || page.Durable.Seq != uint64(len(got)) || len(got) < 20 {
			t.Errorf("log %d has %d records, its twin %d", w, len(got), page.Durable.Seq)
		}
		for i, text := range got {
			if text != fmt.Sprint(i+1) {
				t.Fatalf("log %d has %q at %d", w, text, i+1)
			}
		}
	}
}

// TestOnlyAWholeBackupIsTaken cuts and damages the stream at many places.
func TestOnlyAWholeBackupIsTaken(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	populate(t, e)
	var archive bytes.Buffer
	if _, err := e.Backup(ctx, &archive, nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	data := archive.Bytes()
	n := 0
	try := func(what string, stream io.Reader) {
		n++
		into := fmt.Sprintf("/backup-%d", n)
		if err := repair.Unpack(stream, into, testOptions(fs), nil); err != nil {
			if err := repair.Restore(into, into+"-restored", testOptions(fs), nil); err == nil {
				t.Errorf("%s: what was refused was restored", what)
			}
			return
		}
		if err := repair.Restore(into, into+"-restored", testOptions(fs), nil); err != nil {
			t.Errorf("%s: taken and then not restored: %v", what, err)
		}
	}
	for at := 0; at < len(data)-2<<10; at += len(data) / 40 {
		try(fmt.Sprintf("cut at %d", at), bytes.NewReader(data[:at]))
	}
	for at := 600; at < len(data)-4<<10; at += len(data) / 40 {
		damaged := bytes.Clone(data)
		damaged[at] ^= 1
		try(fmt.Sprintf("byte %d flipped", at), bytes.NewReader(damaged))
	}
	if err := repair.Restore("/data", "/x", testOptions(fs), nil); err == nil || !strings.Contains(err.Error(), "not a checkpoint") {
		t.Errorf("a data folder was restored: %v", err)
	}
}

func TestStatsOfAFolder(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	populate(t, e)
	if _, err := repair.ReadStats("/data", testOptions(fs), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("statistics of an open folder: %v", err)
	}
	mustClose(t, e)
	stats, err := repair.ReadStats("/data", testOptions(fs), nil)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Logs != 2 && stats.Logs != 3 || stats.Epoch != 1 || stats.Offset != 7 || !stats.Clean || stats.Families["history"] != stats.Logs {
		t.Errorf("statistics are %+v", stats)
	}
	if stats.Bytes.Total <= 0 || stats.Tables == 0 || stats.Records < 8 {
		t.Errorf("statistics are %+v", stats)
	}
}

// goneWriter is a writer that fails in the middle of a backup, as when the receiver
// disconnects.
type goneWriter struct{ left int }

var errGone = errors.New("the reader has gone")

func (w *goneWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errGone
	}
	return len(b), nil
}

// TestABackupWithoutAReaderLeavesNothing writes a backup to a receiver that
// disconnects: the engine continues, and the backup's checkpoint is removed.
func TestABackupWithoutAReaderLeavesNothing(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	populate(t, e)
	made := false
	_, err := e.Backup(ctx, &goneWriter{1000}, func(string, int64, int64) {
		for name := range takeImage(t, fs, "/data") {
			made = made || strings.Contains(name, "backup-")
		}
	})
	if !errors.Is(err, errGone) || !made {
		t.Errorf("it ended with %v; was there a checkpoint: %v", err, made)
	}
	for name := range takeImage(t, fs, "/data") {
		if strings.Contains(name, "backup-") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestAnInterruptedBackupLeavesNothing kills a process in the middle of a backup.
func TestAnInterruptedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	populate(t, e)
	var img image
	_, err := e.Backup(ctx, io.Discard, func(string, int64, int64) {
		if img == nil {
			img = takeImage(t, fs, "/data")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	left := img.mount(t)
	e = mustOpen(t, left)
	defer mustClose(t, e)
	for name := range takeImage(t, left, "/data") {
		if strings.Contains(name, "backup-") {
			t.Errorf("%s is left", name)
		}
	}
	if _, errs := readAll(e); len(errs) > 0 {
		t.Error(errs)
	}
}
