package hub

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
)

// Endpoint is where an identity reads: a connection, or an Inbox in process.
type Endpoint interface {
	// ID names the endpoint for as long as it lives.
	ID() string
	// Deliver queues a notice without waiting. An endpoint whose queue is full
	// cuts itself off; what it missed is replayed when it comes back.
	Deliver(n *Notice) error
	// Replay queues a notice and waits for room.
	Replay(ctx context.Context, n *Notice) error
	// CutOff ends the endpoint with a reason, because it missed something.
	CutOff(why error)
}

// link is an identity's bond to the endpoint it reads at. The last one to bind
// wins.
type link struct {
	mu       sync.Mutex
	endpoint Endpoint
	// replay, while an endpoint is brought up to date, keeps what arrives
	// meanwhile.
	replay *replaying
}

type replaying struct {
	kept  []*Notice
	limit int
	upTo  map[string]uint64 // by channel: the last sequence replayed
}

// deliver hands a notice to the endpoint, if there is one; arrived is called
// before, so that counters never lag behind an answer.
func (l *link) deliver(n *Notice, arrived func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endpoint == nil {
		return nil
	}
	arrived()
	if l.replay == nil {
		return l.endpoint.Deliver(n)
	}
	if limit := l.replay.limit; len(l.replay.kept) >= limit {
		err := fault.New(fault.SlowReader, "more than %d deliveries arrived during a replay (limits.replay)", limit)
		l.endpoint.CutOff(err)
		l.endpoint, l.replay = nil, nil
		return err
	}
	l.replay.kept = append(l.replay.kept, n)
	return nil
}

// bound reports whether anyone is there to be told.
func (l *link) bound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint != nil
}

func (l *link) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoint, l.replay = nil, nil
}

// Bind makes an endpoint the one where an identity reads.
func (h *Hub) Bind(agent string, at Endpoint) error {
	_, err := h.bind(agent, at, nil)
	return err
}

// BindReplaying does the same and replays what the identity has not acked,
// after since: an id, or empty for everything. Live deliveries follow the
// replay, without gap or repeat.
func (h *Hub) BindReplaying(ctx context.Context, agent string, at Endpoint, since string) error {
	r := &replaying{limit: h.opts.Limits.Replay, upTo: map[string]uint64{}}
	m, err := h.bind(agent, at, r)
	if err != nil {
		return err
	}
	err = h.replayAll(ctx, m, at, r, since)
	h.afterDelivery(func() {
		if done := m.link.goLive(r); done != nil && err == nil {
			err = done
		}
	})
	return err
}

func (h *Hub) bind(agent string, at Endpoint, r *replaying) (*member, error) {
	if at == nil {
		return nil, fault.New(fault.NotFound, "endpoint not attached")
	}
	m := h.registry.byID(agent)
	if m == nil {
		return nil, fault.New(fault.NotFound, "agent not registered: '%s'", agent)
	}
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	m.link.endpoint, m.link.replay = at, r
	return m, nil
}

// goLive ends a replay: what arrived meanwhile follows, less what the replay
// already had.
func (l *link) goLive(r *replaying) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replay != r {
		return nil // bound anew, or cut off
	}
	l.replay = nil
	for _, n := range r.kept {
		if n.Envelope.Seq <= r.upTo[n.Channel.ID] {
			continue
		}
		if err := l.endpoint.Deliver(n); err != nil {
			return err
		}
	}
	return nil
}

// Unbind ends what an endpoint is bound to; identities bound elsewhere since
// stay.
func (h *Hub) Unbind(at Endpoint, agents ...string) {
	for _, id := range agents {
		m := h.registry.byID(id)
		if m == nil {
			continue
		}
		m.link.mu.Lock()
		if m.link.endpoint == at {
			m.link.endpoint, m.link.replay = nil, nil
		}
		m.link.mu.Unlock()
	}
}

// Bound reports the endpoint at which an identity reads, if any.
func (h *Hub) Bound(agent string) (endpointID string, ok bool) {
	m := h.registry.byID(agent)
	if m == nil {
		return "", false
	}
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	if m.link.endpoint == nil {
		return "", false
	}
	return m.link.endpoint.ID(), true
}
