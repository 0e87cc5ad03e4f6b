package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// What goes wrong in one place holds up nobody elsewhere.

// told reports whether an agent got a text in a channel.
func told(a *agent, channelID string) bool {
	return slices.ContainsFunc(a.inbox(), func(e *envelope.Envelope) bool {
		return e.Channel == channelID && e.Type == envelope.TypeText
	})
}

func TestReplayGoesOn(t *testing.T) {
	t.Parallel()
	runs(t, "past a channel that is deleted meanwhile", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		r.say(a, one, "1")
		r.say(a, one, "2")
		r.say(a, two, "3")
		r.restart()
		b.clear()
		n := 0
		b.replaying(func() {
			if n++; n == 2 {
				if err := r.Delete(ctx, one, theOperator); err != nil {
					t.Error(err)
				}
			}
		})
		if err := r.BindReplaying(ctx, b.id, b, ""); err != nil || !told(b, two) {
			t.Errorf("it got %q, %v", b.received(), err)
		}
	})
	runs(t, "past what cannot be read", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		r.say(a, one, "1")
		r.say(a, two, "2")
		log := journal.PartitionName{Tenant: "main", Partition: "channel/" + one}.In("history", "-")
		ticket, err := r.engine.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: log, Records: []journal.Record{{Data: []byte("garbage")}}}}})
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.restart()
		b.clear()
		if err := r.BindReplaying(ctx, b.id, b, ""); err != nil || !told(b, one) || !told(b, two) {
			t.Errorf("it got %q, %v", b.received(), err)
		}
	})
}

// Someone else's failed batch throws away what a pending channel was folded to,
// and not who waits for it.
func TestOpeningOutlivesItsFold(t *testing.T) {
	t.Parallel()
	wait := func(t *testing.T, r *rig) (id string, c *agent, opened <-chan error) {
		a, b := r.agent("a"), r.agent("b")
		c = r.agent("c").ignoreInvites()
		other := r.open("conversation", a, b)
		done := make(chan error, 1)
		go func() {
			_, err := r.tryOpen("conversation", nil, a, c)
			done <- err
		}()
		r.settle()
		list, _, err := r.Channels(ctx, hub.ListOptions{Agent: c.id})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		r.engine.Faults().FailWrite()
		if _, err := r.trySay(a, other, "x"); fault.CodeOf(err) != fault.Unavailable {
			t.Fatal(err)
		}
		return list[0].ID, c, done
	}
	runs(t, "it opens", hub.Options{}, func(t *testing.T, r *rig) {
		id, c, opened := wait(t, r)
		r.answer(c, id, envelope.TypeInviteAck)
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
	runs(t, "it is not answered", hub.Options{}, func(t *testing.T, r *rig) {
		_, _, opened := wait(t, r)
		r.pass(time.Hour)
		if err := <-opened; fault.CodeOf(err) != fault.Protocol {
			t.Error(err)
		}
	})
	runs(t, "the hub is closed", hub.Options{}, func(t *testing.T, r *rig) {
		_, _, opened := wait(t, r)
		r.Close()
		if err := <-opened; err == nil {
			t.Error("it is said to be open")
		}
	})
}

// erratic panics when it is told to.
type erratic struct {
	hub.AllowAll
	on bool
}

func (e *erratic) AuthorizeInbox(hub.Profile, int64) error {
	if e.on {
		panic("inbox")
	}
	return nil
}

func (e *erratic) AuthorizeSend(hub.Profile, *envelope.Envelope, []hub.Profile) error {
	if e.on {
		panic("send")
	}
	return nil
}

type shaky struct {
	channel.Adapter
	on *bool
}

func (s shaky) Fold(state channel.State, e *envelope.Envelope) channel.State {
	if *s.on {
		panic("fold")
	}
	return s.Adapter.Fold(state, e)
}

func TestPanicsHoldUpNobody(t *testing.T) {
	t.Parallel()
	arbiter := &inboxOnly{}
	runs(t, "an arbiter's, at an inbox", hub.Options{Arbiter: arbiter}, func(t *testing.T, r *rig) {
		a, b := r.agent("a", rule1()), r.agent("b", rule1())
		ch := r.open("conversation", a, b)
		arbiter.on = true
		for range 3 {
			if _, err := r.trySay(a, ch, "x"); fault.CodeOf(err) != fault.Internal {
				t.Fatal(err)
			}
		}
		arbiter.on = false
		r.say(a, ch, "y")
	})
	inviting := &erratic{}
	runs(t, "an arbiter's, at an invitation", hub.Options{Arbiter: inviting}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		inviting.on = true
		if _, err := r.tryOpen("conversation", nil, a, b); fault.CodeOf(err) != fault.Internal {
			t.Fatal(err)
		}
		inviting.on = false
		r.say(a, r.open("conversation", a, b), "y")
		if n := r.Stats().Loaded; n != 1 {
			t.Errorf("%d channels are loaded", n)
		}
	})
	on := false
	var list []channel.Adapter
	for _, a := range adapter.All() {
		list = append(list, shaky{a, &on})
	}
	runs(t, "an adapter's", hub.Options{Adapters: list}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.open("conversation", a, b)
		for _, evict := range []bool{true, false} {
			if evict {
				r.Evict()
			}
			on = true
			if _, err := r.trySay(a, ch, "x"); fault.CodeOf(err) != fault.Internal {
				t.Fatal(err)
			}
			on = false
			r.say(a, ch, "y")
		}
	})
}

