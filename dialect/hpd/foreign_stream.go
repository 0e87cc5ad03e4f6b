package hpd

import (
	"context"
	"errors"
	"net/http"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/journal"
)

// getEvents answers with the log as events, from the number in ?after= on.
func (f *foreign) getEvents(c *call) error {
	after, limit, err := f.historyRange(c)
	if err != nil {
		return err
	}
	s, ctx := f.server, c.Context()
	head, err := s.hub.Length(ctx, f.meta.ID)
	if err != nil {
		return err
	}
	reader, from, err := f.readerAt(ctx, after/perEnvelope)
	if err != nil {
		return err
	}
	sees, err := f.viewer(ctx)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	out := c.answer.Pieces(c.Request, c.w, s.cfg.Limits.Write)
	buf, shown := []byte{'['}, uint64(0)
	for e, err := range s.hub.Log(ctx, f.meta.ID, from, head) {
		seen := false
		if err == nil {
			seen, err = sees(e)
		}
		if err != nil {
			s.log.Warn("history cut off", "error", err)
			panic(http.ErrAbortHandler) // a list that ends early must not look complete
		}
		if !seen {
			continue
		}
		for _, event := range f.shownEvents(reader.Read(nil, e), f.as) {
			if event.SequenceNumber <= after || limit > 0 && shown == limit {
				continue
			}
			if shown++; shown > 1 {
				buf = append(buf, ',')
			}
			if buf, err = event.Append(buf, c.surface); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		if _, err := out.Write(buf); err != nil {
			return cutOff(out, err)
		}
		buf = buf[:0]
		if limit > 0 && shown == limit {
			break
		}
	}
	return cutOff(out, out.End(string(buf)+"]"))
}

// historyRange reads ?after= as the number of an event. A position stands for the
// last event of its envelope.
func (f *foreign) historyRange(c *call) (after, limit uint64, err error) {
	after, limit, err = historyRange(c)
	if err != nil {
		return 0, 0, err
	}
	if place, parseErr := journal.ParsePosition(c.URL.Query().Get("after")); parseErr == nil {
		after = place.Seq*perEnvelope + perEnvelope - 1
	}
	return after, limit, nil
}

// viewer returns a function that reports whether the caller may see an envelope of
// the log.
func (f *foreign) viewer(ctx context.Context) (func(*envelope.Envelope) (bool, error), error) {
	if f.as == "" {
		return func(*envelope.Envelope) (bool, error) { return true, nil }, nil
	}
	return f.server.hub.Viewer(ctx, f.meta.ID, f.as)
}

// readerAt returns a reader and the sequence from which it reads. A reader with
// state reads the whole log.
func (f *foreign) readerAt(ctx context.Context, seq uint64) (channel.ItemReader, uint64, error) {
	reader, err := f.reader(ctx)
	if _, stateless := reader.(channel.ItemFunc); !stateless {
		seq = 0
	}
	return reader, max(seq, 1), err
}

// foreignWatch is a reader of a channel of another dialect.
type foreignWatch struct {
	*foreign
	follower *hub.Follower
	reader   channel.ItemReader
	surface  wire.Surface
	resumed  bool   // it gave a position, so it also gets its own messages
	after    uint64 // the number of the last event that it has
	gap      *hub.Gap
	run      *foreignRun
	writing  map[string]int // bytes of the messages that it sees while they are written
	pending  []foreignFrame
}

// foreignFrame is an event to be sent to the reader.
type foreignFrame struct {
	id   string
	data []byte
}

// live streams the channel's events.
func (f *foreign) live(c *call) error {
	after := sse.LastEventID(c.Request)
	if after == "" {
		after = c.URL.Query().Get("after")
	}
	if c.Method == http.MethodHead {
		return c.empty(http.StatusOK)
	}
	return f.server.streamFrom(c, func(ctx context.Context) (feed, error) { return f.feed(ctx, c.surface, after) })
}

func (f *foreign) feed(ctx context.Context, surface wire.Surface, after string) (feed, error) {
	w, err := f.watch(ctx, surface, after)
	if err != nil {
		return feed{}, err
	}
	next := func() (string, []byte, <-chan struct{}, error) { return w.next(ctx) }
	return feed{next, w.follower.Close}, nil
}

func (f *foreign) websocket(c *call) error { return f.server.upgrade(c, f) }

// execute executes a frame of a socket.
func (f *foreign) execute(k *socket, e *wire.Event) error {
	if _, isResponse := wire.ResponseOf(e); isResponse {
		if k.who.Role == Reader {
			return nil // the caller only watches
		}
		_, err := f.respond(k.ctx, e, k.who)
		return err
	}
	if err := mayCall(k.who, toWrite); err != nil {
		return err
	}
	if _, ok := e.Payload.(wire.InterruptionRequest); ok {
		return errNoRun(wire.MainBranch) // what is shown as a run is a turn, which only its speaker ends
	}
	in, err := wire.InputOf(e)
	if err != nil {
		return err
	}
	_, err = f.say(k.ctx, in, k.who)
	return err
}

func (f *foreign) open(k *socket) (feed, error) { return f.feed(k.ctx, k.surface, "") }

// watch follows the channel, from now on, after a position, or after the number
// of an event.
func (f *foreign) watch(ctx context.Context, surface wire.Surface, after string) (*foreignWatch, error) {
	s := f.server
	w := &foreignWatch{foreign: f, surface: surface, resumed: after != "", writing: map[string]int{}}
	o := hub.FollowOptions{As: f.as, Queue: s.cfg.Limits.Behind, Bytes: s.cfg.Limits.BehindBytes, Strict: true, FromNow: !w.resumed}
	var err error
	if w.reader, err = f.reader(ctx); err != nil {
		return nil, err
	}
	if w.resumed {
		if o.After, err = w.resume(ctx, after); err != nil {
			return nil, err
		}
	}
	w.follower, err = s.hub.Follow(ctx, f.meta.ID, o)
	if errors.As(err, &w.gap) {
		o.After = w.gap.Head
		w.after = 0
		w.follower, err = s.hub.Follow(ctx, f.meta.ID, o)
	}
	if err != nil {
		return nil, err
	}
	if w.run, err = f.active(ctx, w.follower.Position().Seq); err != nil {
		w.follower.Close()
	}
	return w, err
}

// resume returns the position after which the log is followed. For a number in the
// middle of an envelope's events, the log is followed from before that envelope,
// and the events that the reader already has are left out.
func (w *foreignWatch) resume(ctx context.Context, after string) (journal.Position, error) {
	place, err := parsePlace(after)
	if err != nil {
		return place, err
	}
	whole := place.Epoch != 0 || place.Incarnation != 0
	if whole {
		w.after = place.Seq*perEnvelope + perEnvelope - 1
	} else {
		w.after = place.Seq
		seq := place.Seq / perEnvelope
		if place.Seq%perEnvelope > 0 {
			seq = max(seq, 1) - 1
		}
		if place, err = w.server.hub.Position(ctx, w.meta.ID); err != nil || seq == 0 {
			place = journal.Position{}
		} else {
			place.Seq = seq
		}
	}
	if _, stateless := w.reader.(channel.ItemFunc); stateless || err != nil {
		return place, err
	}
	return journal.Position{}, nil // the reader needs what comes before, too
}

// next returns the reader's next event as bytes. If there is none, wake is the
// channel to wait for.
func (w *foreignWatch) next(ctx context.Context) (id string, data []byte, wake <-chan struct{}, err error) {
	if w.gap != nil {
		data, err := gapEvent(w.gap).Append(nil, w.surface)
		w.gap = nil
		return "", data, nil, err
	}
	if len(w.pending) > 0 {
		first := w.pending[0]
		w.pending = w.pending[1:]
		return first.id, first.data, nil, nil
	}
	ev, wake, err := w.follower.TryNext(ctx)
	if _, ok := errors.AsType[*hub.Gap](err); ok {
		err = errNoSession(w.meta.ID)
	}
	if err != nil || wake != nil {
		return "", nil, wake, err
	}
	return "", nil, nil, w.take(&ev)
}

// take turns an event of the channel into frames.
func (w *foreignWatch) take(ev *hub.Event) error {
	items := w.reader.Read(nil, ev.Envelope)
	if ev.Live && !ev.Side {
		return w.takeLive(items)
	}
	before := w.run
	if !ev.Side {
		w.run = w.run.after(ev.Envelope, items)
	}
	if err := w.push(w.runBegins(before, ev.Envelope), ""); err != nil {
		return err
	}
	var events []wire.Event
	for _, e := range w.shownEvents(items, w.as) {
		if ev.Side { // it has no position in the log
			e.EventID, e.SequenceNumber = "", 0
		} else if e.SequenceNumber <= w.after {
			continue
		}
		events = append(events, e)
	}
	if ev.Side {
		return w.push(events, "")
	}
	events = w.finishWriting(ev.Envelope, events)
	if !w.resumed && w.as != "" && ev.Envelope.Sender == w.as {
		events = withoutMessages(events)
	}
	if err := w.push(events, ev.Position.String()); err != nil {
		return err
	}
	return w.push(w.runEnds(before, ev.Envelope), "")
}

// push adds events. Only the last one carries the position.
func (w *foreignWatch) push(events []wire.Event, position string) error {
	for i := range events {
		data, err := events[i].Append(nil, w.surface)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "%v", err)
		}
		frame := foreignFrame{data: data}
		if i == len(events)-1 {
			frame.id = position
		}
		w.pending = append(w.pending, frame)
	}
	return nil
}

