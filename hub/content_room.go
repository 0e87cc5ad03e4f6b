package hub

import (
	"context"
	"strings"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// contents counts the bytes of all content, stored or being stored. They are
// counted from the index when the first content is put.
type contents struct {
	mu      sync.Mutex
	counted bool
	total   int64
	home    map[string]int64
}

// contentCost is what a content of a size counts: its own records too, so that
// empty content is bounded.
func contentCost(size int64) int64 { return size + 1<<10 }

// reserveContent counts n more bytes of a home's content, within the limits.
func (h *Hub) reserveContent(ctx context.Context, home string, n int64) error {
	c := &h.contents
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := h.countContents(ctx); err != nil {
		return err
	}
	limits := &h.opts.Limits
	switch {
	case c.home[home]+n > limits.ContentHome:
		return fault.New(fault.TooLarge, "home '%s' has %d bytes of content, at most %d are kept (limits.content_total); drop some first", home, c.home[home], limits.ContentHome)
	case c.total+n > limits.ContentHub:
		return fault.New(fault.TooLarge, "the hub has %d bytes of content, at most %d are kept (limits.content_hub); drop some first", c.total, limits.ContentHub)
	}
	c.home[home] += n
	c.total += n
	return nil
}

// countContents counts what is stored, once. The counts are locked.
func (h *Hub) countContents(ctx context.Context) error {
	c := &h.contents
	if c.counted {
		return nil
	}
	c.total, c.home = 0, map[string]int64{}
	for entry, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: []byte(schema.IndexContent)}) {
		if err != nil {
			return unavailable(err)
		}
		info, err := decodeContent(entry.Value)
		if err != nil {
			return err
		}
		home, _, _ := strings.Cut(strings.TrimPrefix(string(entry.Key), schema.IndexContent), "/")
		c.home[home] += contentCost(info.Size)
		c.total += contentCost(info.Size)
	}
	c.counted = true
	return nil
}

// release gives bytes back.
func (c *contents) release(home string, n int64) {
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

// forget gives back all bytes of a home that is deleted.
func (c *contents) forget(home string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total -= c.home[home]
	delete(c.home, home)
}
