package ag2

import (
	"context"
	"maps"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/wsconn"
)

// feedKey names an identity in a foreign channel.
type feedKey struct{ agent, channel string }

// feed is the progress of an identity's deliveries from a foreign channel on a
// connection.
type feed struct {
	reader *foreignReader
	seq    uint64 // how far the reader has read the log
	sent   string // the last id that was sent, or acknowledged before
	first  string // up to this id only texts that ask for an answer are sent
	told   string // a copy of sent for readers that hold the lock
	queued bool
	news   news
}

// news describes why a channel's reader is woken.
type news struct {
	meta *channel.Metadata
	// only is the only new envelope, if the reader has read all before it; nil: the
	// log has to be read.
	only *envelope.Envelope
}

// feeds are the foreign channels that a connection delivers to its identities. The
// hub reports that something happened; one goroutine reads the log and sends what
// is new.
type feeds struct {
	mu      sync.Mutex
	known   map[feedKey]*feed
	queue   []feedKey
	working bool
}

// wake makes the feed send an identity what is new in a channel: after the position
// that it has read, or from first on if it has read nothing.
func (f *feeds) wake(c *conn, agent string, woken news, first, read string) error {
	key := feedKey{agent, woken.meta.ID}
	f.mu.Lock()
	defer f.mu.Unlock()
	limit := c.server.cfg.Limits.Foreign
	known := f.known[key]
	if known == nil {
		if len(f.known) >= limit {
			f.forget()
		}
		if len(f.known) >= limit {
			err := fault.New(fault.SlowReader, "%d channels of other dialects wait for this connection, which is the limit (ag2.limits.foreign)", limit)
			c.CutOff(err)
			return err
		}
		if f.known == nil {
			f.known = map[feedKey]*feed{}
		}
		known = &feed{first: first, sent: read}
		f.known[key] = known
	}
	if known.queued {
		known.news = news{meta: woken.meta}
		return nil
	}
	known.queued, known.news = true, woken
	f.queue = append(f.queue, key)
	if !f.working {
		f.working = c.ws.Go(func() { c.feedAll(c.ctx) })
	}
	return nil
}

// forget drops channels in which nothing waits, to make room. They are read again
// when something happens there.
func (f *feeds) forget() {
	maps.DeleteFunc(f.known, func(_ feedKey, known *feed) bool { return !known.queued })
}

// next takes a channel that waits; false ends the work.
func (f *feeds) next() (feedKey, *feed, news, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		f.working, f.queue = false, nil
		return feedKey{}, nil, news{}, false
	}
	key := f.queue[0]
	f.queue = f.queue[1:]
	known := f.known[key]
	woken := known.news
	known.queued, known.news = false, news{}
	return key, known, woken, true
}

func (f *feeds) drop(key feedKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.known[key]; known != nil && !known.queued {
		delete(f.known, key)
	}
}

// feedAll sends the connection's identities what waits for them.
func (c *conn) feedAll(ctx context.Context) {
	var failed error
	defer func() {
		if failed != nil {
			c.ws.End(failed)
		}
	}()
	defer c.ws.Recover(&failed)
	for {
		key, known, woken, ok := c.feeds.next()
		if !ok {
			return
		}
		err := c.feed(ctx, key, known, woken)
		switch {
		case err == nil:
			continue
		case fault.CodeOf(err) == fault.NotFound: // the channel was deleted, or the identity unregistered
			c.feeds.drop(key)
		default:
			c.server.cfg.Log.Warn("a channel of another dialect was not told", "endpoint_id", c.ID(), "agent_id", key.agent, "channel_id", key.channel, "error", err)
			c.CutOff(err) // the client reconnects and gets a replay of what it missed
		}
	}
}

