package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/marks"
	"github.com/parley-hub/parley/hub/internal/reader"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// loadedChannel is a channel folded into memory. Its fields may run ahead of what
// is durable; an answer computed from them waits for last.
type loadedChannel struct {
	id   string
	logs schema.ChannelLogs
	mu   sync.Mutex
	gone bool // no longer in the cache: look it up again
	// noted says that the board must read it again. It is placed here to use padding: hubs
	// hold many channels.
	noted atomic.Bool

	adapter  channel.Adapter // nil: none is loaded for its manifest
	meta     *channel.Metadata
	state    channel.State // nil: dormant, never folded
	watch    watch
	heads    heads
	lastID   string
	term     uint64
	last     *Pending // the last ordered; nil: none is pending
	touched  expect.Instant
	seats    reader.Seats
	extras   *extras
	nextSave uint64                   // how many records it has when its fold is saved next
	durable  atomic.Pointer[snapshot] // nil: its creation is not durable yet
	lives    atomic.Pointer[liveQueue]
}

// heads are the last ordered sequences of a channel's own logs.
type heads struct{ history, meta, side uint64 }

// extras holds state that few channels need at any one time.
type extras struct {
	waiting     []*waiting
	tasks       map[string]*schema.StoredTask // of the channel, not ended, as last ordered
	marks       marks.Marks
	broken      error // why it could not be folded
	redelivered reader.Redelivered
}

func (ch *loadedChannel) ensureExtras() *extras {
	if ch.extras == nil {
		ch.extras = &extras{}
	}
	return ch.extras
}

// broken is why the channel could not be folded, or nil.
func (ch *loadedChannel) broken() error {
	if ch.extras == nil {
		return nil
	}
	return ch.extras.broken
}

// settled reports whether no batch of the channel is pending and no envelope waits
// in it, so that it can be evicted.
func (ch *loadedChannel) settled() bool {
	if ch.last != nil && !ch.last.finished() {
		return false
	}
	return ch.extras == nil || len(ch.extras.waiting) == 0
}

// channels is the cache of folded channels.
type channels struct {
	tenant schema.Tenant
	mu     sync.RWMutex
	loaded map[string]*loadedChannel
	limit  int
	// parked holds the seats of channels that were evicted in the middle of a
	// round, at most limit of them: the log does not tell whose turn runs.
	parked map[string][]reader.Seat
}

// crowded reports whether more are loaded than should be.
func (c *channels) crowded() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.loaded) > c.limit
}

// park keeps the seats of a channel that is evicted. The channel is locked.
func (c *channels) park(ch *loadedChannel) {
	seats := ch.seats.AtWork()
	if seats == nil || ch.meta.State.Terminal() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked == nil {
		c.parked = map[string][]reader.Seat{}
	}
	if len(c.parked) < c.limit {
		c.parked[ch.id] = seats
	}
}

// unpark restores the seats of a channel. The channel is locked.
func (c *channels) unpark(ch *loadedChannel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seats := c.parked[ch.id]; seats != nil {
		ch.seats.Restore(seats)
		delete(c.parked, ch.id)
	}
}

// newLoadedChannel returns a channel that is not loaded yet. The names of its logs
// are built once.
func newLoadedChannel(tenant schema.Tenant, id string) *loadedChannel {
	logs := tenant.Channel(id)
	return &loadedChannel{logs: logs, id: logs.Channel()}
}

func (c *channels) init(tenant schema.Tenant, limit int) {
	c.tenant, c.loaded, c.limit = tenant, map[string]*loadedChannel{}, limit
}

func (c *channels) size() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.loaded)
}

func (c *channels) list() []*loadedChannel {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]*loadedChannel, 0, len(c.loaded))
	for _, ch := range c.loaded {
		list = append(list, ch)
	}
	return list
}

