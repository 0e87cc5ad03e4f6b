package ag2

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/hub"
)

// posts is what a connection has posted and not yet been answered for, in
// order. The next post is admitted while these are on their way to the disk.
type posts struct {
	mu        sync.Mutex
	direct    int      // those that the hub's delivery answers
	queue     []posted // those behind them that a goroutine answers
	answering bool
}

// posted is a post on its way.
type posted struct {
	request string // empty if nobody waits for an answer
	pending pending
}

// pending is how the hub tells of a post's end; *hub.Pending is one.
type pending interface {
	OnEnd(then func()) bool
	Done() <-chan struct{}
	Wait(ctx context.Context) (id string, err error)
}

// post hands an envelope to the hub, unless none of our clients could take it.
func (c *conn) post(ctx context.Context, f *wire.Post) {
	err := CheckEnvelope(f.Envelope)
	var said pending
	if err == nil && hub.HomeOf(f.Envelope.Channel) != "" {
		said, err = c.say(ctx, f.Envelope)
	}
	switch {
	case said != nil:
		c.await(posted{request: f.ID, pending: said})
	case err == nil:
		c.await(posted{request: f.ID, pending: c.server.cfg.Hub.Admit(ctx, f.Envelope, c.callerFor(f.Envelope.Sender))})
	case f.ID == "":
		c.malformed(err)
	default:
		_ = c.ws.SendText(wire.AppendFailure(nil, f.ID, err))
	}
}

// await has a post answered when it is durable, after those before it.
func (c *conn) await(p posted) {
	c.posts.mu.Lock()
	defer c.posts.mu.Unlock()
	if len(c.posts.queue) == 0 && !c.posts.answering && p.pending.OnEnd(func() { c.ended(p) }) {
		c.posts.direct++
		return
	}
	c.posts.queue = append(c.posts.queue, p)
	c.answerQueue()
}

// ended answers a post whose envelope was delivered. It never waits.
func (c *conn) ended(p posted) {
	c.answer(p)
	c.posts.mu.Lock()
	defer c.posts.mu.Unlock()
	c.posts.direct--
	c.answerQueue()
}

// answerQueue has the queue answered once nothing is before it; the lock is held.
func (c *conn) answerQueue() {
	if c.posts.direct == 0 && len(c.posts.queue) > 0 && !c.posts.answering {
		c.posts.answering = c.ws.Go(c.answerAll)
	}
}

// answerAll answers posts in order. One that takes long, because it waits for
// somebody's turn to end, is answered on its own.
func (c *conn) answerAll() {
	var batch []posted
	patience := time.NewTimer(0)
	defer patience.Stop()
	for {
		c.posts.mu.Lock()
		clear(batch)
		if len(c.posts.queue) == 0 {
			c.posts.answering = false
			c.posts.queue = nil
			c.posts.mu.Unlock()
			return
		}
		batch, c.posts.queue = c.posts.queue, batch[:0]
		c.posts.mu.Unlock()
		for _, p := range batch {
			if c.done(p, patience) {
				c.answer(p)
			} else {
				c.ws.Go(func() { c.answer(p) })
			}
		}
	}
}

// overdue is how long a post holds up the answers to those behind it.
const overdue = 100 * time.Millisecond

func (c *conn) done(p posted, patience *time.Timer) bool {
	select {
	case <-p.pending.Done():
		return true
	default:
	}
	patience.Reset(overdue)
	select {
	case <-p.pending.Done():
		// Recipients' writers run before the sender is answered where that costs
		// nothing. Waiting for them would let a slow reader hold up the sender, so
		// this only yields; nothing depends on it.
		runtime.Gosched()
		return true
	case <-patience.C:
		return false
	}
}

func (c *conn) answer(p posted) {
	id, err := p.pending.Wait(c.server.conns.Context())
	switch {
	case p.request == "":
		if err != nil {
			c.malformed(err)
		}
	case err != nil:
		_ = c.ws.SendText(wire.AppendFailure(nil, p.request, err))
	default:
		_ = c.ws.SendText(wire.AppendText(make([]byte, 0, 160), p.request, id))
	}
}
