package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// board knows, for every open channel, whose turn it is and what it waits for, so that a
// summary need not read the channels. It is filled at first use. From then on each
// channel that changes is marked, which costs an admission one atomic operation, and is
// read again at the next use.
type board struct {
	on     atomic.Bool
	asking sync.Mutex // held while it is brought up to date

	mu      sync.Mutex
	changed map[string]struct{} // channels to look at again
	entries map[string]boardEntry
	byAgent map[string]map[string]struct{} // channels, by whose turn it is
}

// put replaces the entry of a channel; nil removes it. The board is locked.
func (b *board) put(id string, e *boardEntry) {
	if old, ok := b.entries[id]; ok && old.agent != "" {
		if delete(b.byAgent[old.agent], id); len(b.byAgent[old.agent]) == 0 {
			delete(b.byAgent, old.agent)
		}
	}
	if e == nil {
		delete(b.entries, id)
		return
	}
	b.entries[id] = *e
	if e.agent == "" {
		return
	}
	if b.byAgent[e.agent] == nil {
		b.byAgent[e.agent] = map[string]struct{}{}
	}
	b.byAgent[e.agent][id] = struct{}{}
}

// boardEntry is the board's entry of a channel.
type boardEntry struct {
	agent  string // whose turn it is; empty: nobody's
	human  bool
	since  expect.Instant
	due    expect.Instant // of the turn; 0: never
	dues   []expect.Instant
	open   int // requests
	broken bool
	waits  bool // for acks: it is pending
}

// maxNoted bounds the channels that wait to be read. If more change before the next use,
// the board is filled again.
const maxNoted = 1 << 16

// note records that a channel has changed.
func (b *board) note(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.on.Load() {
		return
	}
	if len(b.changed) >= maxNoted {
		b.on.Store(false)
		b.changed, b.entries, b.byAgent = nil, nil, nil
		return
	}
	b.changed[id] = struct{}{}
}

// noteChange records that a loaded channel has changed.
func (h *Hub) noteChange(ch *loadedChannel) {
	if h.board.on.Load() && !ch.noted.Swap(true) {
		h.board.note(ch.id)
	}
}

// Changed brings the board up to date, and returns the channels that have changed since
// the previous call. The first call reads every open channel, and returns none.
// Concurrent calls wait for each other.
func (h *Hub) Changed(ctx context.Context) ([]string, error) {
	h.board.asking.Lock()
	defer h.board.asking.Unlock()
	if !h.board.on.Load() {
		return nil, h.fillBoard(ctx)
	}
	return h.lookAgain(ctx)
}

func (h *Hub) fillBoard(ctx context.Context) error {
	b := &h.board
	b.mu.Lock()
	b.changed, b.entries, b.byAgent = map[string]struct{}{}, map[string]boardEntry{}, map[string]map[string]struct{}{}
	b.on.Store(true)
	b.mu.Unlock()
	for entry, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: []byte(schema.IndexOpen)}) {
		if err == nil {
			err = h.lookAt(ctx, schema.Listed(entry))
		}
		if err != nil {
			b.on.Store(false)
			return unavailable(err)
		}
	}
	return nil
}

// lookAgain reads the channels that have changed.
func (h *Hub) lookAgain(ctx context.Context) ([]string, error) {
	b := &h.board
	b.mu.Lock()
	changed := b.changed
	b.changed = map[string]struct{}{}
	b.mu.Unlock()
	ids := make([]string, 0, len(changed))
	for id := range changed {
		ids = append(ids, id)
		if err := h.lookAt(ctx, id); err != nil {
			b.on.Store(false) // so that the next call reads all again
			return ids, err
		}
	}
	return ids, nil
}