// claim returns the cached channel. If there is none, it adds one, locks it and
// returns fill: the caller loads and unlocks it.
func (c *channels) claim(id string) (ch *loadedChannel, fill bool) {
	c.mu.RLock()
	ch = c.loaded[id]
	c.mu.RUnlock()
	if ch != nil {
		return ch, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch = c.loaded[id]; ch != nil {
		return ch, false
	}
	ch = newLoadedChannel(c.tenant, id)
	ch.mu.Lock()
	c.loaded[id] = ch
	return ch, true
}

// drop removes a channel from the cache. The caller has locked it.
func (c *channels) drop(ch *loadedChannel) {
	ch.gone = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded[ch.id] == ch {
		delete(c.loaded, ch.id)
	}
}

// lock returns the channel folded and locked; the caller unlocks it.
func (h *Hub) lock(ctx context.Context, id string) (*loadedChannel, error) {
	for {
		ch, fill := h.channels.claim(id)
		if fill {
			if err := h.guarded(func() error { return h.loadOpen(ctx, ch) }); err != nil {
				h.channels.drop(ch)
				ch.mu.Unlock()
				return nil, err
			}
			h.channels.unpark(ch)
			ch.touched = expect.InstantOf(h.now())
			h.advance(ch, ch.current())
			h.saveDue(ch)
			return ch, nil
		}
		ch.mu.Lock()
		if !ch.gone {
			ch.touched = expect.InstantOf(h.now())
			return ch, nil
		}
		ch.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "gave up on channel '%s': %v", id, err)
		}
	}
}

func errNoChannel(id string) error {
	return fault.New(fault.NotFound, "channel not found: '%s'", id).Because(fault.NoChannel)
}

// loadOpen is load, unless the channel's home is being deleted. The deletion waits for
// channels that were in the cache before.
func (h *Hub) loadOpen(ctx context.Context, ch *loadedChannel) error {
	if h.homes.closed(ch.id) {
		return errNoChannel(ch.id)
	}
	return h.load(ctx, ch)
}

// load folds a channel from what is durable.
func (h *Hub) load(ctx context.Context, ch *loadedChannel) error {
	place, err := h.journal.Place(ctx, h.shardOf(ch.id))
	if err != nil {
		return unavailable(err)
	}
	ch.term = place.Term
	if err := h.loadMeta(ctx, ch); err != nil {
		return err
	}
	h.stats.loaded.Add(1)
	ch.adapter = h.adapterOf(ch.meta.Manifest.Key())
	if ch.adapter == nil || ch.meta.State.Terminal() { // an ended channel is folded when its state is read
		return h.loadHeads(ctx, ch)
	}
	err = h.foldOrQuarantine(ctx, ch)
	if ch.broken() != nil {
		return h.loadHeads(ctx, ch)
	}
	return err
}

func (h *Hub) foldOrQuarantine(ctx context.Context, ch *loadedChannel) error {
	err := h.fold(ctx, ch)
	if err == nil || fault.Retryable(err) {
		return err
	}
	ch.ensureExtras().broken, ch.state = err, nil
	h.log.Error("channel is quarantined: it cannot be folded", "channel_id", ch.id, "error", err)
	return nil
}

// folded returns a channel's state, folding it first if needed. The channel is
// locked.
func (h *Hub) folded(ctx context.Context, ch *loadedChannel) (channel.State, error) {
	if ch.state == nil && ch.adapter != nil && ch.broken() == nil && ch.meta.State.Terminal() {
		if err := h.foldOrQuarantine(ctx, ch); err != nil {
			return nil, err
		}
	}
	if ch.state == nil {
		return nil, errNoState(ch)
	}
	return ch.state, nil
}

func (h *Hub) loadMeta(ctx context.Context, ch *loadedChannel) error {
	log := ch.logs.Meta()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{}) {
		if err != nil {
			return unavailable(err)
		}
		var first schema.Schedule
		if ch.meta, first, err = schema.ApplyMeta(ch.meta, entry.Data, h.shared); err != nil {
			return fault.Wrap(fault.Internal, err, "metadata of channel '%s' cannot be read: %v", ch.id, err)
		}
		if first != (schema.Schedule{}) {
			ch.watch.Active, ch.watch.NextCheck = expect.Instant(first.Active), expect.Instant(first.Check)
		}
		ch.heads.meta = entry.Seq
	}
	if ch.meta == nil {
		return errNoChannel(ch.id)
	}
	if ch.meta.ID == ch.id {
		ch.meta.ID = ch.id // one copy of the text is enough
	}
	return nil
}

