package hub

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// fold folds a channel's history and side log in the order in which they were
// written; within one batch the history comes first. It goes on from the
// channel's snapshot, if there is one.
func (h *Hub) fold(ctx context.Context, ch *loadedChannel) error {
	scheduled := h.watchOf(ch.meta, ch.watch.NextCheck)
	scheduled.Active = ch.watch.Active
	start := savedFold{ch: ch, adapter: ch.adapter, watch: scheduled}
	restored := h.restore(ctx, ch, &start)
	if !restored {
		initial, err := ch.adapter.Initial(ch.meta)
		if err != nil {
			return err
		}
		start = savedFold{ch: ch, adapter: ch.adapter, state: initial, watch: scheduled}
	}
	state, w, err := start.state, start.watch, error(nil)
	ch.watch, ch.lastID = w, start.lastID
	ch.heads.history, ch.heads.side = start.heads.history, start.heads.side
	side := h.sideFold(ctx, ch)
	side.marks, side.opts.From = start.marks, start.heads.side+1
	folder, _ := ch.adapter.(channel.SideFolder)
	log, sender := ch.logs.History(), ""
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
		if e.Sender != sender {
			sender = h.shared.Name(e.Sender)
		}
		e.Seq, e.Sender = entry.Seq, sender // states keep it
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
	marks marks.Marks
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
		f.marks = f.marks.After(r)
		f.ch.heads.side = entry.Seq
		switch {
		case r.Kind == schema.SideActive || r.Kind == schema.SideScheduled && r.Due != 0:
			f.ch.watch.Active = expect.Instant(r.Due)
			if r.Check != 0 {
				f.ch.watch.NextCheck = expect.Instant(r.Check)
			}
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
	if f.marks.Back = nil; !f.marks.None() {
		f.ch.ensureExtras().marks = f.marks
		f.ch.seats.Hide(f.marks.Muted())
	}
}

// foldVersion goes up whenever the hub folds something else besides the adapter's
// state, or stores it in another form.
const foldVersion = 3

// savedFold is a channel as it was folded at the end of a batch. It is stored as a
// snapshot, so that a channel with a long log is loaded without reading all of it. It is
// disposable: the logs have everything in it.
type savedFold struct {
	ch      *loadedChannel // whose names are read, and nothing else
	adapter channel.Adapter
	state   channel.State
	watch   watch
	marks   marks.Marks
	heads   heads
	lastID  string
}

// savedHead precedes the adapter's state in a snapshot.
type savedHead struct {
	LastID  string       `json:"last_id"`
	Watch   expect.Watch `json:"watch"`
	Replies bool         `json:"replies"` // they were followed
	Marks   marks.Saved  `json:"marks"`
}

// savedVersion is the version of a snapshot that an adapter's codec can read.
func savedVersion(c channel.Codec) uint64 { return foldVersion<<32 | uint64(uint32(c.Version)) }

// encode writes the head, with its length in front, and the state.
func (f *savedFold) encode() ([]byte, error) {
	saved, err := marks.Save(f.marks)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(savedHead{
		LastID: f.lastID, Watch: f.watch.Watch, Replies: f.watch.plan != nil && f.watch.plan.replies, Marks: saved,
	})
	if err != nil {
		return nil, err
	}
	state, err := f.adapter.Codec().Encode(f.state)
	if err != nil {
		return nil, err
	}
	data := binary.AppendUvarint(make([]byte, 0, len(head)+len(state)+binary.MaxVarintLen64), uint64(len(head)))
	return append(append(data, head...), state...), nil
}

// decode reads what encode wrote into the fold.
func (f *savedFold) decode(data []byte) (err error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return fault.New(fault.Internal, "the snapshot is cut off")
	}
	var head savedHead
	if err := json.Unmarshal(data[n:n+int(size)], &head); err != nil {
		return err
	}
	if head.Replies != (f.watch.plan != nil && f.watch.plan.replies) {
		return fault.New(fault.Internal, "the snapshot measures other expectations")
	}
	if f.marks, err = head.Marks.Marks(); err != nil {
		return err
	}
	f.watch.Watch, f.lastID = head.Watch, head.LastID
	f.state, err = f.adapter.Codec().Decode(data[n+int(size):])
	return err
}

// savedKey names a channel's snapshot.
func savedKey(logs schema.ChannelLogs) journal.ValueKey {
	return journal.ValueKey{Partition: logs.Partition(), Name: "fold/" + logs.History().ID}
}

// long reports whether there are enough records to write a snapshot.
func (h *Hub) long(records uint64) bool {
	return h.opts.SnapshotAfter > 0 && records >= uint64(h.opts.SnapshotAfter)
}

// restore sets a channel to its snapshot, if it has one that fits, and reports
// whether it did. Without one, the whole log is folded.
func (h *Hub) restore(ctx context.Context, ch *loadedChannel, f *savedFold) bool {
	history, err := h.journal.Head(ctx, ch.logs.History())
	if err != nil {
		return false
	}
	side, err := h.journal.Head(ctx, ch.logs.Side())
	if err != nil || !h.long(history.Durable.Seq+side.Durable.Seq) {
		return false
	}
	s, err := h.journal.Snapshot(ctx, savedKey(ch.logs), savedVersion(ch.adapter.Codec()))
	if err != nil || s == nil || len(s.Logs) != 2 || s.Logs[0].Log != ch.logs.History() || s.Logs[1].Log != ch.logs.Side() {
		return false
	}
	if err := h.guarded(func() error { return f.decode(s.Data) }); err != nil {
		h.log.Warn("the snapshot of a channel is not used; its log is folded", "channel_id", ch.id, "error", err)
		return false
	}
	f.heads.history, f.heads.side = s.Logs[0].At.Seq, s.Logs[1].At.Seq
	ch.nextSave = f.records() + h.saveInterval(len(s.Data))
	return true
}

func (f *savedFold) records() uint64 { return f.heads.history + f.heads.side }

// foldSaver holds the folds that are to be saved, the newest of each channel.
type foldSaver struct {
	mu    sync.Mutex
	queue []saveRequest
	wake  chan struct{} // has room for one
}

// saveRequest is a fold to save once what it was folded from is durable.
type saveRequest struct {
	savedFold
	after *Pending // nil: it is durable
}

// saveQueue bounds the folds that wait to be saved. If there is no room, a fold is saved
// after a later batch.
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

// write writes a snapshot once its batch is durable. If the batch failed, it writes none,
// because the fold is gone with it.
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
