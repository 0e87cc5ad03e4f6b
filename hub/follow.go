package hub

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Event is one envelope of a channel as a follower sees it.
type Event struct {
	Envelope *envelope.Envelope
	Shared   *Shared
	// Position is where to resume after this event. A live event has the
	// position of the durable one before it.
	Position journal.Position
	Live     bool
	Side     bool // it is live for followers, and stored in the side log
}

// FollowOptions says how to follow.
type FollowOptions struct {
	As    string           // whose view; empty sees everything
	After journal.Position // zero: from the start
	// FromNow starts after what is durable, and ignores After.
	FromNow bool
	Queue   int // events kept before falling back to the journal; 0: 256
	Bytes   int // their payloads' bytes; 0: 8 MiB
	// Strict ends a follower with slow_reader if it falls a queue behind after it has once
	// caught up, or if it would lose a live event: a long replay alone is not slowness.
	// Otherwise a follower that is behind reads the journal, and live events are dropped
	// and counted when the queue is full.
	Strict bool
}

// Follower follows one channel: durable events without gap or repeat, and
// live ones in their place. It is used by one goroutine, apart from Close.
type Follower struct {
	hub     *Hub
	channel string
	as      string
	sub     *subscription
	head    journal.Head // epoch and incarnation of the log
	seq     uint64       // last durable sequence handed out or passed over
	page    []journal.Entry
}

// Gap is the refusal of a position that no longer exists. Head is where to
// start again.
type Gap struct {
	Want, Head journal.Position
	Reason     string
}

func (g *Gap) Error() string {
	return "position " + g.Want.String() + " does not exist: " + g.Reason + "; the log ends at " + g.Head.String()
}

// Unwrap gives the gap its code.
func (g *Gap) Unwrap() error { return fault.New(fault.Gap, "%s", g.Error()) }

var errFollowerClosed = fault.New(fault.Unavailable, "the follower is closed")

// Follow follows a channel after a position.
func (h *Hub) Follow(ctx context.Context, channelID string, o FollowOptions) (*Follower, error) {
	if _, err := h.Channel(ctx, channelID); err != nil {
		return nil, err
	}
	f := &Follower{hub: h, channel: channelID, as: o.As, sub: h.subscribe(channelID, o)}
	if err := f.mayRead(ctx); err != nil {
		f.Close()
		return nil, err
	}
	heads, err := h.journal.Head(ctx, f.log())
	if err != nil {
		f.Close()
		return nil, unavailable(err)
	}
	f.head = heads.Durable
	f.sub.reached(f.head.Seq)
	if o.FromNow {
		o.After = f.head.Position()
	}
	if err := f.start(o.After); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Follower) log() journal.LogName {
	return f.hub.tenant.Channel(f.channel).History()
}

// start checks that the position is one of this log's.
func (f *Follower) start(after journal.Position) error {
	f.seq = after.Seq
	gap := &Gap{Want: after, Head: f.head.Position()}
	switch {
	case after.IsZero():
		return nil
	case after.Epoch != f.head.Epoch:
		gap.Reason = "the epoch has changed"
	case after.Incarnation != f.head.Incarnation:
		gap.Reason = "the log was dropped"
	case after.Seq > f.head.Seq:
		gap.Reason = "it is beyond the end"
	default:
		return nil
	}
	return gap
}

// Position is where to resume after what was handed out.
func (f *Follower) Position() journal.Position {
	return journal.Position{Epoch: f.head.Epoch, Incarnation: f.head.Incarnation, Seq: f.seq}
}

// Close ends the follower; Next then returns an error.
func (f *Follower) Close() { f.hub.unsubscribe(f.sub) }