// inboxOnly breaks at inboxes alone.
type inboxOnly struct{ erratic }

func (*inboxOnly) AuthorizeSend(hub.Profile, *envelope.Envelope, []hub.Profile) error { return nil }

func rule1() func(*hub.Registration) {
	return func(g *hub.Registration) { g.Rule.Limits.Inbox.MaxPending = 1 }
}

// nosy asks the hub while it is told something.
type nosy struct {
	hub.NoopListener
	hub   *hub.Hub
	heard int
}

func (n *nosy) InboxPressure(agent string, _, _ int64) {
	if _, bound := n.hub.Bound(agent); bound {
		n.heard++
	}
}

func TestPressureIsToldOutsideTheLink(t *testing.T) {
	t.Parallel()
	n := &nosy{}
	runs(t, "a listener asks who is bound", hub.Options{Listeners: []hub.Listener{n}}, func(t *testing.T, r *rig) {
		n.hub = r.Hub
		one := int64(1)
		a, b := r.agent("a"), r.agent("b", func(g *hub.Registration) { g.Rule.Limits.Inbox.HighWater = &one })
		r.say(a, r.open("conversation", a, b), "y")
		if n.heard != 1 {
			t.Errorf("it heard of %d", n.heard)
		}
	})
}

// A participant who is hidden and speaks sees what it missed, also when that
// ends the channel.
func TestHiddenSpeaks(t *testing.T) {
	t.Parallel()
	hiding := func(list string) string { return `"expectations":[` + list + `]` }
	runs(t, "and ends the channel", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.openWith("consulting", knobs("{"+hiding(expectation("reply_within", "hide", `{"seconds":10}`))+"}"), a, b)
		r.say(a, ch, "q")
		r.pass(10 * time.Second)
		r.SweepExpectations(ctx)
		r.post(a, ch, "app.missed", `{}`)
		b.clear()
		r.say(b, ch, "answer")
		r.settle()
		if got := b.received(); !slices.Contains(got, "app.missed") || !slices.Contains(got, envelope.TypeClosed) {
			t.Errorf("it got %q", got)
		}
	})
	runs(t, "as a supervisor whose word waits", byHand, func(t *testing.T, rig *rig) {
		a, b, s := rig.agent("a"), rig.agent("b"), rig.agent("s")
		r := rig.inRound(a, b, s, fmt.Sprintf(
			`"expectations":[{"name":"reply_within","on_violation":"hide","params":{"seconds":10},"applies_to":[%q]}],`, s.id))
		r.pass(10 * time.Second)
		r.SweepExpectations(ctx)
		word := r.word("stop", "")
		for range 2 {
			if _, err := r.packet(ctx); err != nil {
				t.Fatal(err)
			}
			r.settle()
		}
		if w := <-word; w.err != nil {
			t.Fatal(w.err)
		}
		if got := s.received(); len(got) < 2 || !slices.Equal(got[len(got)-2:], []string{envelope.TypePacket, envelope.TypePacket}) {
			t.Errorf("it got %q", got)
		}
	})
}

// Whose turn runs is known although the channel was evicted.
func TestEvictedInTheMiddleOfARound(t *testing.T) {
	t.Parallel()
	runs(t, "a supervisor waits", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		for range 2 {
			r.Evict()
		}
		word := r.word("stop", "")
		if _, err := r.packet(ctx); err != nil {
			t.Fatal(err)
		}
		if w := <-word; w.err != nil {
			t.Fatal(w.err)
		}
		same(t, r.tail(), []string{`{"text":"stop"}`, "packet"})
	})
	runs(t, "a task is mirrored", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.open("conversation", a, b)
		id := r.say(a, ch, "go")
		r.Evict()
		observe := func(name string) string {
			if err := r.ObserveTask(ctx, task.Task{ID: name, Owner: b.id, State: task.Running, Channel: ch}, nil, hub.MirrorEnds); err != nil {
				t.Fatal(err)
			}
			list := r.types(ch)
			return list[len(list)-1]
		}
		if got := observe("one"); got != envelope.TypeTaskStarted {
			t.Errorf("the last envelope is %s", got)
		}
		log := r.log(ch)
		if err := r.Ack(ctx, b.id, ch, log[len(log)-1].ID); err != nil || id == "" {
			t.Fatal(err)
		}
		r.Evict()
		before := len(r.types(ch))
		if observe("two"); len(r.types(ch)) != before {
			t.Error("a task was mirrored although no turn runs")
		}
	})
}

