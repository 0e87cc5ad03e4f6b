package api

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/hub"
)

// markEvery is how many envelopes are between two kept states. A seek folds at most
// so many.
const markEvery = 1024

// mostMarks bounds the kept states of one channel, in bytes of context variables. For
// a channel with larger variables fewer are kept, and a seek folds more.
const mostMarks = 1 << 20

// moment is a channel as it was after an envelope. It is immutable.
type moment struct {
	sequence uint64
	state    channel.State
	life     channel.Lifecycle
	reason   string
	writers  map[string]writer // who wrote each context variable last
	envelope string
	at       time.Time
	since    time.Time // since when it was the expected agent's turn
	expected string
	removed  []string // participants that may not speak any more; never changed in place
}

// writer is the envelope that wrote a context variable.
type writer struct {
	sequence         uint64
	envelope, sender string
}

// history folds one channel's past. States share memory, so that keeping one in 1,024
// costs little.
type history struct {
	mu    sync.Mutex
	marks []moment // by sequence: 0, 1024, 2048, …, without a gap
	bytes int      // of the variables in them
	used  time.Time
}

// pasts keeps the histories of the channels that were used most recently.
type pasts struct {
	mu   sync.Mutex
	most int
	of   map[string]*history
}

func newPasts(most int) *pasts { return &pasts{most: max(most, 1), of: map[string]*history{}} }

// history returns a channel's history. If there are too many, it drops the least
// recently used one.
func (p *pasts) history(id string, now time.Time) *history {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.of[id]
	if !ok {
		if len(p.of) >= p.most {
			oldest := ""
			for id, h := range p.of {
				if oldest == "" || h.used.Before(p.of[oldest].used) {
					oldest = id
				}
			}
			delete(p.of, oldest)
		}
		h = &history{}
		p.of[id] = h
	}
	h.used = now
	return h
}

// seek returns the channel as it was after a sequence.
func (a *API) seek(ctx context.Context, m *channel.Metadata, to uint64) (moment, error) {
	adapter, err := a.hub.Adapter(ctx, m.ID)
	if err != nil {
		return moment{}, err
	}
	h := a.pasts.history(m.ID, time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) == 0 {
		first, err := beginning(adapter, m)
		if err != nil {
			return moment{}, err
		}
		h.marks = append(h.marks, first)
	}
	at := h.marks[min(int(to/markEvery), len(h.marks)-1)]
	if at.sequence == to {
		return at, nil
	}
	for e, err := range a.hub.Log(ctx, m.ID, at.sequence+1, to) {
		if err != nil {
			return moment{}, err
		}
		if err := ctx.Err(); err != nil {
			return moment{}, err
		}
		at = at.after(adapter, m, e)
		if at.sequence%markEvery == 0 && at.sequence/markEvery == uint64(len(h.marks)) {
			h.keep(at)
		}
	}
	return at, nil
}

// keep adds a mark, unless the channel's marks would exceed mostMarks.
func (h *history) keep(at moment) {
	weight := 0
	if s, ok := at.state.(*workflow.State); ok {
		weight = s.Facts.Vars.Size()
	}
	if h.bytes+weight <= mostMarks {
		h.marks, h.bytes = append(h.marks, at), h.bytes+weight
	}
}

// beginning is a channel before its first envelope.
func beginning(adapter channel.Adapter, m *channel.Metadata) (moment, error) {
	state, err := adapter.Initial(m)
	if err != nil {
		return moment{}, fault.Wrap(fault.Protocol, err, "channel '%s' cannot be folded: %v", m.ID, err)
	}
	life := channel.Pending
	if adapter.Opening() == channel.AtOnce {
		life = channel.Active
	}
	first := moment{state: state, life: life, at: m.CreatedAt, since: m.CreatedAt, writers: map[string]writer{}}
	for key := range variables(state) {
		first.writers[key] = writer{sender: m.Creator}
	}
	if turn, ok := adapter.Expected(m, state); ok {
		first.expected = turn.Agent
	}
	return first, nil
}

// after returns the moment after an envelope.
func (t moment) after(adapter channel.Adapter, m *channel.Metadata, e *envelope.Envelope) moment {
	next := t
	next.sequence, next.envelope, next.at = e.Seq, e.ID, e.CreatedAt
	next.state = adapter.Fold(t.state, e)
	if hub.HubMade(e) { // anyone may post an event of these types, without effect
		next.notice(e)
	}
	next.writers = rewritten(t.writers, e)
	next.expected = ""
	if turn, ok := adapter.Expected(m, next.state); ok && !next.life.Terminal() {
		next.expected = turn.Agent
	}
	if next.expected != t.expected || e.Sender == t.expected {
		next.since = e.CreatedAt
	}
	return next
}

// notice applies an envelope that the hub made.
func (t *moment) notice(e *envelope.Envelope) {
	var body struct {
		Reason string `json:"reason"`
		Agent  string `json:"agent_id"`
	}
	_ = json.Unmarshal(e.Data, &body) // the hub's envelopes always decode
	switch e.Type {
	case envelope.TypeOpened:
		t.life = channel.Active
	case envelope.TypeClosed:
		t.life, t.reason = channel.Closed, body.Reason
	case envelope.TypeExpired:
		t.life, t.reason = channel.Expired, body.Reason
	case envelope.TypeRemoved:
		t.removed = append(slices.Clip(t.removed), body.Agent)
	}
}

// rewritten records who wrote which variables. Most envelopes write none, and then
// the map is shared.
func rewritten(writers map[string]writer, e *envelope.Envelope) map[string]writer {
	var update graph.Update
	switch e.Type {
	case envelope.TypeContextSet:
		update, _ = graph.ReadUpdate(e.Data)
	case envelope.TypePacket:
		update = graph.ReadPacket(e.Data).Updates
	}
	if len(update.Set) == 0 && len(update.Delete) == 0 {
		return writers
	}
	next := maps.Clone(writers)
	for _, key := range update.Delete {
		delete(next, key)
	}
	for _, v := range update.Set {
		next[v.Key] = writer{e.Seq, e.ID, e.Sender}
	}
	return next
}

// variables yields a workflow's context variables; other states have none.
func variables(state channel.State) func(func(string, string) bool) {
	if s, ok := state.(*workflow.State); ok {
		return s.Facts.Vars.All()
	}
	return func(func(string, string) bool) {}
}
