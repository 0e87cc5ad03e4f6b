package disk_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestACheckpointEndsWhenTheDiskDoesNot runs in a child, because it leaves a Pebble
// store that can never be closed.
func TestACheckpointEndsWhenTheDiskDoesNot(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	for _, c := range []struct {
		name string
		harm func(fs *faultFS)
		call func(ctx context.Context, e *disk.Engine) error
		want string
	}{
		{"a failing sync", (*faultFS).FailSync, checkpoint, "injected fault"},
		{"a sync that never ends", func(fs *faultFS) { fs.HoldSync() }, checkpoint, "made no progress"},
		{"a backup on a failing sync", (*faultFS).FailSync, func(ctx context.Context, e *disk.Engine) error {
			_, err := e.Backup(ctx, &bytes.Buffer{}, nil)
			return err
		}, "injected fault"},
		{"an index on a failing sync", (*faultFS).FailSync, func(ctx context.Context, e *disk.Engine) error {
			return e.RebuildIndex(ctx)
		}, "injected fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := &faultFS{FS: vfs.NewMem()}
			opts := testOptions(fs)
			opts.SyncLimit = time.Second
			e, err := disk.Open("/data", opts)
			if err != nil {
				t.Fatal(err)
			}
			commit(t, e, diaryEntry(1, 1))
			c.harm(fs)
			ended := make(chan error, 1)
			go func() { ended <- c.call(ctx, e) }()
			select {
			case err := <-ended:
				if !errors.Is(err, journal.ErrFailed) && !strings.Contains(err.Error(), c.want) {
					t.Errorf("it is answered with %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it is not answered")
			}
			<-e.Failed()
			if health := e.Health(); health.State != journal.Broken || !strings.Contains(health.Err.Error(), c.want) {
				t.Errorf("the engine is %v: %v", health.State, health.Err)
			}
			_ = e.Close()
		})
	}
}

// TestOpeningEndsWhenTheDiskDoesNot runs in a child for the same reason.
func TestOpeningEndsWhenTheDiskDoesNot(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	fs := &faultFS{FS: vfs.NewMem()}
	held, _ := fs.HoldSync()
	opts := testOptions(fs)
	opts.SyncLimit = 100 * time.Millisecond
	for _, want := range []string{"has taken more than 100ms", "restart the process to open it"} { // and the folder stays closed
		_, err := disk.Open("/data", opts)
		<-held
		if !errors.Is(err, journal.ErrFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("opening is answered with %v, want %s", err, want)
		}
	}
}

func checkpoint(ctx context.Context, e *disk.Engine) error {
	_, err := e.Checkpoint(ctx, "/copy")
	return err
}

// TestACheckpointThatNobodyWaitsForIsRemoved blocks a checkpoint, and releases it after
// its caller has stopped waiting.
func TestACheckpointThatNobodyWaitsForIsRemoved(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	commit(t, e, diaryEntry(1, 1))
	reached, release := fs.HoldSync()
	defer release()
	short, cancel := context.WithCancelCause(ctx)
	gone := errors.New("the caller has gone")
	ended := make(chan error, 1)
	go func() { ended <- checkpoint(short, e) }()
	<-reached
	cancel(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("it is answered with %v", err)
	}
	release()
	commit(t, e, diaryEntry(2, 1)) // the committer is past it
	if _, err := fs.Stat("/copy"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a copy stays: %v", err)
	}
	if err := checkpoint(ctx, e); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestBelowMinFreeRoomCanBeMade makes a backup and drops data while appends are refused.
func TestBelowMinFreeRoomCanBeMade(t *testing.T) {
	t.Parallel()
	e, _ := fullEngine(t)
	defer mustClose(t, e)
	err := e.PutLazy(ctx, journal.ValueWrite{Key: journal.ValueKey{Partition: room, Name: "cursor"}, Data: []byte("1")})
	if !errors.Is(err, journal.ErrNoSpace) {
		t.Errorf("a lazy value is answered with %v", err)
	}
	if err := checkpoint(ctx, e); err != nil {
		t.Errorf("a checkpoint: %v", err)
	}
	ticket, err := e.Drop(ctx, diary)
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		t.Errorf("a drop: %v", err)
	}
	waitUntil(t, "what was dropped is removed", func() bool { return e.Stats().Removals == 0 })
}

// TestAFullDiskIsNotOpened: the error contains how much space is needed, and where.
func TestAFullDiskIsNotOpened(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	opts := testOptions(fs)
	opts.MinFree = 0
	fs.free.Store(127 << 20)
	for range 2 {
		_, err := disk.Open("/data", opts)
		if !errors.Is(err, journal.ErrNoSpace) || !strings.Contains(err.Error(), "/data") || !strings.Contains(err.Error(), "128 MiB") {
			t.Errorf("it is answered with %v", err)
		}
	}
	fs.free.Store(128 << 20)
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
}

// TestLazyValuesAreBounded blocks the disk, and writes more lazy values than may wait.
func TestLazyValuesAreBounded(t *testing.T) {
	t.Parallel()
	fs := &faultFS{FS: vfs.NewMem()}
	opts := testOptions(fs)
	opts.MaxUnsynced = 1 << 20
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	commit(t, e, diaryEntry(1, 1))
	reached, release := fs.HoldSync()
	defer release()
	if _, err := e.Append(ctx, diaryEntry(2, 1)); err != nil {
		t.Fatal(err)
	}
	<-reached
	put := func(ctx context.Context, name string) error {
		return e.PutLazy(ctx, journal.ValueWrite{
			Key: journal.ValueKey{Partition: room, Name: name}, Data: make([]byte, 400<<10),
		})
	}
	for _, name := range []string{"a", "b"} {
		if err := put(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := put(short, "c"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over the bound it is answered with %v", err)
	}
	release()
	if err := put(ctx, "c"); err != nil {
		t.Error(err)
	}
}
