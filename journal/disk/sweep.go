package disk

import (
	"context"
	"encoding/binary"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/internal/order"
)

// sweepAtOnce is how many expired claims one sweep removes.
const sweepAtOnce = 256

// sweepClaims removes expired claims. They are free already; this only frees their
// space.
func (e *Engine) sweepClaims() {
	v, err := e.enter(context.Background(), e.shard)
	if err != nil {
		return
	}
	keys := v.expired(layout.Milliseconds(e.now()))
	v.leave()
	if len(keys) == 0 {
		return
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = string(key[9:])
	}
	found, number := e.findClaims(names)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refusedUpkeep() != nil || e.paused {
		return
	}
	e.addClaims(found, number)
	for i, key := range keys {
		name := names[i]
		held, _, err := e.book.RawClaim(name)
		if err != nil {
			return // the next append that needs the claim returns the error
		}
		_ = e.group.batch.Delete(key, nil)
		// The claim may have been taken again since.
		if held != nil && order.Expired(held.Claimed, e.now()) {
			e.freeClaim(e.group, name)
		}
	}
	signal(e.wake)
}

func (v *view) expired(now int64) (keys [][]byte) {
	upper := binary.BigEndian.AppendUint64([]byte{layout.KindExpiry}, uint64(now)+1)
	it, err := v.iter([]byte{layout.KindExpiry}, upper)
	if err != nil {
		return nil
	}
	defer it.Close() //nolint:errcheck // a sweep that fails is tried again
	for ok := it.First(); ok && len(keys) < sweepAtOnce; ok = it.Next() {
		if len(it.Key()) > 9 {
			keys = append(keys, append([]byte(nil), it.Key()...))
		}
	}
	return keys
}
