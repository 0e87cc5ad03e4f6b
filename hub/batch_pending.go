package hub

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/journal"
)

// Pending is a post that is appended or refused, and not yet answered.
type Pending struct {
	hub *Hub
	id  string // of the envelope
	seq uint64 // in the history
	// channel is where it was posted; opened says that this post opened the channel;
	// repeated, that the answer is that of an earlier post with the same key.
	channel          string
	opened, repeated bool
	all              []stored
	err              error // why it was refused, or not stored
	// answered is the post that the answer is taken from, if it is another one: the first
	// with the same key, or one that was checked again.
	answered atomic.Pointer[Pending]
	// escaped is the panic of its delivery, after it was stored.
	escaped error
	done    chan struct{}
	basis   *Pending        // a refusal is released when this is durable
	lost    *journal.Ticket // and when this is: the batch that holds a claim
	retry   func() *Pending // and computed again if one of them failed
	stands  func()          // called when the refusal is final
	// resolve, if set, finds the answer when it is waited for.
	resolve func(ctx context.Context) (*Pending, error)
	ticket  *journal.Ticket // nil: nothing is stored
	barrier func()          // called in the order of deliveries; nothing is delivered then
	ch      *loadedChannel
	left    *snapshot // the channel after the batch
	items   []item
	one     [1]item                // room for one of them
	audits  []journal.Record       // passed to the audit sinks first
	before  []func()               // before the deliveries
	after   []func()               // after the deliveries
	onEnd   []func(error)          // when it has ended, whichever way
	then    atomic.Pointer[func()] // what OnEnd was given, or ended
}

// ended stands for what OnEnd was given once the post has ended.
var ended = func() {}

// item is one envelope of a batch, with its recipients.
type item struct {
	envelope *envelope.Envelope
	meta     *channel.Metadata
	to       []string
	places   []string // taken in inboxes
	guests   []string // recipients who are not members
	alone    bool     // no other batch is pending when it is delivered
	posted   bool     // call listeners for a post; else it is the hub's own or absorbed
	where    channel.Where
	shared   *Shared // what its dialect made of a live one, or nil
	span     *tracing.EnvelopeSpan
}

func refused(err error) *Pending {
	return &Pending{err: err, done: closedChan}
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// stored is one envelope of several that were posted together.
type stored struct {
	id      string
	seq     uint64
	escaped error // the panic of its delivery
}

// result is the post that answers this one.
func (p *Pending) result() *Pending {
	if other := p.answered.Load(); other != nil {
		return other.result()
	}
	return p
}

// IDs are the ids of the posted envelopes, in order, once Wait has returned
// without an error.
func (p *Pending) IDs() []string {
	p = p.result()
	if p.all == nil {
		return []string{p.id}
	}
	ids := make([]string, len(p.all))
	for i := range p.all {
		ids[i] = p.all[i].id
	}
	return ids
}

// Each yields what Wait returned for each of several posted envelopes, in order: its id
// or the error. If the envelopes are stored and the delivery of one failed, only that one
// has the error.
func (p *Pending) Each(waited error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		p := p.result()
		own := waited != nil && p.finished() && p.err == nil
		for i := range p.all {
			err := waited
			if own {
				err = p.all[i].escaped
			}
			if !yield(p.all[i].id, err) {
				return
			}
		}
	}
}

// Seqs are the sequences of the posted envelopes in the history, in order, once
// Wait has returned without an error. A side envelope has that of the last one
// before it.
func (p *Pending) Seqs() []uint64 {
	p = p.result()
	if p.all == nil {
		return []uint64{p.seq}
	}
	seqs := make([]uint64, len(p.all))
	for i := range p.all {
		seqs[i] = p.all[i].seq
	}
	return seqs
}

// Channel is the channel that was posted to, once Wait has returned without an
// error.
func (p *Pending) Channel() string { return p.result().channel }

// Opened reports whether the post opened its channel.
func (p *Pending) Opened() bool { return p.result().opened }

// Repeated reports, once Wait has returned, whether the answer is that of an
// earlier post with the same idempotency key.
func (p *Pending) Repeated() bool { return p.result().repeated }

// Seq is the sequence of the posted envelope in the history, or of the last one
// of several, once Wait has returned without an error.
func (p *Pending) Seq() uint64 { return p.result().seq }

// Wait returns the envelope's id, or the last one's of several, once it is
// durable and delivered, or the refusal. When the context ends first, the post
// goes on.
func (p *Pending) Wait(ctx context.Context) (string, error) {
	origin := p
	for {
		if p.ticket != nil && !p.finished() {
			select {
			case <-p.ticket.Done():
				p.hub.lend()
			case <-ctx.Done():
			}
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return "", fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting; the post may still be stored: %v", ctx.Err())
		}
		if p.resolve != nil {
			first, err := p.resolve(ctx)
			if err != nil {
				return "", err
			}
			origin.answered.Store(first)
			return first.result().id, nil
		}
		again, err := p.released(ctx)
		if err != nil {
			return "", err
		}
		if !again {
			if p.stands != nil {
				p.stands()
			}
			if p != origin {
				origin.answered.Store(p)
			}
			if p.err == nil {
				return p.id, p.escaped
			}
			return p.id, p.err
		}
		p = p.retry()
	}
}

// Done is closed when Wait would not block, or only for what a refusal was
// computed from.
func (p *Pending) Done() <-chan struct{} {
	if p.lost != nil {
		return p.lost.Done()
	}
	if p.basis != nil {
		return p.basis.done
	}
	return p.done
}

// OnEnd calls then when Wait would return without blocking, on the goroutine that
// delivers: it must not block. It returns false, and never calls then, if the post has
// ended already or Wait has to find the answer.
func (p *Pending) OnEnd(then func()) bool {
	return p.ticket != nil && p.then.CompareAndSwap(nil, &then)
}

func (p *Pending) finished() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// released waits until everything that a refusal depends on is durable. Again is
// true if some of it failed, and the refusal must be computed again.
func (p *Pending) released(ctx context.Context) (again bool, err error) {
	if again, err := p.basis.durable(ctx); again || err != nil || p.lost == nil {
		return again, err
	}
	err = p.lost.Wait(ctx)
	if ctx.Err() != nil && err != nil {
		return false, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for what the answer depends on: %v", ctx.Err())
	}
	return err != nil, nil
}

// durable waits until a batch that an answer depends on is durable. Again is true
// if the batch failed, and the answer must be computed again.
func (p *Pending) durable(ctx context.Context) (again bool, err error) {
	if p == nil {
		return false, nil
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return false, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting for what the answer depends on: %v", ctx.Err())
	}
	return p.err != nil, nil
}

// escape records the panic of an envelope's delivery.
func (p *Pending) escape(id string, err error) {
	p.escaped = err
	for i := range p.all {
		if p.all[i].id == id {
			p.all[i].escaped = err
		}
	}
}

// end wakes everyone who waits.
func (p *Pending) end() {
	for _, then := range p.onEnd {
		then(p.err)
	}
	p.onEnd = nil
	close(p.done)
	if then := p.then.Swap(&ended); then != nil {
		(*then)()
	}
}
