package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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

// Attachment says how an endpoint reads for an identity.
type Attachment struct {
	// Reader names what reads, for example a dialect's queue. Each reader of an
	// identity has cursors of its own and is told everything. Of several
	// endpoints with the same reader the last one takes the place of the one
	// before; AG2's have none.
	Reader string
	// Dialect, if set, replays the channels that only this dialect shows, too.
	Dialect string
	// Replay sends what the reader has not acked, after Since: an id, or empty
	// for everything. Live deliveries follow, without gap or repeat.
	Replay bool
	Since  string
}

// link is an identity's bonds to the endpoints it reads at, one for each reader.
type link struct {
	mu    sync.Mutex
	bonds []*bond
}

// bond is one endpoint of an identity.
type bond struct {
	Attachment
	endpoint Endpoint
	since    time.Time
	// replay, while the endpoint is brought up to date, keeps what arrives
	// meanwhile.
	replay *replaying
}

type replaying struct {
	kept  []*Notice
	limit int
	upTo  map[string]uint64 // by channel: the last sequence replayed
}

// deliver hands a notice to each endpoint, if there is one; arrived is called
// before, so that counters never lag behind an answer.
func (l *link) deliver(n *Notice, arrived func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bonds) == 0 {
		return nil
	}
	arrived()
	if len(l.bonds) == 1 {
		return l.deliverTo(l.bonds[0], n)
	}
	var failed []error
	for _, b := range slices.Clone(l.bonds) {
		if err := l.deliverTo(b, n); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (l *link) deliverTo(b *bond, n *Notice) error {
	if b.replay == nil {
		return b.endpoint.Deliver(n)
	}
	if limit := b.replay.limit; len(b.replay.kept) >= limit {
		err := fault.New(fault.SlowReader, "more than %d deliveries arrived during a replay (limits.replay)", limit)
		b.endpoint.CutOff(err)
		l.remove(b)
		return err
	}
	b.replay.kept = append(b.replay.kept, n)
	return nil
}

func (l *link) remove(gone *bond) {
	gone.replay = nil
	l.bonds = slices.DeleteFunc(slices.Clone(l.bonds), func(b *bond) bool { return b == gone })
}

// bound reports whether anyone is there to be told.
func (l *link) bound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bonds) > 0
}

func (l *link) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bonds = nil
}

// Bind makes an endpoint the one where an identity reads, as AG2's clients do.
func (h *Hub) Bind(agent string, at Endpoint) error {
	_, _, err := h.bind(agent, at, Attachment{}, nil)
	return err
}

// BindReplaying is Bind with a replay of what the identity has not acked.
func (h *Hub) BindReplaying(ctx context.Context, agent string, at Endpoint, since string) error {
	return h.Attach(ctx, agent, at, Attachment{Replay: true, Since: since})
}

// Attach adds an endpoint at which an identity reads, beside those of its other
// readers.
func (h *Hub) Attach(ctx context.Context, agent string, at Endpoint, a Attachment) error {
	if err := checkReader(a.Reader); err != nil {
		return err
	}
	if !a.Replay {
		_, _, err := h.bind(agent, at, a, nil)
		return err
	}
	r := &replaying{limit: h.opts.Limits.Replay, upTo: map[string]uint64{}}
	m, b, err := h.bind(agent, at, a, r)
	if err != nil {
		return err
	}
	err = h.replayAll(ctx, m, b, r, a.Since)
	h.afterDelivery(func() {
		if done := m.link.goLive(b, r); done != nil && err == nil {
			err = done
		}
	})
	return err
}

// maxReader bounds the name of a reader, which is part of its cursors' names.
const maxReader = 64

// checkReader refuses a name that cannot be part of a cursor's.
func checkReader(name string) error {
	if len(name) > maxReader {
		return fault.New(fault.Invalid, "the reader's name has %d bytes; at most %d are accepted", len(name), maxReader)
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return fault.New(fault.Invalid, "%q is not the name of a reader: lower-case letters, digits, '-', '_' and '.' are accepted", name)
		}
	}
	return nil
}

func (h *Hub) bind(agent string, at Endpoint, a Attachment, r *replaying) (*member, *bond, error) {
	if at == nil {
		return nil, nil, fault.New(fault.NotFound, "endpoint not attached")
	}
	m := h.registry.byID(agent)
	if m == nil {
		return nil, nil, fault.New(fault.NotFound, "agent not registered: '%s'", agent)
	}
	b := &bond{Attachment: a, endpoint: at, replay: r, since: h.now()}
	m.seen.Store(b.since.UnixNano())
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	i := slices.IndexFunc(m.link.bonds, func(old *bond) bool { return old.Reader == a.Reader })
	switch {
	case i >= 0:
		m.link.bonds = slices.Clone(m.link.bonds)
		m.link.bonds[i] = b
	case len(m.link.bonds) >= h.opts.Limits.Endpoints:
		return nil, nil, fault.New(fault.TooLarge, "'%s' reads at %d endpoints, which is the limit; end one of them or raise limits.endpoints", agent, len(m.link.bonds))
	default:
		m.link.bonds = append(slices.Clip(m.link.bonds), b)
	}
	return m, b, nil
}

// goLive ends a replay: what arrived meanwhile follows, less what the replay
// already had.
func (l *link) goLive(b *bond, r *replaying) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.replay != r || !slices.Contains(l.bonds, b) {
		return nil // bound anew, or cut off
	}
	b.replay = nil
	for _, n := range r.kept {
		if n.Envelope.Seq <= r.upTo[n.Channel.ID] {
			continue
		}
		if err := b.endpoint.Deliver(n); err != nil {
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
		m.seen.Store(h.now().UnixNano())
		m.link.mu.Lock()
		m.link.bonds = slices.DeleteFunc(slices.Clone(m.link.bonds), func(b *bond) bool { return b.endpoint == at })
		m.link.mu.Unlock()
	}
}

// Bound reports the endpoint at which an identity's unnamed reader reads, if any.
func (h *Hub) Bound(agent string) (endpointID string, ok bool) {
	m := h.registry.byID(agent)
	if m == nil {
		return "", false
	}
	return m.link.unnamed()
}

func (l *link) unnamed() (endpointID string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bonds {
		if b.Reader == "" {
			return b.endpoint.ID(), true
		}
	}
	return "", false
}