// feed sends an identity what is new in a foreign channel. While a text asks the
// identity to answer, no other text is sent, because AG2's client would answer
// each.
func (c *conn) feed(ctx context.Context, key feedKey, known *feed, woken news) error {
	h := c.server.cfg.Hub
	f, err := c.server.foreign(ctx, woken.meta, []string{key.agent}, nil)
	if err != nil {
		return err
	}
	var list []*envelope.Envelope
	if known.reader == nil {
		acked, err := h.Cursor(ctx, key.agent, key.channel)
		if err != nil {
			return err
		}
		if acked > known.sent {
			known.sent = acked
		}
		if known.sent != "" {
			known.first = ""
		}
		known.reader = f.reader(key.agent)
		if list, err = f.head(); err != nil {
			return err
		}
	}
	known.reader.channel = f // use the current members and visibility
	head := len(list)
	if e := woken.only; e != nil && e.Seq == known.seq+1 {
		list, known.seq = known.reader.read(list, e), e.Seq
	} else {
		for e, err := range h.Log(ctx, key.channel, known.seq+1, 0) {
			if err != nil {
				return err
			}
			list, known.seq = known.reader.read(list, e), e.Seq
		}
	}
	for i, e := range list {
		if e.ID <= known.sent || !c.tells(e, key.agent, known, i < head) {
			continue
		}
		known.sent = e.ID
		c.feeds.tell(known) // before the client can call can_send
		if err := c.notifyForeign(ctx, key.agent, e); err != nil {
			return err
		}
	}
	c.feeds.tell(known)
	return nil
}

// tell publishes the progress of an identity's deliveries.
func (f *feeds) tell(known *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known.told = known.sent
}

// told reports whether an envelope was delivered to an identity. It is true if this
// connection has no feed for the identity, which then found the envelope itself.
func (f *feeds) told(key feedKey, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known[key]
	return known == nil || known.told >= id
}

// tells reports whether an envelope is to be delivered to an identity.
func (c *conn) tells(e *envelope.Envelope, agent string, known *feed, head bool) bool {
	asked := known.reader.asked
	switch {
	case head:
		return e.Type == envelope.TypeOpened || e.Sender != agent
	case asked != nil && e.ID == asked.ID:
		return true
	case e.Sender == agent || e.ID < known.first || e.To != "" && e.To != agent:
		return false
	case e.TTL != nil && *e.TTL > 0 && e.ExpiredAt(c.server.cfg.Now()):
		return false
	}
	return asked == nil || e.Type != envelope.TypeText
}

// notifyForeign waits for space and sends an envelope that no log holds in this
// form.
func (c *conn) notifyForeign(ctx context.Context, agent string, e *envelope.Envelope) error {
	tail, _ := c.tail(agent)
	if tail == nil {
		return fault.New(fault.NotFound, "'%s' is not on this connection any more", agent)
	}
	body := wire.AppendEnvelope(nil, e)
	if len(wire.NotifyHead)+len(body)+len(tail) > wire.MaxFrame {
		c.server.stats.oversized.Add(1)
		return nil // an envelope that cannot be sent does not block the rest
	}
	c.server.stats.deliveries.Add(1)
	f := wsconn.Frame{Head: wire.NotifyHead, Body: body, Tail: tail, Stream: e.Channel, Priority: wsconn.Fixed}
	if c.keepFresh(agent, f) {
		return nil
	}
	return c.ws.SendWaiting(ctx, f)
}

// keepFresh holds back a frame for an identity whose registration is not answered
// yet.
func (c *conn) keepFresh(agent string, f wsconn.Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[agent]
	if h == nil || !h.held || len(h.kept) >= maxKept {
		return false
	}
	h.kept = append(h.kept, f)
	return true
}

// replayForeign sends an identity that reconnects what it missed in foreign
// channels. For a channel that it never saw, this is the opening and the texts that
// ask it to answer.
func (c *conn) replayForeign(ctx context.Context, agent, since string) {
	for m, err := range c.server.foreignOf(ctx, agent) {
		if err == nil {
			err = c.feeds.wake(c, agent, news{meta: m}, newest, since)
		}
		if err != nil {
			c.server.cfg.Log.Warn("replay stopped", "endpoint_id", c.ID(), "agent_id", agent, "error", err)
			c.CutOff(err)
			return
		}
	}
}

// newest sorts after every id.
const newest = "~"