// lookAt reads a channel into the board. It does not keep a channel in memory that was
// not loaded.
func (h *Hub) lookAt(ctx context.Context, id string) error {
	loaded := h.channels.get(id)
	if loaded != nil {
		loaded.noted.Store(false)
	}
	var e boardEntry
	open := false
	_, err := answer(ctx, h, id, func(ch *loadedChannel) (struct{}, error) {
		e, open = h.boardEntryOf(ch)
		return struct{}{}, nil
	})
	if err != nil && !Deleted(err) && fault.CodeOf(err) != fault.Protocol {
		return err
	}
	if loaded == nil {
		h.unload(id)
	}
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.entries == nil {
		return nil // given up meanwhile
	}
	if open && (e.agent != "" || e.open > 0 || e.broken || e.waits) {
		h.board.put(id, &e)
	} else {
		h.board.put(id, nil)
	}
	return nil
}

// boardEntryOf reads a loaded channel, which is locked.
func (h *Hub) boardEntryOf(ch *loadedChannel) (e boardEntry, open bool) {
	if ch.meta.State.Terminal() {
		return e, false
	}
	e.broken, e.waits = ch.broken() != nil, ch.meta.State == channel.Pending
	if ch.extras != nil {
		for _, asked := range ch.extras.marks.Open {
			e.open++
			if !asked.DueAt.IsZero() {
				e.dues = append(e.dues, expect.InstantOf(asked.DueAt))
			}
		}
	}
	if turn := h.expectedIn(ch); turn != nil {
		e.agent, e.human, e.since = turn.Agent, h.registry.Human(turn.Agent), expect.InstantOf(turn.Since)
		e.due = expect.InstantOf(turn.Due)
	}
	return e, true
}

// unload removes a channel from the cache if it has no pending batch.
func (h *Hub) unload(id string) {
	ch := h.channels.get(id)
	if ch == nil || !ch.mu.TryLock() {
		return
	}
	defer ch.mu.Unlock()
	if !ch.gone && ch.settled() {
		h.channels.park(ch)
		h.saveEvicted(ch)
		h.channels.drop(ch)
	}
}

// TurnsOf counts the turns that wait for an identity.
type TurnsOf struct {
	Waiting int
	Oldest  time.Time // since when the first of them waits
}

// WaitingTurns counts the turns that wait for an identity, as of the last call of
// Changed.
func (h *Hub) WaitingTurns(agent string) (t TurnsOf) {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	for id := range h.board.byAgent[agent] {
		if since := h.board.entries[id].since.Time(); t.Waiting == 0 || since.Before(t.Oldest) {
			t.Oldest = since
		}
		t.Waiting++
	}
	return t
}

// Summary has counts of channels, agents, tasks, turns and requests.
type Summary struct {
	Pending, Active, Overdue, WaitingForPeople, Quarantined int
	ByType                                                  map[string]int
	Registered, Online, People                              int
	Requests, RequestsSoon, RequestsOverdue                 int   // open; due within 5 minutes; past due
	TurnsFailed                                             int64 // since the hub was opened
}

// Waiting counts overdue turns and open requests, as of the last call of Changed;
// known is false before the first.
func (h *Hub) Waiting() (overdue, requests int, known bool) {
	now := expect.InstantOf(h.now())
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	for _, e := range h.board.entries {
		requests += e.open
		if !e.due.IsZero() && e.due < now {
			overdue++
		}
	}
	return overdue, requests, h.board.entries != nil
}

// soon is how far ahead a summary looks for requests that become due.
const soon = 5 * time.Minute

