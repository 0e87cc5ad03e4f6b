package agent

import (
	"context"
	"sync"
)

// lanes keep the deliveries of each channel in order, one at a time, while
// channels do not wait for each other.
type lanes struct {
	limit int // of what waits and runs, over all channels

	mu        sync.Mutex
	byChannel map[string]*lane
	used      int           // of the limit
	expecting int           // turns that wait for a delivery
	room      chan struct{} // closed and replaced when there may be room
	running   int
	idle      *sync.Cond // signalled when running comes to zero
}

func newLanes(limit int) *lanes {
	l := &lanes{limit: limit, room: make(chan struct{}), byChannel: map[string]*lane{}}
	l.idle = sync.NewCond(&l.mu)
	return l
}

// wait returns when no lane runs.
func (l *lanes) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.running > 0 {
		l.idle.Wait()
	}
}

type lane struct {
	queue []job
	busy  bool
	box   *inflow // while set, deliveries go only here
}

type job struct {
	delivery *Delivery
	run      func(*Delivery)
}

// acquire waits until there is room for one more.
func (l *lanes) acquire(ctx context.Context) error {
	for {
		room := l.take()
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take takes room for one, or returns what to wait for. While a turn waits for
// a delivery there is more room, because a full queue would never receive that
// delivery.
func (l *lanes) take() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limit
	if l.expecting > 0 {
		limit += maxMail
	}
	if l.used >= limit {
		return l.room
	}
	l.used++
	return nil
}

func (l *lanes) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	l.makeRoom()
}

// makeRoom wakes those who wait for room; the caller holds the lock.
func (l *lanes) makeRoom() {
	close(l.room)
	l.room = make(chan struct{})
}

// expect records that a turn waits for a delivery, until done is called.
func (l *lanes) expect() (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expecting++
	l.makeRoom()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.expecting--
	}
}

// put queues a delivery for which room was acquired.
func (l *lanes) put(d *Delivery, run func(*Delivery)) {
	id := d.Envelope.Channel
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lane(id)
	ln.queue = append(ln.queue, job{d, run})
	if !ln.busy {
		ln.busy = true
		l.running++
		go l.drain(id, ln)
	}
}

func (l *lanes) lane(id string) *lane {
	ln, ok := l.byChannel[id]
	if !ok {
		ln = &lane{}
		l.byChannel[id] = ln
	}
	return ln
}

// drain handles a lane's deliveries until none is left.
func (l *lanes) drain(id string, ln *lane) {
	for {
		l.mu.Lock()
		if len(ln.queue) == 0 {
			ln.busy = false
			l.forget(id, ln)
			if l.running--; l.running == 0 {
				l.idle.Broadcast()
			}
			l.mu.Unlock()
			return
		}
		next := ln.queue[0]
		ln.queue = ln.queue[1:]
		l.mu.Unlock()
		next.run(next.delivery)
		l.release()
	}
}

// forget drops a lane that nothing uses; the caller holds the lock.
func (l *lanes) forget(id string, ln *lane) {
	if !ln.busy && len(ln.queue) == 0 && ln.box == nil {
		delete(l.byChannel, id)
	}
}

// divert sends a channel's deliveries only to a mailbox, until restore.
func (l *lanes) divert(id string) *inflow {
	l.mu.Lock()
	defer l.mu.Unlock()
	box := newInflow(maxMail)
	l.lane(id).box = box
	return box
}

// restore ends divert.
func (l *lanes) restore(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln, ok := l.byChannel[id]; ok {
		ln.box = nil
		l.forget(id, ln)
	}
}

func (l *lanes) mailbox(id string) *inflow {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln, ok := l.byChannel[id]; ok {
		return ln.box
	}
	return nil
}
