package agh

import (
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/hub"
)

// settleAfter is how long nothing is published after a reconnect: what is
// published in that moment reaches nobody.
const settleAfter = 3 * time.Second

// outgoing is a stored message of a hosted peer on its way to the broker.
type outgoing struct {
	room    *netChannel
	session string
	to      string
	until   int64 // the last second at which it is fresh
	item    *waiting
}

// outbox publishes stored messages in the order in which they became durable.
type outbox struct {
	s *Server

	mu    sync.Mutex
	list  []*outgoing
	held  []*outgoing // for peers that have not greeted since the reconnect
	since time.Time   // of the last reconnect; zero: none
	down  bool
	busy  bool // one is being published
	wake  chan struct{}

	// candidate and written are positions; only the ledger uses them.
	candidate, written hub.WidePosition
}

func newOutbox(s *Server) *outbox { return &outbox{s: s, wake: make(chan struct{}, 1)} }

// push adds a message. Delivery never waits for the broker: one too many is
// given up.
func (o *outbox) push(m *outgoing) {
	o.mu.Lock()
	full := len(o.list)+len(o.held) >= o.s.cfg.Limits.Outbox
	if !full {
		o.list = append(o.list, m)
	}
	o.mu.Unlock()
	if full {
		o.fail(m)
		return
	}
	o.stir()
}

func (o *outbox) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) fail(m *outgoing) { o.s.reject(m.item.meta, m.session, reasonPublish) }

// changed follows the connection.
func (o *outbox) changed(err error) {
	o.mu.Lock()
	o.down = err != nil
	if err == nil {
		o.since = o.s.cfg.Now()
	}
	o.mu.Unlock()
	o.stir()
}

// greeted lets go what was held for a peer.
func (o *outbox) greeted(r *netChannel, peer string) {
	o.mu.Lock()
	var free, rest []*outgoing
	for _, m := range o.held {
		if m.room == r && m.to == peer {
			free = append(free, m)
		} else {
			rest = append(rest, m)
		}
	}
	o.held, o.list = rest, append(free, o.list...)
	o.mu.Unlock()
	if free != nil {
		o.stir()
	}
}

// next returns what is to be published now, or how long to wait.
func (o *outbox) next() (m *outgoing, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.s.cfg.Now()
	for _, m := range slices.Clone(o.held) {
		if now.Unix() > m.until {
			o.held = slices.DeleteFunc(o.held, func(h *outgoing) bool { return h == m })
			o.fail(m)
		}
	}
	wait = time.Hour
	if len(o.held) > 0 {
		wait = time.Second
	}
	if o.down || len(o.list) == 0 {
		return nil, wait
	}
	if rest := o.since.Add(settleAfter).Sub(now); !o.since.IsZero() && rest > 0 {
		return nil, rest
	}
	for len(o.list) > 0 {
		m := o.list[0]
		o.list[0] = nil
		o.list = o.list[1:]
		if !o.since.IsZero() && m.to != "" && m.room.hosted(m.to) == nil && !m.room.seenSince(m.to, o.since) {
			o.held = append(o.held, m)
			wait = min(wait, time.Second)
			continue
		}
		o.busy = true
		return m, 0
	}
	return nil, wait
}

// seenSince reports whether a remote peer introduced itself since then.
func (r *netChannel) seenSince(peer string, at time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.remotes[peer]
	return p != nil && !p.lastSeen.Before(at)
}

// run publishes until the server is closed.
func (o *outbox) run() {
	for {
		m, wait := o.next()
		if m != nil {
			o.publish(m)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-o.wake:
		case <-timer.C:
		case <-o.s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// publish sends one message, unless it is no longer fresh.
func (o *outbox) publish(m *outgoing) {
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy = false
	}()
	e, data, err := o.s.read(o.s.ctx, m.item)
	if err == nil && o.s.cfg.Now().Unix() > m.until {
		o.fail(m)
		return
	}
	if err == nil {
		err = o.s.publish(e, data, m.session)
	}
	if err == nil || o.s.ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	again := o.down
	if again { // it is tried again when the broker is back
		o.list = append([]*outgoing{m}, o.list...)
	}
	o.mu.Unlock()
	if !again {
		o.fail(m)
	}
}

// outgoingOf is a stored message on its way.
func outgoingOf(p *peer, e *wire.Envelope, item *waiting) *outgoing {
	return &outgoing{room: p.room, session: p.session, to: clone(e.To), until: e.FreshUntil(p.room.space.s.cfg.ReplayAge), item: item}
}
