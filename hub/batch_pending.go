package hub

import (
	"context"

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
	err error  // why it was refused, or not stored
	// escaped is the panic of its delivery, after it was stored.
	escaped error
	done    chan struct{}
	basis   *Pending        // a refusal is released when this is durable
	retry   func() *Pending // and computed again if it failed
	stands  func()          // called when it is released
	// resolve, if set, finds the answer when it is waited for.
	resolve func(ctx context.Context) (string, error)
	ticket  *journal.Ticket // nil: nothing is stored
	barrier func()          // called in the order of deliveries; nothing is delivered then
	ch      *loadedChannel
	left    *snapshot // what the batch leaves behind
	items   []item
	before  []func()      // before anyone is told
	after   []func()      // and once everyone has been
	onEnd   []func(error) // when it has ended, whichever way
}

// item is one envelope of a batch, with whom to tell.
type item struct {
	envelope *envelope.Envelope
	meta     *channel.Metadata
	to       []string
	places   []string // taken in inboxes
	posted   bool     // tell listeners of a post; else it is the hub's own or absorbed
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

// Wait returns the envelope's id once it is durable and delivered, or the
// refusal. When the context ends first, the post goes on.
func (p *Pending) Wait(ctx context.Context) (string, error) {
	for {
		if p.ticket != nil {
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
			return p.resolve(ctx)
		}
		again, err := p.basis.released(ctx)
		if err != nil {
			return "", err
		}
		if !again {
			if p.stands != nil {
				p.stands()
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
	if p.basis != nil {
		return p.basis.done
	}
	return p.done
}

func (p *Pending) finished() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// released waits until a batch that an answer depends on is durable. Again is true
// if the batch failed, and the answer must be computed again.
func (p *Pending) released(ctx context.Context) (again bool, err error) {
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

// end answers everyone who waits.
func (p *Pending) end() {
	for _, then := range p.onEnd {
		then(p.err)
	}
	p.onEnd = nil
	close(p.done)
}
