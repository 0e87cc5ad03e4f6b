package journalbench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/disk"
)

// memory measures the heap that many logs cost, above an empty engine.
func (r *run) memory() ([]bench.Figure, error) {
	logs := r.opts.scaled(100_000)
	dir := r.path("memory")
	e, err := disk.Open(dir, disk.Options{})
	if err != nil {
		return nil, err
	}
	before := heap()
	err = fill(r.ctx, e, "memory", logs, logs*2, 1, 100, r.data)
	above := float64(heap()-before) / (1 << 20)
	if err := errors.Join(err, e.Close(), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return []bench.Figure{
		bench.Counted(fmt.Sprintf("heap with %d logs, above an empty engine", logs), max(above, 0), "MiB", new(64.0)),
	}, nil
}

// heap returns what is live after a collection.
func heap() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