// runBegins returns the event of a run that an envelope began.
func (w *foreignWatch) runBegins(before *foreignRun, e *envelope.Envelope) []wire.Event {
	if w.run == nil || w.run == before || e.Seq*perEnvelope+perEnvelope-1 <= w.after {
		return nil
	}
	return w.ofRun(e, wire.BranchRunStarted{RuntimeRunID: w.run.id, AgentID: w.agent(), StartedAt: w.run.started.UTC()},
		wire.MessageTurnStarted{MessageTurnID: w.run.id, ConversationID: w.meta.ID, AgentID: w.agent(), AgentName: w.agent()})
}

// runEnds returns the events of a run that an envelope ended.
func (w *foreignWatch) runEnds(before *foreignRun, e *envelope.Envelope) []wire.Event {
	if before == nil || w.run == before {
		return nil
	}
	return w.ofRun(e, wire.MessageTurnFinished{
		MessageTurnID: before.id, ConversationID: w.meta.ID, AgentID: w.agent(), AgentName: w.agent(),
		Duration: wire.Duration(e.CreatedAt.Sub(before.started)),
	}, wire.BranchRunCompleted{RuntimeRunID: before.id, AgentID: w.agent()})
}

// agent returns the agent under which runs of the channel are shown: the whole
// channel, regardless of who answers.
func (w *foreignWatch) agent() string { return w.meta.Manifest.Type }

