package content

import (
	"context"
	"strings"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// room counts the bytes of all content, stored or being stored. The count starts
// from the index when the first content is put.
type room struct {
	mu      sync.Mutex
	counted bool
	total   int64
	home    map[string]int64
}

// cost returns how many bytes a content of a size counts as. It includes the
// content's own records, so that empty content is bounded.
func cost(size int64) int64 { return size + 1<<10 }

// reserve counts n more bytes of a home's content, or returns an error if that
// exceeds a limit.
func (s *Store) reserve(ctx context.Context, home string, n int64) error {
	c := &s.room
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.count(ctx); err != nil {
		return err
	}
	limits := &s.Limits
	switch {
	case c.home[home]+n > limits.Home:
		return fault.New(fault.TooLarge, "home '%s' has %d bytes of content, at most %d are kept (limits.content_total); drop some first", home, c.home[home], limits.Home)
	case c.total+n > limits.Hub:
		return fault.New(fault.TooLarge, "the hub has %d bytes of content, at most %d are kept (limits.content_hub); drop some first", c.total, limits.Hub)
	}
	c.home[home] += n
	c.total += n
	return nil
}

// count counts the stored bytes, once. The caller holds the lock.
func (s *Store) count(ctx context.Context) error {
	c := &s.room
	if c.counted {
		return nil
	}
	c.total, c.home = 0, map[string]int64{}
	for entry, err := range journal.IndexAll(ctx, s.Ledger.Journal, journal.ScanOptions{Prefix: []byte(schema.IndexContent)}) {
		if err != nil {
			return ledger.Unavailable(err)
		}
		info, err := decode(entry.Value)
		if err != nil {
			return err
		}
		home, _, _ := strings.Cut(strings.TrimPrefix(string(entry.Key), schema.IndexContent), "/")
		c.home[home] += cost(info.Size)
		c.total += cost(info.Size)
	}
	c.counted = true
	return nil
}

// release subtracts n bytes.
func (s *Store) release(home string, n int64) {
	c := &s.room
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counted {
		return
	}
	n = min(n, c.home[home]) // its home may be gone
	c.total -= n
	if c.home[home] -= n; c.home[home] == 0 {
		delete(c.home, home)
	}
}

// Forget releases all bytes of a home that is deleted.
func (s *Store) Forget(home string) {
	c := &s.room
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total -= c.home[home]
	delete(c.home, home)
}
