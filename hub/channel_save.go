package hub

import (
	"context"
	"slices"
	"sync"

	"github.com/parley-hub/parley/journal"
)

// foldSaver holds the folds that are to be saved, the newest of each channel.
type foldSaver struct {
	mu    sync.Mutex
	queue []saveRequest
	wake  chan struct{} // has room for one
}

// saveRequest is a fold to save once what it was folded from is durable.
type saveRequest struct {
	savedFold
	after *Pending // nil: it is
}

// saveQueue bounds the folds that wait to be saved. One that finds no room is
// saved after a later batch.
const saveQueue = 16

// saveInterval is how many records are between two snapshots of a channel: a
// quarter of those before the first, and more if writing it costs more than
// reading them would.
func (h *Hub) saveInterval(size int) uint64 {
	return max(uint64(h.opts.SnapshotAfter)/4, uint64(size>>10))
}

// saveDue saves a channel that has grown enough since it was last saved. The
// channel is locked.
func (h *Hub) saveDue(ch *loadedChannel) {
	if n := ch.heads.history + ch.heads.side; n >= ch.nextSave && h.long(n) {
		h.save(ch, n)
	}
}

// saveEvicted saves a channel that is evicted, unless it was just saved. The
// channel is locked and nothing of it is on its way.
func (h *Hub) saveEvicted(ch *loadedChannel) {
	if n := ch.heads.history + ch.heads.side; n+h.saveInterval(0)/2 >= ch.nextSave && h.long(n) {
		h.save(ch, n)
	}
}

func (h *Hub) save(ch *loadedChannel, n uint64) {
	if _, none := ch.adapter.(inert); none || ch.adapter == nil || ch.state == nil || ch.broken() != nil {
		return
	}
	r := saveRequest{savedFold: savedFold{
		ch: ch, adapter: ch.adapter, state: ch.state, watch: ch.watch, heads: ch.heads, lastID: ch.lastID,
	}, after: ch.last}
	if ch.extras != nil {
		r.marks = ch.extras.marks
	}
	if h.saver.add(r) {
		ch.nextSave = n + h.saveInterval(0)
	}
}

// add queues a fold, in place of an older one of the channel. It returns false if
// there is no room.
func (s *foldSaver) add(r saveRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(other saveRequest) bool { return other.ch == r.ch }
	switch i := slices.IndexFunc(s.queue, same); {
	case i >= 0:
		s.queue[i] = r
	case len(s.queue) >= saveQueue:
		return false
	default:
		s.queue = append(s.queue, r)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

func (s *foldSaver) next() (r saveRequest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return r, false
	}
	r = s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	return r, true
}

// saveAll writes snapshots in the background, until the context ends.
func (h *Hub) saveAll(ctx context.Context) {
	for {
		for r, ok := h.saver.next(); ok && ctx.Err() == nil; r, ok = h.saver.next() {
			if err := h.guarded(func() error { return h.write(ctx, &r) }); err != nil && ctx.Err() == nil {
				h.warnings.Warn(h.log, h.now(), "snapshot of a channel was not written; its log is folded when it is loaded", "channel_id", r.ch.id, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-h.saver.wake:
		}
	}
}

// write writes a snapshot once its batch is durable. A batch that failed leaves
// none, because the fold is gone with it.
func (h *Hub) write(ctx context.Context, r *saveRequest) error {
	if r.after != nil {
		select {
		case <-r.after.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.after.err != nil {
			return nil
		}
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	s := journal.Snapshot{Version: savedVersion(r.adapter.Codec()), Data: data}
	for _, l := range []struct {
		log journal.LogName
		seq uint64
	}{{r.ch.logs.History(), r.heads.history}, {r.ch.logs.Side(), r.heads.side}} {
		at := journal.LogPosition{Log: l.log}
		if l.seq > 0 {
			head, err := h.journal.Head(ctx, l.log)
			if err != nil {
				return err
			}
			if head.Durable.Seq < l.seq {
				return nil // deleted since
			}
			at.At = head.Durable.Position()
			at.At.Seq = l.seq
		}
		s.Logs = append(s.Logs, at)
	}
	if err := h.journal.PutSnapshot(ctx, savedKey(r.ch.logs), s); err != nil {
		return err
	}
	r.ch.mu.Lock()
	defer r.ch.mu.Unlock()
	r.ch.nextSave = max(r.ch.nextSave, r.records()+h.saveInterval(len(data)))
	return nil
}