// Summary counts, as of the last call of Changed.
func (h *Hub) Summary(ctx context.Context) (Summary, error) {
	open, err := h.openChannels(ctx)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{ByType: map[string]int{}, TurnsFailed: h.stats.turnsFailed.Load()}
	for key, n := range open {
		if n > 0 {
			s.ByType[key.Type] += int(n)
			s.Active += int(n)
		}
	}
	now := expect.InstantOf(h.now())
	h.board.mu.Lock()
	for _, e := range h.board.entries {
		s.Requests += e.open
		for _, due := range e.dues {
			switch {
			case due < now:
				s.RequestsOverdue++
			case due < now.Plus(soon):
				s.RequestsSoon++
			}
		}
		if e.broken {
			s.Quarantined++
		}
		if e.waits {
			s.Pending++
		}
		if e.agent != "" && e.human {
			s.WaitingForPeople++
		}
		if !e.due.IsZero() && e.due < now {
			s.Overdue++
		}
	}
	h.board.mu.Unlock()
	s.Active = max(s.Active-s.Pending, 0)
	for _, m := range h.registry.All() {
		s.Registered++
		if m.Link.Present() {
			s.Online++
		}
		if h.registry.Human(m.ID) {
			s.People++
		}
	}
	return s, nil
}

// turnsByDue lists the channels that are overdue, or in which one of some agents is
// expected, by when the turn is due, as of the last call of Changed; ok is false if the
// options request another list or the board is not filled.
func (h *Hub) turnsByDue(o ListOptions) (list []listPlace, ok bool) {
	if o.Sort != ByDue || !o.Overdue && o.WaitingFor == nil {
		return nil, false
	}
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.entries == nil {
		return nil, false
	}
	add := func(id string, e boardEntry) {
		due := e.due
		if due.IsZero() {
			due = expect.Never
		}
		place := fmt.Sprintf("%016x.%s", int64(due), id)
		if behind := strings.Compare(place, o.After); o.After == "" || o.Newest && behind < 0 || !o.Newest && behind > 0 {
			list = append(list, listPlace{id, place})
		}
	}
	if o.WaitingFor != nil {
		for _, agent := range o.WaitingFor {
			for id := range h.board.byAgent[agent] {
				add(id, h.board.entries[id])
			}
		}
	} else {
		now := expect.InstantOf(h.now())
		for id, e := range h.board.entries {
			if !e.due.IsZero() && e.due < now {
				add(id, e)
			}
		}
	}
	slices.SortFunc(list, func(a, b listPlace) int {
		if o.Newest {
			a, b = b, a
		}
		return strings.Compare(a.place, b.place)
	})
	return list, true
}

// PeoplesTurns lists the turns that people are to take, the first due first, as of the
// last call of Changed. It has neither triggers nor when turns were handed over.
func (h *Hub) PeoplesTurns() []Expected {
	now := h.now()
	h.board.mu.Lock()
	var turns []Expected
	for id, e := range h.board.entries {
		if e.agent != "" && e.human {
			t := Expected{Channel: id, Agent: e.agent, Since: e.since.Time()}
			if !e.due.IsZero() {
				t.Due = e.due.Time()
				t.Overdue = t.Due.Before(now)
			}
			turns = append(turns, t)
		}
	}
	h.board.mu.Unlock()
	slices.SortFunc(turns, func(a, b Expected) int {
		return cmp.Or(dueFirst(a.Due, b.Due), a.Since.Compare(b.Since), cmp.Compare(a.Channel, b.Channel))
	})
	return turns
}

// dueFirst orders by when something is due; what never is comes last.
func dueFirst(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// Invitation is an invitation that has not been answered.
type Invitation struct {
	Channel *channel.Metadata
	Agent   string
	Due     time.Time
}

// Invitations lists those for one of these agents, the first due first. It reads a
// bounded number of channels.
func (h *Hub) Invitations(ctx context.Context, agents []string) (list []Invitation, err error) {
	scanned := 0
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexDue, schema.DueInvite, "")}
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return nil, unavailable(err)
		}
		if scanned++; scanned > maxScanned {
			break
		}
		m, err := h.Channel(ctx, schema.LastPart(entry.Key))
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.State != channel.Pending {
			continue
		}
		for _, agent := range m.PendingAcks {
			if slices.Contains(agents, agent) {
				list = append(list, Invitation{m, agent, m.CreatedAt.Add(h.opts.InviteAckTimeout)})
			}
		}
	}
	return list, nil
}
