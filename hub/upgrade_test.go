package hub_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/task"
)

// layout0 unpacks a data folder that the version before homes has written: alice
// and bob in three conversations of three texts each, labelled open, ended and
// kept, of which one is closed; a task in each and one without a channel.
func layout0(t *testing.T) (dir string) { return unpacked(t, "testdata/layout0.tar.gz") }

func unpacked(t *testing.T, path string) (dir string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o750)
		} else {
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stopping is a store that accepts only a number of further batches.
type stopping struct {
	journal.Engine
	left int
}

func (e *stopping) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if e.left--; e.left < 0 {
		return nil, journal.ErrClosed
	}
	return e.Engine.Append(ctx, b)
}

func TestDataOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, r *rig) {
		t.Helper()
		labelled := func(name string) string {
			list, _, err := r.Channels(ctx, hub.ListOptions{Label: []hub.Label{{Key: "n", Value: name}}})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return list[0].ID
		}
		open, ended, kept := labelled("open"), labelled("ended"), labelled("kept")
		if got := r.listAll(hub.ListOptions{}); !slices.Equal(got, []string{open, ended, kept}) {
			t.Errorf("listed %v", got)
		}
		if got := r.listAll(hub.ListOptions{Open: true}); !slices.Equal(got, []string{open, kept}) {
			t.Errorf("open %v", got)
		}
		if got := r.listedUnder("active/"); !slices.Equal(got, []string{open, kept}) {
			t.Errorf("active %v", got)
		}
		alice, err := r.Agent("alice")
		if err != nil {
			t.Fatal(err)
		}
		bob, err := r.Agent("bob")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{open, ended, kept} {
			log := r.log(id)
			texts := slices.DeleteFunc(log, func(e *envelope.Envelope) bool { return e.Type != envelope.TypeText })
			if len(texts) < 3 {
				t.Fatalf("%s holds %v", id, types(log))
			}
			if cursor, err := r.Cursor(ctx, bob.ID(), id); err != nil || cursor != texts[1].ID {
				t.Errorf("cursor %s, %v", cursor, err)
			}
		}
		for id, want := range map[string]task.State{"task-open": task.Created, "task-ended": task.Expired, "task-alone": task.Created} {
			if got, err := r.Task(ctx, id); err != nil || got.State != want {
				t.Errorf("%s: %+v, %v", id, got, err)
			}
		}
		if err := r.UpdateTask(ctx, task.Update{ID: "task-kept", State: task.Running}, nil, hub.MirrorOff); err != nil {
			t.Error(err)
		}
		if err := r.ObserveTask(ctx, task.Task{ID: "task-kept", Owner: alice.ID()}, nil, hub.MirrorOff); err != nil {
			t.Error(err)
		}
		if list, _, err := r.Tasks(ctx, hub.TaskQuery{}); err != nil || len(list) != 4 {
			t.Errorf("%d tasks, %v", len(list), err)
		}
		if _, err := r.Post(ctx, &envelope.Envelope{Channel: open, Sender: alice.ID(), Type: envelope.TypeText, Data: []byte(`{"text":"new"}`)}, nil); err != nil {
			t.Error(err)
		}
		if got := r.listedUnder("active/"); !slices.Equal(got, []string{kept, open}) {
			t.Errorf("after a new text, active %v", got)
		}
	}
	t.Run("is opened, and its open channels are listed", func(t *testing.T) {
		t.Parallel()
		r := newRigOn(t, hub.Options{}, 1, layout0(t))
		check(t, r)
		r.restart()
		if n := r.stored.Stats().Batches; n != 0 {
			t.Errorf("%d batches: upgraded again", n)
		}
	})
	t.Run("is upgraded further where that was interrupted", func(t *testing.T) {
		t.Parallel()
		r := newRigOn(t, hub.Options{}, 1, "")
		r.stop()
		r.dir = layout0(t)
		for left := range 4 {
			r.open0(t, left)
		}
		r.start()
		check(t, r)
	})
}

// open0 opens a hub on the rig's folder that may write only a number of batches.
func (r *rig) open0(t *testing.T, left int) {
	t.Helper()
	engine, err := disk.Open(r.dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := hub.Open(ctx, &stopping{Engine: engine, left: left}, r.opts); err == nil {
		h.Close()
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
}

// The folder is of the version in which open channels were also listed among the
// ended ones, and each had a side log from its creation: alice and bob in two
// conversations and in two boards of a home, of which one each has ended.
func TestDataOfTheVersionThatListedOpenChannelsTwice(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, withBoard, 1, unpacked(t, "testdata/layout1.tar.gz"))
	list := func(o hub.ListOptions) []string { t.Helper(); return r.listAll(o) }
	all := list(hub.ListOptions{})
	if len(all) != 4 {
		t.Fatalf("%d channels: %v", len(all), all)
	}
	talk, board := all[0], all[2]
	alice, err := r.Agent("alice")
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	_, own, _ := strings.Cut(board, ".")
	same("alice's", list(hub.ListOptions{Agent: alice.ID()}), all...)
	same("open", list(hub.ListOptions{Open: true}), talk, board)
	same("alice's open", list(hub.ListOptions{Agent: alice.ID(), Open: true}), talk, board)
	same("active", r.listedUnder("active/"), talk, own)
	if _, err := r.Post(ctx, &envelope.Envelope{Channel: talk, Sender: alice.ID(), Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)}, nil); err != nil {
		t.Fatal(err)
	}
	same("active, after a text", r.listedUnder("active/"), own, talk)
	r.end(board, "done")
	r.restart()
	same("open, after an end", list(hub.ListOptions{Open: true}), talk)
	same("alice's, after an end", list(hub.ListOptions{Agent: alice.ID()}), all...)
	same("active, after an end", r.listedUnder("active/"), talk)
	if err := r.Delete(ctx, board, nil); err != nil {
		t.Fatal(err)
	}
	left := slices.Delete(slices.Clone(all), 2, 3)
	r.restart()
	if n := r.stored.Stats().Batches; n != 0 {
		t.Errorf("%d batches: upgraded again", n)
	}
	same("after a deletion", list(hub.ListOptions{}), left...)
	same("alice's, after a deletion", list(hub.ListOptions{Agent: alice.ID()}), left...)
}