// ofRun returns events of a run, which are in no log.
func (w *foreignWatch) ofRun(e *envelope.Envelope, payloads ...wire.Payload) []wire.Event {
	events := make([]wire.Event, len(payloads))
	for i, p := range payloads {
		events[i] = wire.Event{Payload: p}
		events[i].Scope, events[i].Timestamp = wire.Scope{Session: w.meta.ID, Branch: wire.MainBranch}, wire.FormatTime(e.CreatedAt)
	}
	return events
}

// maxWriting is how many unfinished messages are shown at once. Of any others the
// reader gets only the finished text.
const maxWriting = 64

// takeLive shows pieces of messages. No other live envelopes are shown.
func (w *foreignWatch) takeLive(items []channel.Item) error {
	var events []wire.Event
	for n := range items {
		i := &items[n]
		if i.Kind != channel.ItemDelta || i.Speaker == w.as && w.as != "" {
			continue
		}
		id := liveID(i)
		shown, begun := w.writing[id]
		switch {
		case i.At == 0 && !begun && len(w.writing) < maxWriting:
			events = append(events, w.event(i, wire.TextMessageStart{MessageID: id, Role: "assistant"}))
		case !begun || i.At != shown:
			continue // a gap, or a restart: the whole text follows
		}
		w.writing[id] = shown + len(i.Text)
		if i.At == 0 {
			w.writing[id] = len(i.Text)
		}
		events = append(events, w.event(i, wire.TextDelta{MessageID: id, Text: i.Text}))
	}
	return w.push(events, "")
}

// finishWriting ends a message that was shown while it was written. Its text is not
// shown again.
func (w *foreignWatch) finishWriting(e *envelope.Envelope, events []wire.Event) []wire.Event {
	id := liveID(&channel.Item{Speaker: e.Sender, ID: e.Causation})
	shown, begun := w.writing[id]
	if !begun {
		return events
	}
	delete(w.writing, id)
	var left []wire.Event
	for _, event := range events {
		switch p := event.Payload.(type) {
		case wire.TextDelta:
			if p.MessageID != e.ID || len(p.Text) < shown {
				return events // the text has changed, so it is shown as a whole
			}
			event.Payload = wire.TextDelta{MessageID: id, Text: p.Text[shown:]}
		case wire.TextMessageEnd:
			event.Payload = wire.TextMessageEnd{MessageID: id}
		case wire.MessageStarted, wire.TextMessageStart, wire.MessageCompleted:
			continue
		}
		left = append(left, event)
	}
	return left
}

// withoutMessages leaves out whole messages: clients show every live text as the
// agent's, and the reader has its own messages already.
func withoutMessages(events []wire.Event) []wire.Event {
	var left []wire.Event
	for _, e := range events {
		if !whole[e.Payload.EventType()] {
			left = append(left, e)
		}
	}
	return left
}
