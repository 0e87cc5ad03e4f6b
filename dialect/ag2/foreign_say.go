package ag2

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// say posts into a foreign channel; it returns nil if the channel is not foreign.
// The channel's adapter makes its own envelopes of the text, and validates them.
func (c *conn) say(ctx context.Context, e *envelope.Envelope) (pending, error) {
	h := c.server.cfg.Hub
	m, err := h.Channel(ctx, e.Channel)
	if err != nil || !c.server.isForeign(m) {
		return nil, fault.IgnoreNotFound(err) // the hub reports an unknown channel
	}
	if err := c.bound(e.Sender); err != nil {
		return nil, err
	}
	in, err := h.Members(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	if !in.Has(e.Sender) {
		return nil, fault.New(fault.AccessDenied, "'%.100s' takes no part in channel '%.100s'", e.Sender, m.ID)
	}
	switch {
	case e.Type == envelope.TypeText:
	case e.Type == envelope.TypeInviteAck:
		id := headID(m.ID, 1)
		return answered{id: id}, h.Ack(ctx, e.Sender, m.ID, id)
	case envelope.IsTask(e.Type) && e.Type != envelope.TypeTaskCancelRequest && c.server.holdsWork(m):
		told := *e
		told.Causation = "" // the text answers nothing and has no key
		return h.Say(ctx, hub.Saying{
			Channel: m.ID, Sender: e.Sender, Work: e, Key: keyOf(&told), Origin: envelope.Origin{Dialect: dialectName},
			Causation: e.Causation, Task: e.Task, Trace: e.Trace, Priority: e.Priority, Depth: e.Depth,
		}, c.callerFor(e.Sender)), nil
	default:
		return nil, fault.New(fault.Protocol, "channel '%.100s' is a %s of another dialect: it accepts %s, not '%.100s'", m.ID, m.Manifest.Type, envelope.TypeText, e.Type)
	}
	if !forAll(in, e) {
		return nil, fault.New(fault.Protocol, "channel '%.100s' is a %s of another dialect, which shows every text to all members; leave out the audience", m.ID, m.Manifest.Type)
	}
	msg, to := message.Envelope{Type: message.TypeText, Content: channel.TextMember(e.Data, "text")}, ""
	if e.Causation != "" {
		q, err := c.server.mayAnswer(ctx, m, e)
		if err != nil {
			return nil, err
		}
		if q.work != "" {
			msg.Metadata, to = value.New().Set("work", q.work), q.from
		}
	}
	p := h.Say(ctx, hub.Saying{
		Channel: m.ID, Sender: e.Sender, Message: msg, To: to,
		Key: keyOf(e), Origin: envelope.Origin{Dialect: dialectName},
		Causation: e.Causation, Task: e.Task, Trace: e.Trace, Priority: e.Priority, Depth: e.Depth,
	}, c.callerFor(e.Sender))
	return &saying{Pending: p, conn: c, meta: m, sender: e.Sender}, nil
}

// holdsWork reports whether a channel's adapter has its own form for tasks.
func (s *Server) holdsWork(m *channel.Metadata) bool {
	_, ok := s.cfg.Hub.AdapterFor(m).(channel.Worker)
	return ok
}

// keyOf returns the idempotency key of a text. Keys may be unique in a whole home,
// so it contains channel and sender. A text is answered once: AG2's client may
// receive the same text twice, and then answers both times.
func keyOf(e *envelope.Envelope) string {
	scope := "ag2/" + e.Channel + "/" + e.Sender
	switch {
	case e.Key != "":
		return scope + "/key/" + e.Key
	case e.Causation != "":
		return scope + "/answer/" + e.Causation
	}
	return ""
}

// forAll reports whether a text is for everyone in a channel.
func forAll(in channel.Members, e *envelope.Envelope) bool {
	all := true
	in.Each(func(agent string) bool {
		all = e.VisibleTo(agent)
		return all
	})
	return all
}

// answered is a post whose result is already known.
type answered struct{ id string }

func (answered) OnEnd(func()) bool                      { return false }
func (answered) Done() <-chan struct{}                  { return done }
func (a answered) Wait(context.Context) (string, error) { return a.id, nil }

var done = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// saying is a text that is being stored. Its result is the id of the envelope under
// which the log shows it, which need not be the last that was stored.
type saying struct {
	*hub.Pending
	conn   *conn
	meta   *channel.Metadata
	sender string
}

// OnEnd returns false: the answer needs to read the log, which is not allowed on
// the hub's delivery path.
func (*saying) OnEnd(func()) bool { return false }

func (s *saying) Wait(ctx context.Context) (string, error) {
	id, err := s.Pending.Wait(ctx)
	seqs := s.Seqs()
	if err != nil || len(seqs) == 0 {
		return id, err
	}
	// A repeated post returns only the last envelope of the first one; the others
	// are shortly before it.
	last := seqs[len(seqs)-1]
	first := min(seqs[0], last-min(last-1, nearby))
	h := s.conn.server.cfg.Hub
	reader := channel.ReaderOf(h.AdapterFor(s.meta), s.meta)
	var items []channel.Item
	for e, err := range h.Log(ctx, s.meta.ID, first, last) {
		if err != nil {
			return id, nil // the text is stored; only its shown id was not found
		}
		items = reader.Read(items[:0], e)
		for i := range items {
			if items[i].Kind == channel.ItemMessage && items[i].Speaker == s.sender {
				id = e.ID
			}
		}
	}
	return id, nil
}

// nearby is the maximum distance between the first and the last envelope of a text.
const nearby = 8
