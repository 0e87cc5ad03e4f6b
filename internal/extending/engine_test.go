package extending

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

// counting is the smallest engine that is not one of ours: it passes everything
// on to another and counts batches. One that stores bytes itself also passes
// journaltest.Exercise, for which it brings a journaltest.Faults.
type counting struct {
	journal.Engine
	batches atomic.Int64
}

func (c *counting) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	c.batches.Add(1)
	return c.Engine.Append(ctx, b)
}

func TestEngine(t *testing.T) {
	t.Parallel()
	store, err := mem.Open(mem.Options{Store: mem.NewStore()})
	if err != nil {
		t.Fatal(err)
	}
	engine := &counting{Engine: store}
	h, err := hub.Open(t.Context(), engine, hub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Audit(t.Context(), "example", map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	h.Close()
	if engine.batches.Load() == 0 {
		t.Error("nothing was appended")
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}
