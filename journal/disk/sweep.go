package disk

import (
	"context"
	"encoding/binary"

	"github.com/parley-hub/parley/journal/internal/order"
)

// sweepClaims bounds: how many expired claims one sweep removes.
const sweepAtOnce = 256

// sweepClaims removes claims whose time has come. They are free already; this
// only gives their room back.
func (e *Engine) sweepClaims() {
	v, err := e.enter(context.Background(), 0)
	if err != nil {
		return
	}
	keys := v.expired(milliseconds(e.now()))
	v.leave()
	if len(keys) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended() != nil || e.paused {
		return
	}
	for _, key := range keys {
		name := string(key[9:])
		held, _, err := e.book.RawClaim(name)
		if err != nil {
			return // whoever needs the claim is told
		}
		_ = e.group.batch.Delete(key, nil)
		// It may have been taken again since.
		if held != nil && order.Expired(held.Claimed, e.now()) {
			_ = e.group.batch.Delete(claimKey(nil, name), nil)
		}
	}
	signal(e.wake)
}

func (v *view) expired(now int64) (keys [][]byte) {
	upper := binary.BigEndian.AppendUint64([]byte{kindExpiry}, uint64(now)+1)
	it, err := v.iter([]byte{kindExpiry}, upper)
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
