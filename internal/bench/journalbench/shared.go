package journalbench

import (
	"context"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// Floors that other benches use too.

// RecordLen is the size of a record in every figure.
const RecordLen = recordLen

// Floor is the group-committed file.
type Floor struct{ floor *floor }

// OpenFloor makes the file, which must not exist.
func OpenFloor(path string) (*Floor, error) {
	f, err := newFloor(path)
	if err != nil {
		return nil, err
	}
	return &Floor{f}, nil
}

// Append adds a record and returns when it is durable.
func (f *Floor) Append(data []byte) error { return f.floor.append(data) }

// Close closes the file. No Append may be running.
func (f *Floor) Close() error { return f.floor.close() }

// Load runs writers for a while and reports appends per second.
func Load(ctx context.Context, d time.Duration, writers int, write func(ctx context.Context, writer, i int) error) (bench.Sample, error) {
	return load(ctx, d, writers, write)
}
