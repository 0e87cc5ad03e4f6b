package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// fold folds a channel's history and side log in the order in which they were
// written; within one batch the history comes first. It goes on from the
// channel's snapshot, if there is one.
func (h *Hub) fold(ctx context.Context, ch *loadedChannel) error {
	start := savedFold{ch: ch, adapter: ch.adapter, watch: h.watchOf(ch.meta, 0)}
	restored := h.restore(ctx, ch, &start)
	if !restored {
		initial, err := ch.adapter.Initial(ch.meta)
		if err != nil {
			return err
		}
		start = savedFold{ch: ch, adapter: ch.adapter, state: initial, watch: h.watchOf(ch.meta, 0)}
	}
	state, w, err := start.state, start.watch, error(nil)
	ch.watch, ch.lastID = w, start.lastID
	ch.heads.history, ch.heads.side = start.heads.history, start.heads.side
	side := h.sideFold(ctx, ch)
	side.marks, side.opts.From = start.marks, start.heads.side+1
	folder, _ := ch.adapter.(channel.SideFolder)
	log := ch.logs.History()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{From: start.heads.history + 1}) {
		if err != nil {
			return unavailable(err)
		}
		if state, err = side.before(state, folder, entry.Offset); err != nil {
			return err
		}
		h.stats.foldedBytes.Add(int64(len(entry.Data)))
		e, err := envelope.Unmarshal(entry.Data)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "record %d of channel '%s' cannot be read: %v", entry.Seq, ch.id, err)
		}
		e.Seq = entry.Seq
		state = ch.adapter.Fold(state, e)
		w = w.after(ch.adapter, ch.meta, state, e)
		ch.heads.history, ch.lastID = entry.Seq, e.ID
	}
	if state, err = side.before(state, folder, 0); err != nil {
		return err
	}
	side.finish()
	w.NextCheck, w.Active = ch.watch.NextCheck, ch.watch.Active
	ch.state, ch.watch = state, w
	return nil
}

// loadSide reads the side log of a channel that is not folded.
func (h *Hub) loadSide(ctx context.Context, ch *loadedChannel) error {
	side := h.sideFold(ctx, ch)
	if _, err := side.before(nil, nil, 0); err != nil {
		return err
	}
	side.finish()
	return nil
}

// sideFold reads a channel's side log along with its history.
type sideFold struct {
	hub   *Hub
	ctx   context.Context // of the one load that reads it
	ch    *loadedChannel
	page  []journal.Entry
	opts  journal.ReadOptions
	ended bool
	marks marks
}

func (h *Hub) sideFold(ctx context.Context, ch *loadedChannel) *sideFold {
	return &sideFold{hub: h, ctx: ctx, ch: ch}
}

// before folds the side records of batches before an offset; 0 is the end.
func (f *sideFold) before(state channel.State, folder channel.SideFolder, offset uint64) (channel.State, error) {
	for {
		if len(f.page) == 0 {
			if err := f.read(); err != nil {
				return state, err
			}
			if len(f.page) == 0 {
				return state, nil
			}
		}
		entry := f.page[0]
		if offset != 0 && entry.Offset >= offset {
			return state, nil
		}
		f.page = f.page[1:]
		r, err := schema.DecodeSide(entry.Data)
		if err != nil {
			return state, fault.Wrap(fault.Internal, err, "side record %d of channel '%s' cannot be read: %v", entry.Seq, f.ch.id, err)
		}
		f.marks = f.marks.after(r)
		f.ch.heads.side = entry.Seq
		switch {
		case r.Kind == schema.SideActive || r.Kind == schema.SideScheduled && r.Due != 0:
			f.ch.watch.Active = expect.Instant(r.Due)
		case r.Kind == schema.SideCheck:
			f.ch.watch.NextCheck = expect.Instant(r.Due)
		case len(r.Envelope) > 0 && folder != nil:
			e, err := envelope.Unmarshal(r.Envelope)
			if err != nil {
				return state, fault.Wrap(fault.Internal, err, "side record %d of channel '%s' cannot be read: %v", entry.Seq, f.ch.id, err)
			}
			e.Seq = r.After
			state = folder.FoldSide(state, e)
		}
	}
}

func (f *sideFold) read() error {
	if f.ended {
		return nil
	}
	page, err := f.hub.journal.Read(f.ctx, f.ch.logs.Side(), f.opts)
	if err != nil {
		return unavailable(err)
	}
	f.page, f.ended = page.Entries, page.Next == 0
	f.opts.From, f.opts.Incarnation = page.Next, page.Head.Incarnation
	return nil
}

// finish keeps what the side log says of the channel.
func (f *sideFold) finish() {
	if f.marks.back = nil; !f.marks.none() {
		f.ch.ensureExtras().marks = f.marks
		f.ch.seats.Hide(f.marks.muted())
	}
}
