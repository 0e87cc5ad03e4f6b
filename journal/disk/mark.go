package disk

import (
	"time"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// markInterval is how often MARK is written while batches become durable.
const markInterval = time.Second

// markLoop writes MARK when Pebble begins a new log, and at most once a second
// while batches become durable.
func (e *Engine) markLoop() {
	defer e.helpers.Done()
	ticker := time.NewTicker(markInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.rotated:
		case <-ticker.C:
		case <-e.stop:
			return
		}
		durable := e.durable.Load()
		if durable == e.mark.Last.Offset || e.ending() {
			continue
		}
		if err := e.mark.Write(e.epoch, durable); err != nil {
			e.report(layout.Damaged(err, "writing %s failed; it", datadir.MarkFile))
			return
		}
	}
}
