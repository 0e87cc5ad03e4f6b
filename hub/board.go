package hub

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	internalboard "github.com/parley-hub/parley/hub/internal/board"
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
	changed map[string]struct{}  // channels to look at again
	known   *internalboard.Board // nil: it is not filled
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
		b.changed, b.known = nil, nil
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
	return h.refreshBoard(ctx)
}

func (h *Hub) fillBoard(ctx context.Context) error {
	b := &h.board
	b.mu.Lock()
	b.changed, b.known = map[string]struct{}{}, internalboard.New()
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

// refreshBoard reads the channels that have changed.
func (h *Hub) refreshBoard(ctx context.Context) ([]string, error) {
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
	var e internalboard.Entry
	_, err := answer(ctx, h, id, func(ch *loadedChannel) (struct{}, error) {
		e = h.boardEntryOf(ch)
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
	if h.board.known != nil { // else given up meanwhile
		h.board.known.Put(id, e)
	}
	return nil
}

// boardEntryOf reads a loaded channel, which is locked. One that has ended waits for
// nothing.
func (h *Hub) boardEntryOf(ch *loadedChannel) (e internalboard.Entry) {
	if ch.meta.State.Terminal() {
		return e
	}
	e.Broken, e.Pending = ch.broken() != nil, ch.meta.State == channel.Pending
	if ch.extras != nil {
		for _, asked := range ch.extras.marks.Open {
			e.Requests++
			if !asked.DueAt.IsZero() {
				e.Dues = append(e.Dues, expect.InstantOf(asked.DueAt))
			}
		}
	}
	if turn := h.expectedIn(ch); turn != nil {
		e.Agent, e.Human, e.Since = turn.Agent, h.registry.Human(turn.Agent), expect.InstantOf(turn.Since)
		e.Due = expect.InstantOf(turn.Due)
	}
	return e
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
	Waiting, Overdue int
	Oldest           time.Time // since when the first of them waits
}

// WaitingTurns counts the turns that wait for an identity, as of the last call of
// Changed.
func (h *Hub) WaitingTurns(agent string) (t TurnsOf) {
	now := expect.InstantOf(h.now())
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.known == nil {
		return t
	}
	var oldest expect.Instant
	if t.Waiting, t.Overdue, oldest = h.board.known.Waiting(agent, now); t.Waiting > 0 {
		t.Oldest = oldest.Time()
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
	c, known := h.boardCounts()
	return c.Overdue, c.Requests, known
}

// boardCounts counts what the board has; known is false if it is not filled.
func (h *Hub) boardCounts() (c internalboard.Counts, known bool) {
	now := expect.InstantOf(h.now())
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.known == nil {
		return c, false
	}
	return h.board.known.Count(now, now.Plus(soon)), true
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
	c, _ := h.boardCounts()
	s.Requests, s.RequestsSoon, s.RequestsOverdue = c.Requests, c.RequestsSoon, c.RequestsOverdue
	s.Quarantined, s.Pending, s.WaitingForPeople, s.Overdue = c.Broken, c.Pending, c.OfPeople, c.Overdue
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

// turnsAtOnce is how many turns are copied from the board at once.
const turnsAtOnce = 256

// turnsByDue yields the channels that are overdue, or in which one of some agents is
// expected, by when the turn is due, as of the last call of Changed; ok is false if the
// options request another list or the board is not filled.
func (h *Hub) turnsByDue(o ListOptions) (turns iter.Seq[listPlace], ok bool) {
	if o.Sort != ByDue || !o.Overdue && o.WaitingFor == nil {
		return nil, false
	}
	q := internalboard.Query{Agents: o.WaitingFor, After: o.After, Newest: o.Newest, Limit: turnsAtOnce}
	q.People = len(q.Agents) > 1 && !slices.ContainsFunc(q.Agents, func(id string) bool { return !h.registry.Human(id) })
	if o.Overdue {
		q.Until = expect.InstantOf(h.now())
	}
	if _, _, known := h.Waiting(); !known {
		return nil, false
	}
	return func(yield func(listPlace) bool) {
		for {
			list, next := h.boardTurns(q)
			for _, t := range list {
				if !yield(listPlace{t.Channel, t.Place}) {
					return
				}
			}
			if q.After = next; next == "" {
				return
			}
		}
	}, true
}

func (h *Hub) boardTurns(q internalboard.Query) (list []internalboard.Turn, next string) {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.known == nil {
		return nil, ""
	}
	return h.board.known.Turns(q)
}

// ExpectedQuery selects turns.
type ExpectedQuery struct {
	Agent  string // only its turns; empty: those of all people
	After  string // the place after which the page begins: Next of the page before
	Newest bool   // the last due first
	Limit  int
}

// ListedTurn is a turn with its place in a list.
type ListedTurn struct {
	Expected
	Place string
}

// ExpectedTurns lists the turns that an identity, or people, are to take, the first due
// first, as of the last call of Changed. Unlike Turns it hands nothing over. Next
// continues after the last, and is empty at the end; a page may be short.
func (h *Hub) ExpectedTurns(ctx context.Context, q ExpectedQuery) (turns []ListedTurn, next string, err error) {
	from := internalboard.Query{People: q.Agent == "", After: q.After, Newest: q.Newest, Limit: q.Limit}
	if q.Agent != "" {
		from.Agents = []string{q.Agent}
	}
	list, next := h.boardTurns(from)
	for _, at := range list {
		turn, err := answer(ctx, h, at.Channel, func(ch *loadedChannel) (*Expected, error) { return h.expectedIn(ch), nil })
		if err != nil && !Deleted(err) && fault.CodeOf(err) != fault.Protocol {
			return nil, "", err
		}
		if err == nil && turn != nil && turn.Agent == at.Agent {
			turns = append(turns, ListedTurn{*turn, at.Place})
		}
	}
	return turns, next, nil
}

// Invitation is an invitation that has not been answered.
type Invitation struct {
	Channel *channel.Metadata
	Agent   string
	Due     time.Time
	Place   string // in a list
}

// InvitationQuery selects invitations.
type InvitationQuery struct {
	Of     func(agent string) bool
	After  string // the place after which the page begins: Next of the page before
	Newest bool   // the last due first
	Limit  int
}

// Invitations lists invitations, the first due first. It reads a bounded number of
// channels: a page may be short, and Next continues.
func (h *Hub) Invitations(ctx context.Context, q InvitationQuery) (list []Invitation, next string, err error) {
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexDue, schema.DueInvite, ""), Backward: q.Newest}
	end := ".~" // behind every agent of a channel
	if q.Newest {
		end = "."
	}
	if cut := strings.LastIndexByte(q.After, '.'); cut > 0 {
		at := append(slices.Clone(scan.Prefix), strings.Replace(q.After[:cut], ".", "/", 1)...)
		if scan.From = at; q.Newest {
			scan.From, scan.To = nil, append(at, 0)
		}
	}
	scanned, last := 0, ""
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		if scanned++; scanned > maxScanned {
			return list, last, nil
		}
		at := ByDue.place(entry)
		m, err := h.Channel(ctx, at.id)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, "", err
		}
		if err == nil && m.State == channel.Pending {
			for _, i := range h.invitations(m, at.place, q) {
				if len(list) == q.Limit {
					return list, last, nil
				}
				last, list = i.Place, append(list, i)
			}
		}
		last = at.place + end
	}
	return list, "", nil
}

// invitations lists those of a channel that a query selects.
func (h *Hub) invitations(m *channel.Metadata, place string, q InvitationQuery) (list []Invitation) {
	for _, agent := range m.PendingAcks {
		i := Invitation{m, agent, m.CreatedAt.Add(h.opts.InviteAckTimeout), place + "." + agent}
		if behind := strings.Compare(i.Place, q.After); q.Of(agent) && (q.After == "" || behind != 0 && q.Newest == (behind < 0)) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b Invitation) int {
		if q.Newest {
			a, b = b, a
		}
		return strings.Compare(a.Place, b.Place)
	})
	return list
}
