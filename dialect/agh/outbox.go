package agh

import (
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// settleAfter is how long the outbox waits after a reconnect before it publishes: the
// other runtimes may not have subscribed again yet.
const settleAfter = 3 * time.Second

// outgoing is a stored message of a hosted peer that waits for the broker.
type outgoing struct {
	room    *netChannel
	session string
	subject string
	to      string
	until   int64 // the last second at which it is fresh
	item    *waiting
}

// outbox publishes stored messages in the order in which they became durable.
type outbox struct {
	s *Server

	mu       sync.Mutex
	list     []*outgoing
	deferred []*outgoing // for peers that have not greeted since the reconnect
	since    time.Time   // of the last reconnect; zero: none
	swept    int64       // the second in which held was last swept
	rest     time.Time   // nothing is published before, after an error
	down     bool
	busy     bool // one is being published
	wake     chan struct{}

	pushed uint64 // how many messages were pushed

	// candidate and written are positions; only the ledger uses them.
	candidate, written outboxMark
}

func newOutbox(s *Server) *outbox { return &outbox{s: s, wake: make(chan struct{}, 1)} }

// push adds a message. Delivery never waits for the broker: if there are too many, the
// message is dropped.
func (o *outbox) push(m *outgoing) {
	o.mu.Lock()
	o.pushed++
	full := len(o.list)+len(o.deferred) >= o.s.cfg.Limits.Outbox
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

// greeted releases the messages that were held until a peer greets.
func (o *outbox) greeted(r *netChannel, peer string) {
	o.mu.Lock()
	var free []*outgoing
	o.deferred = slices.DeleteFunc(o.deferred, func(m *outgoing) bool {
		mine := m.room == r && m.to == peer
		if mine {
			free = append(free, m)
		}
		return mine
	})
	if free != nil {
		o.list = append(free, o.list...)
	}
	o.mu.Unlock()
	if free != nil {
		o.stir()
	}
}

// next returns the next message to publish, or how long to wait.
func (o *outbox) next() (m *outgoing, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.s.cfg.Now()
	if now.Unix() != o.swept {
		o.swept = now.Unix()
		o.deferred = slices.DeleteFunc(o.deferred, func(m *outgoing) bool {
			stale := now.Unix() > m.until
			if stale {
				o.fail(m)
			}
			return stale
		})
	}
	wait = time.Hour
	if len(o.deferred) > 0 {
		wait = time.Second
	}
	if o.down || len(o.list) == 0 {
		return nil, wait
	}
	if rest := o.rest.Sub(now); rest > 0 {
		return nil, rest
	}
	if rest := o.since.Add(settleAfter).Sub(now); !o.since.IsZero() && rest > 0 {
		return nil, rest
	}
	for len(o.list) > 0 {
		m := o.list[0]
		o.list[0] = nil
		o.list = o.list[1:]
		if !o.since.IsZero() && m.to != "" && m.room.hosted(m.to) == nil && !m.room.seenSince(m.to, o.since) {
			o.deferred = append(o.deferred, m)
			wait = min(wait, time.Second)
			continue
		}
		o.busy = true
		return m, 0
	}
	return nil, wait
}

// seenSince reports whether a remote peer introduced itself since a time.
func (r *netChannel) seenSince(peer string, at time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.remotes[peer]
	return p != nil && !p.lastSeen.Before(at)
}

// run publishes until the server is closed.
func (o *outbox) run() {
	for {
		var list []*outgoing
		m, wait := o.next()
		for ; m != nil; m, wait = o.next() {
			if list = append(list, m); len(list) == mostAtOnce {
				break
			}
		}
		if len(list) > 0 {
			o.publish(list)
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

// mostAtOnce is how many messages are published before a flush.
const mostAtOnce = 64

// publish sends messages, in their order, unless they are no longer fresh.
func (o *outbox) publish(list []*outgoing) {
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy = false
	}()
	var handed []*outgoing
	for i, m := range list {
		data, err := o.s.bytes(o.s.ctx, m.item)
		if err == nil && o.s.cfg.Now().Unix() > m.until {
			o.fail(m)
			continue
		}
		if err == nil {
			err = o.s.hand(m.subject, m.item.from, m.item.id, data)
		}
		if err == nil && m.to == "" {
			err = o.s.handV1(m.room, data)
		}
		if err == nil {
			handed = append(handed, m)
		} else if o.requeue(list[i:], err) { // with those that follow, to keep the order
			break
		} else {
			o.fail(m)
		}
	}
	if len(handed) == 0 {
		return
	}
	if err := o.s.flush(); err == nil {
		for _, m := range handed {
			o.s.audit(m.item.meta, sent, m.session, "")
		}
	} else {
		o.requeue(handed, err)
	}
}

// retryAfter is the pause after an error. Errors may come before the loss of the
// connection is reported.
const retryAfter = 250 * time.Millisecond

// requeue returns messages to the head, to be retried while they are fresh. It reports
// false if retrying the first one would not help.
func (o *outbox) requeue(list []*outgoing, err error) bool {
	if fault.CodeOf(err) != fault.Unavailable && o.s.ctx.Err() == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list, o.rest = slices.Concat(list, o.list), o.s.cfg.Now().Add(retryAfter)
	return true
}

// outgoingOf returns a stored message for the outbox.
func outgoingOf(p *peer, e *wire.Envelope, item *waiting) *outgoing {
	subject, _ := e.Subject() // it was validated; nobody subscribes to an empty subject
	return &outgoing{room: p.room, session: p.session, subject: subject, to: clone(e.To), until: e.FreshUntil(p.room.space.s.cfg.ReplayAge), item: item}
}