// Next waits for the next event that the follower may see.
func (f *Follower) Next(ctx context.Context) (Event, error) {
	for {
		ev, wake, err := f.TryNext(ctx)
		if err != nil || wake == nil {
			return ev, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// TryNext returns the next event if there is one, and otherwise a channel that is closed
// when there may be one.
func (f *Follower) TryNext(ctx context.Context) (Event, <-chan struct{}, error) {
	for {
		ev, wake, err := f.next(ctx)
		if err != nil || wake != nil {
			return Event{}, wake, err
		}
		sees, err := f.sees(ctx, ev.Envelope)
		if err != nil {
			f.sub.close(err) // the event is taken; continuing would skip it
			return Event{}, nil, err
		}
		if sees {
			return ev, nil, nil
		}
	}
}

func (f *Follower) sees(ctx context.Context, e *envelope.Envelope) (bool, error) {
	if f.as == "" {
		return true, nil
	}
	s := f.sub.snapshot()
	if s == nil || s.history < e.Seq { // read from the journal before its delivery
		var err error
		if s, err = f.hub.snapshot(ctx, f.channel, e.Seq); err != nil {
			return false, err
		}
	}
	return f.hub.sees(ctx, s, e, f.as)
}

// mayRead refuses a viewer who does not belong to the channel.
func (f *Follower) mayRead(ctx context.Context) error {
	if f.as == "" {
		return nil
	}
	s, err := f.hub.snapshot(ctx, f.channel, 0)
	if err != nil {
		return err
	}
	member, err := f.hub.isMember(ctx, s, f.as)
	if err != nil {
		return err
	}
	if !member {
		return fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s'", f.as, f.channel)
	}
	f.sub.show(s)
	return nil
}

func (f *Follower) next(ctx context.Context) (Event, <-chan struct{}, error) {
	for {
		if len(f.page) > 0 {
			entry := f.page[0]
			f.page = f.page[1:]
			e, err := schema.DecodeEnvelope(entry)
			if err != nil {
				return Event{}, nil, err
			}
			f.seq = entry.Seq
			return Event{Envelope: e, Shared: &Shared{}, Position: f.Position()}, nil, nil
		}
		ev, readTo, wake, err := f.sub.take(f.seq)
		switch {
		case err != nil:
			return Event{}, nil, err
		case readTo > f.seq:
			if err := f.read(ctx, readTo); err != nil {
				return Event{}, nil, err
			}
		case ev.Envelope != nil:
			if !ev.Live {
				f.seq = ev.Envelope.Seq
			}
			ev.Position = f.Position()
			return ev, nil, nil
		default:
			return Event{}, wake, nil
		}
	}
}

// read fetches a page of what the queue does not hold.
func (f *Follower) read(ctx context.Context, to uint64) error {
	page, err := f.hub.journal.Read(ctx, f.log(), journal.ReadOptions{From: f.seq + 1, To: to, Incarnation: f.head.Incarnation})
	var gap *journal.GapError
	if errors.As(err, &gap) || err == nil && len(page.Entries) == 0 {
		return &Gap{Want: f.Position(), Reason: "the log was dropped"}
	}
	if err != nil {
		return unavailable(err)
	}
	if f.head.Incarnation == 0 {
		f.head = page.Head // it began while we followed
	}
	f.page = page.Entries
	return nil
}

// subscriptions are the followers of each channel.
type subscriptions struct {
	mu   sync.RWMutex
	subs map[string][]*subscription
}

// subscription is the queue between delivery and one follower. When it is full
// it is emptied: the follower then reads the journal, and only live events are
// lost.
type subscription struct {
	channel string
	limit   int
	most    int // bytes
	strict  bool

	mu     sync.Mutex
	caught bool // the follower has once handed out everything there was
	queue  []Event
	mark   uint64        // the last durable sequence delivered
	bytes  int           // of the queue's payloads
	lost   *atomic.Int64 // live events dropped
	newest *snapshot     // of the channel, as far as it was delivered
	closed error
	wake   chan struct{}
	waited bool // someone holds wake
}

func (h *Hub) subscribe(channelID string, o FollowOptions) *subscription {
	s := &subscription{
		channel: channelID, limit: o.Queue, most: o.Bytes, strict: o.Strict, caught: o.FromNow,
		lost: &h.stats.lostLive, wake: make(chan struct{}),
	}
	if s.limit <= 0 {
		s.limit = 256
	}
	if s.most <= 0 {
		s.most = 8 << 20
	}
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	if h.subs.subs == nil {
		h.subs.subs = map[string][]*subscription{}
	}
	h.subs.subs[channelID] = append(h.subs.subs[channelID], s)
	return s
}

func (h *Hub) unsubscribe(s *subscription) {
	h.subs.mu.Lock()
	list := h.subs.subs[s.channel]
	for i, other := range list {
		if other == s {
			h.subs.subs[s.channel] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(h.subs.subs[s.channel]) == 0 {
		delete(h.subs.subs, s.channel)
	}
	h.subs.mu.Unlock()
	s.close(errFollowerClosed)
}

func (h *Hub) followers(channelID string) []*subscription {
	h.subs.mu.RLock()
	defer h.subs.mu.RUnlock()
	return h.subs.subs[channelID]
}

// publish shows an event to the channel's followers.
func (h *Hub) publish(ch *loadedChannel, ev Event) {
	for _, s := range h.followers(ch.id) {
		s.put(ev, ch.durable.Load())
	}
}

// showFollowers tells the channel's followers of a change without an event.
func (h *Hub) showFollowers(ch *loadedChannel) {
	for _, s := range h.followers(ch.id) {
		s.show(ch.durable.Load())
	}
}

// show sets the channel's newest snapshot, unless a later one is known.
func (s *subscription) show(newest *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil || s.newest.history <= newest.history {
		s.newest = newest
	}
}

func (s *subscription) snapshot() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

func (s *subscription) put(ev Event, newest *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = newest
	if s.closed != nil {
		return
	}
	if len(s.queue) >= s.limit || len(s.queue) > 0 && s.bytes+len(ev.Envelope.Data) > s.most {
		if s.overflow(); s.closed != nil {
			s.signal()
			return
		}
	}
	s.bytes += len(ev.Envelope.Data)
	s.queue = append(s.queue, ev)
	if !ev.Live {
		s.mark = max(s.mark, ev.Envelope.Seq)
	}
	s.signal()
}

// overflow empties the queue: the follower reads durable events from the
// journal, unless it is a strict one that must end.
func (s *subscription) overflow() {
	tooSlow := s.strict && s.caught
	for _, old := range s.queue {
		if old.Live {
			s.lost.Add(1)
			tooSlow = tooSlow || s.strict
		}
	}
	if tooSlow {
		s.closed = fault.New(fault.SlowReader, "the follower is %d events or %d bytes behind; resume from its position", len(s.queue), s.bytes)
	}
	clear(s.queue)
	s.queue, s.bytes = s.queue[:0], 0
}

// reached says that the journal can be read up to a sequence.
func (s *subscription) reached(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = max(s.mark, seq)
	s.signal()
}

// signal wakes a waiting follower; a busy one sees the change on its next read.
func (s *subscription) signal() {
	if !s.waited {
		return
	}
	close(s.wake)
	s.wake, s.waited = make(chan struct{}), false
}

func (s *subscription) close(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = why
		s.signal()
	}
}

// take returns what follows after seq: an event of the queue, or up to where
// the journal must be read first, or what to wait for.
func (s *subscription) take(seq uint64) (ev Event, readTo uint64, wake <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return Event{}, 0, nil, s.closed
	}
	for len(s.queue) > 0 && !s.queue[0].Live && s.queue[0].Envelope.Seq <= seq {
		s.bytes -= len(s.queue[0].Envelope.Data)
		s.queue = s.queue[1:]
	}
	queued := s.mark + 1
	for _, next := range s.queue {
		if !next.Live {
			queued = next.Envelope.Seq
			break
		}
	}
	if queued > seq+1 {
		return Event{}, queued - 1, nil, nil
	}
	s.caught = true
	if len(s.queue) > 0 {
		ev, s.queue = s.queue[0], s.queue[1:]
		s.bytes -= len(ev.Envelope.Data)
		return ev, 0, nil, nil
	}
	s.waited = true
	return Event{}, 0, s.wake, nil
}
