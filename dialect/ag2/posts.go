package ag2

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// posts are the unanswered posts of a connection, in order. The next post is
// admitted while these are being written to disk.
type posts struct {
	mu        sync.Mutex
	direct    int      // number of posts answered on the hub's delivery path
	queue     []posted // after them; a goroutine answers these
	answering bool
}

// posted is a post that is not answered yet.
type posted struct {
	request string // empty if the client does not wait for an answer
	pending pending
	run     *run // set for several posts
}

// run is several posts that are stored together.
type run struct {
	requests []string
	pending  *hub.Pending
}

// pending reports the end of a post; *hub.Pending implements it.
type pending interface {
	OnEnd(then func()) bool
	Done() <-chan struct{}
	Wait(ctx context.Context) (id string, err error)
}

// arrived are posts that were read from the socket together.
type arrived struct {
	posts []*wire.Post
	bytes int
}

// arrivedLists reuses lists, so that an idle connection has none.
var arrivedLists = sync.Pool{New: func() any { return new([hub.MaxRun]*wire.Post) }}

// arrivedBytes bounds the posts that are kept for a common batch. A large post is a
// batch of its own.
const arrivedBytes = 64 << 10

func (a *arrived) some() bool { return len(a.posts) > 0 }

// add adds a post, and reports whether the list is full.
func (a *arrived) add(p *wire.Post, size int) bool {
	if a.posts == nil {
		a.posts = arrivedLists.Get().(*[hub.MaxRun]*wire.Post)[:0]
	}
	a.posts = append(a.posts, p)
	a.bytes += size
	return len(a.posts) == hub.MaxRun || a.bytes >= arrivedBytes
}

// Drained posts what was read, because the next read may wait.
func (c *conn) Drained() {
	list := c.arrived.posts
	if len(list) == 0 {
		return
	}
	c.arrived = arrived{}
	for rest := list; len(rest) > 0; {
		rest = rest[c.postRun(c.ctx, rest):]
	}
	clear(list)
	arrivedLists.Put((*[hub.MaxRun]*wire.Post)(list[:hub.MaxRun]))
}

// postRun passes as many posts from the front as the hub takes together, and
// returns how many.
func (c *conn) postRun(ctx context.Context, list []*wire.Post) int {
	var room [hub.MaxRun]*envelope.Envelope
	first, together := list[0].Envelope, room[:0]
	for _, f := range list {
		e := f.Envelope
		if e.Channel != first.Channel || e.Sender != first.Sender || hub.HomeOf(e.Channel) != "" || CheckEnvelope(e) != nil {
			break
		}
		together = append(together, e)
	}
	if len(together) < 2 {
		c.post(ctx, list[0])
		return 1
	}
	p, n := c.server.cfg.Hub.AdmitRun(ctx, together, c.callerFor(first.Sender))
	if n == 1 {
		c.await(posted{request: list[0].ID, pending: p})
		return 1
	}
	r := &run{requests: make([]string, n), pending: p}
	for i := range r.requests {
		r.requests[i] = list[i].ID
	}
	c.await(posted{pending: p, run: r})
	return n
}

// post passes an envelope to the hub, unless it is too large for AG2's
// clients.
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

// await answers a post when it is durable, after those before it.
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

// answerQueue starts to answer the queue if nothing is before it. The caller holds
// the lock.
func (c *conn) answerQueue() {
	if c.posts.direct == 0 && len(c.posts.queue) > 0 && !c.posts.answering {
		c.posts.answering = c.ws.Go(c.answerAll)
	}
}

// answerAll answers posts in order. A slow post, which waits for another turn to
// end, is answered on its own.
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

// overdue is how long a post may delay the answers to those after it.
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
		// Let the recipients' writers run before the sender is answered, if that
		// costs nothing. Waiting for them would let a slow reader block the sender,
		// so this only yields; nothing depends on it.
		runtime.Gosched()
		return true
	case <-patience.C:
		return false
	}
}

func (c *conn) answer(p posted) {
	id, err := p.pending.Wait(c.server.conns.Context())
	if p.run == nil {
		c.answerOne(make([]byte, 0, answerBytes), p.request, id, err)
		return
	}
	i, room := 0, make([]byte, 0, answerBytes*len(p.run.requests))
	for id, err := range p.run.pending.Each(err) {
		room = c.answerOne(room, p.run.requests[i], id, err)
		i++
	}
}

// answerBytes is the usual size of an answer to a post.
const answerBytes = 160

// answerOne writes the answer to a post into room and returns the rest of room.
func (c *conn) answerOne(room []byte, request, id string, err error) []byte {
	switch {
	case request == "":
		if err != nil {
			c.malformed(err)
		}
	case err != nil:
		_ = c.ws.SendText(wire.AppendFailure(nil, request, err))
	default:
		text := wire.AppendText(room, request, id)
		_ = c.ws.SendText(text[:len(text):len(text)])
		return text[len(text):]
	}
	return room
}