// loadHeads reads the heads of the logs of a channel that is not folded.
func (h *Hub) loadHeads(ctx context.Context, ch *loadedChannel) error {
	history, err := h.journal.Head(ctx, ch.logs.History())
	if err != nil {
		return unavailable(err)
	}
	side, err := h.journal.Head(ctx, ch.logs.Side())
	if err != nil {
		return unavailable(err)
	}
	if err := h.loadSide(ctx, ch); fault.Retryable(err) {
		return err
	}
	ch.heads.history, ch.heads.side = history.Durable.Seq, side.Durable.Seq
	return nil
}

// Adapter returns the adapter that governs a channel.
func (h *Hub) Adapter(ctx context.Context, channelID string) (channel.Adapter, error) {
	m, err := h.Channel(ctx, channelID)
	if err != nil {
		return nil, err
	}
	a := h.adapterOf(m.Manifest.Key())
	if a == nil {
		return nil, h.errNoAdapter(m.Manifest.Key())
	}
	return a, nil
}

func (h *Hub) errNoAdapter(k channel.Key) error {
	h.adaptersMu.RLock()
	defer h.adaptersMu.RUnlock()
	loaded := make([]string, 0, len(h.adapters))
	for k := range h.adapters {
		loaded = append(loaded, fmt.Sprintf("%s version %d", k.Type, k.Version))
	}
	slices.Sort(loaded)
	return fault.New(fault.NotFound, "no adapter is loaded for %.100q version %d; there are %s", k.Type, k.Version, strings.Join(loaded, ", "))
}

func (h *Hub) adapterOf(k channel.Key) channel.Adapter {
	h.adaptersMu.RLock()
	defer h.adaptersMu.RUnlock()
	return h.adapters[k]
}

// UseAdapter adds an adapter or replaces one of the same key. Channels folded
// before keep the state they have; dormant ones stay dormant in this process.
func (h *Hub) UseAdapter(a channel.Adapter) {
	manifest := a.Manifest()
	h.adaptersMu.Lock()
	defer h.adaptersMu.Unlock()
	h.adapters[manifest.Key()] = a
}

// Quarantined lists the loaded channels that could not be folded, with why.
func (h *Hub) Quarantined() map[string]error {
	broken := map[string]error{}
	for _, ch := range h.channels.list() {
		ch.mu.Lock()
		if ch.broken() != nil {
			broken[ch.id] = ch.broken()
		}
		ch.mu.Unlock()
	}
	return broken
}

// Evict removes every idle channel from the cache. A channel is folded again when
// it is next used.
func (h *Hub) Evict() { h.evict(h.now().Add(time.Hour)) }

// evict removes channels that were not used since before, and while too many are
// loaded more of them, the least recently used first.
func (h *Hub) evict(before time.Time) {
	list := h.channels.list()
	excess := len(list) - h.channels.limit
	if excess > 0 {
		slices.SortFunc(list, func(a, b *loadedChannel) int { return cmp.Compare(a.lastTouch(), b.lastTouch()) })
	}
	for i, ch := range list {
		if !ch.mu.TryLock() {
			continue // in use
		}
		if (i < excess || ch.touched < expect.InstantOf(before)) && !ch.gone && ch.settled() {
			h.channels.park(ch)
			h.saveEvicted(ch)
			h.channels.drop(ch)
		}
		ch.mu.Unlock()
	}
}

func (ch *loadedChannel) lastTouch() expect.Instant {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.touched
}

// retryFold reports whether an append failed because the fold is out of date, so
// that the channel must be loaded again.
func retryFold(err error) bool {
	var conflict *journal.ConflictError
	return errors.As(err, &conflict) && (conflict.Kind == journal.TermConflict || conflict.Kind == journal.SequenceConflict)
}
