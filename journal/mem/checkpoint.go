package mem

import (
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

const imageFile = "image"

// image is the file form of a store. It is for tests, so its format may change.
type image struct {
	Epoch  uint64
	Shards []imageShard
}

type imageShard struct {
	Commits  []imageCommit
	Logs     []imageLog
	Claims   []order.Held
	Values   map[journal.ValueKey]journal.Value
	Lazy     map[journal.ValueKey]journal.Value
	Removals []order.Removal
}

type imageCommit struct {
	Writes  []imageWrite
	Values  []journal.ValueKey
	Dropped *order.Removal
}

type imageWrite struct {
	ID          order.ID
	Name        journal.LogName
	First, Last uint64
}

type imageLog struct {
	Name    journal.LogName
	ID      order.ID
	Removed uint64
	Offsets []uint64
	Records []journal.Record
}

// Checkpoint implements journal.Engine. Restore reads the checkpoint.
func (e *Engine) Checkpoint(ctx context.Context, dir string) (journal.StorePosition, error) {
	if err := e.enter(ctx, 0); err != nil {
		return nil, err
	}
	img := e.store.image()
	var at journal.StorePosition
	for _, book := range e.books {
		at = append(at, book.Position())
	}
	e.store.mu.Unlock()
	if err := os.Mkdir(dir, 0o750); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, imageFile)) //nolint:gosec // the caller names the folder
	if err != nil {
		return nil, err
	}
	if err := gob.NewEncoder(f).Encode(img); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("mem: checkpoint: %w", err)
	}
	return at, f.Close()
}

func (s *Store) image() *image {
	img := &image{Epoch: s.epoch}
	for _, sh := range s.shards {
		img.Shards = append(img.Shards, sh.image())
	}
	return img
}

func (s *shard) image() imageShard {
	img := imageShard{
		Values: maps.Clone(s.values), Lazy: maps.Clone(s.lazy),
		Removals: append([]order.Removal(nil), s.removals...),
	}
	for _, c := range s.commits {
		ic := imageCommit{Values: c.values, Dropped: c.dropped}
		for _, w := range c.writes {
			ic.Writes = append(ic.Writes, imageWrite{w.id, w.name, w.first, w.last})
		}
		img.Commits = append(img.Commits, ic)
	}
	for _, l := range s.byID {
		il := imageLog{Name: l.name, ID: l.id, Removed: l.removed}
		for _, r := range l.records {
			il.Offsets = append(il.Offsets, r.offset)
			il.Records = append(il.Records, r.Record)
		}
		img.Logs = append(img.Logs, il)
	}
	for _, held := range s.claims {
		img.Claims = append(img.Claims, *held)
	}
	return img
}

// Restore makes a store from a checkpoint, in a new epoch.
func Restore(dir string) (*Store, error) {
	f, err := os.Open(filepath.Join(dir, imageFile)) //nolint:gosec // the caller names the folder
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var img image
	if err := gob.NewDecoder(f).Decode(&img); err != nil {
		return nil, fmt.Errorf("mem: restore: %w", err)
	}
	s := NewStore()
	s.epoch = img.Epoch + 1
	for i := range img.Shards {
		s.shards = append(s.shards, img.Shards[i].restore())
	}
	return s, nil
}

func (img *imageShard) restore() *shard {
	s := newShard()
	for _, ic := range img.Commits {
		c := commit{values: ic.Values, dropped: ic.Dropped}
		for _, w := range ic.Writes {
			c.writes = append(c.writes, write{w.ID, w.Name, w.First, w.Last})
		}
		s.commits = append(s.commits, c)
	}
	for _, il := range img.Logs {
		l := &log{name: il.Name, id: il.ID, removed: il.Removed}
		for i, r := range il.Records {
			l.records = append(l.records, record{il.Offsets[i], r})
			s.applyIndex(l.id, &il.Records[i])
		}
		s.byID[l.id] = l
		if at := s.logs[l.name]; at == nil || at.id < l.id {
			s.logs[l.name] = l
		}
	}
	for i := range img.Claims {
		s.claims[img.Claims[i].Name] = &img.Claims[i]
	}
	maps.Copy(s.values, img.Values)
	maps.Copy(s.lazy, img.Lazy)
	s.removals = img.Removals
	return s
}