// Words that wait take places in inboxes as all others.
func TestHeldWordsTakePlaces(t *testing.T) {
	t.Parallel()
	runs(t, "up to the limit", hub.Options{}, func(t *testing.T, rig *rig) {
		a, b, s := rig.agent("a", func(g *hub.Registration) { g.Rule.Limits.Inbox.MaxPending = 2 }), rig.agent("b"), rig.agent("s")
		r := rig.inRound(a, b, s, "")
		first, second := r.word("1", ""), r.word("2", "k")
		if w := <-r.word("3", ""); fault.CodeOf(w.err) != fault.InboxFull {
			t.Errorf("the third is answered with %v", w)
		}
		r.pass(time.Minute) // they are refused, and give their places back
		for _, w := range []<-chan answer{first, second} {
			if w := <-w; fault.CodeOf(w.err) != fault.Protocol {
				t.Errorf("answered with %v", w)
			}
		}
		word := r.word("4", "")
		if _, err := r.packet(ctx); err != nil {
			t.Fatal(err)
		}
		if w := <-word; w.err != nil {
			t.Error(w.err)
		}
		if n := r.Pending(a.id); n != 2 {
			t.Errorf("%d are pending", n)
		}
	})
}

// A refusal is told once it stands, and each is told.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	runs(t, "of a key used before", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.open("conversation", a, b)
		keyed := func(e *envelope.Envelope) { e.Key = "k" }
		r.post(a, ch, envelope.TypeText, text("1"), keyed)
		r.ear.clear()
		_, err := r.tryPost(a, ch, envelope.TypeText, text("2"), keyed)
		same(t, r.ear.heard(), []string{fmt.Sprintf("rejected %s: %v", envelope.TypeText, err)})
		same(t, r.Stats().Refused, map[fault.Code]int64{fault.Protocol: 1})
	})
	runs(t, "not one that was computed from what failed", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch, other := r.open("conversation", a, b), r.open("conversation", a, b)
		r.ear.clear()
		release := r.hold()
		go func() { _, _ = r.trySay(a, other, "first") }()
		r.settle()
		go func() { _, _ = r.CloseChannel(context.Background(), ch, "bye") }()
		r.settle()
		said := make(chan error, 1)
		go func() {
			_, err := r.trySay(b, ch, "hello")
			said <- err
		}()
		r.settle()
		r.engine.Faults().FailWrite()
		release()
		if err := <-said; err != nil {
			t.Fatal(err)
		}
		r.settle()
		if got := r.ear.heard(); slices.ContainsFunc(got, func(s string) bool { return s[:8] == "rejected" }) {
			t.Errorf("it heard %q", got)
		}
	})
}

// A word that waited is traced to its own sender.
func TestHeldWordIsTraced(t *testing.T) {
	t.Parallel()
	o, spans, _ := traced()
	runs(t, "to its sender's span", o, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		span := func(n byte) context.Context {
			return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}}))
		}
		done := make(chan error, 1)
		go func() {
			_, err := r.Post(span(1), &envelope.Envelope{Channel: r.channel, Sender: r.s.id, Type: envelope.TypeText, Data: []byte(`{"text":"stop"}`)}, nil)
			done <- err
		}()
		r.settle()
		if _, err := r.packet(span(2)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		list := named(spans, "network.envelope "+envelope.TypeText)
		var callers []trace.TraceID
		for _, link := range list[len(list)-1].Links() {
			if id := link.SpanContext.TraceID(); id == (trace.TraceID{1}) || id == (trace.TraceID{2}) {
				callers = append(callers, id)
			}
		}
		same(t, callers, []trace.TraceID{{1}})
	})
}

// late makes a task appear in a channel in the moment of its deletion.
type late struct {
	journal.Engine
	then func()
}

func (l *late) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	ticket, err := l.Engine.DropPartition(ctx, p, keep...)
	if l.then != nil {
		l.then()
	}
	return ticket, err
}

func TestNothingIsAddedToWhatIsDeleted(t *testing.T) {
	t.Parallel()
	runs(t, "a task", byHand, func(t *testing.T, r *rig) {
		l := &late{Engine: r.engine}
		r.Close()
		var err error
		if r.Hub, err = hub.Open(ctx, l, r.opts); err != nil {
			t.Fatal(err)
		}
		a, b := r.agent("a"), r.agent("b")
		ch := r.open("conversation", a, b)
		r.end(ch, "")
		observed := make(chan error, 1)
		l.then = func() {
			go func() {
				observed <- r.ObserveTask(ctx, task.Task{ID: "t1", Owner: a.id, State: task.Running, Channel: ch}, nil, hub.MirrorOff)
			}()
			for range 10_000 {
				runtime.Gosched() // it has time to get there, and waits for the channel
			}
		}
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		// It is a task of a channel that nobody knows, as any other such: it can end.
		if err := <-observed; err != nil {
			t.Fatal(err)
		}
		if err := r.UpdateTask(ctx, task.Update{ID: "t1", State: task.Completed}, nil, hub.MirrorOff); err != nil {
			t.Error(err)
		}
		if tk, err := r.Task(ctx, "t1"); err != nil || tk.State != task.Completed {
			t.Errorf("it is %v, %v", tk, err)
		}
	})
}
