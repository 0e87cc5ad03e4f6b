package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// A hidden participant who speaks receives what it missed, even if its text ends
// the channel.
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

// The turn in progress is known although the channel was evicted.
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

// Waiting texts take places in inboxes like all others.
func TestHeldWordsTakePlaces(t *testing.T) {
	t.Parallel()
	runs(t, "up to the limit", hub.Options{}, func(t *testing.T, rig *rig) {
		a, b, s := rig.agent("a", func(g *hub.Registration) { g.Rule.Limits.Inbox.MaxPending = 2 }), rig.agent("b"), rig.agent("s")
		r := rig.inRound(a, b, s, "")
		first, second := r.word("1", ""), r.word("2", "k")
		if w := <-r.word("3", ""); fault.CodeOf(w.err) != fault.InboxFull {
			t.Errorf("the third is answered with %v", w)
		}
		r.pass(time.Minute) // they are refused, and release their places
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

// A refusal is reported once it is final, and each is reported.
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

// A text that waited is traced to its own sender.
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

// late calls a function while a log is written, or a partition dropped.
type late struct {
	journal.Engine
	dropped func()
	written func(journal.LogName)
}

func (l *late) DropPartition(ctx context.Context, p journal.PartitionName, keep ...string) (*journal.Ticket, error) {
	ticket, err := l.Engine.DropPartition(ctx, p, keep...)
	if l.dropped != nil {
		l.dropped()
	}
	return ticket, err
}

func (l *late) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if l.written != nil {
		for _, a := range b.Appends {
			l.written(a.Log)
		}
	}
	return l.Engine.Append(ctx, b)
}

// A task whose channel is deleted while the task is stored is like any task of an
// unknown channel: it is stored, and it can end.
func TestNothingIsAddedToWhatIsDeleted(t *testing.T) {
	t.Parallel()
	begin := func(r *rig) (l *late, a *agent, ch string) {
		l = &late{Engine: r.engine}
		r.Close()
		var err error
		if r.Hub, err = hub.Open(ctx, l, r.opts); err != nil {
			r.t.Fatal(err)
		}
		a, b := r.agent("a"), r.agent("b")
		ch = r.open("conversation", a, b)
		r.end(ch, "")
		return l, a, ch
	}
	observe := func(r *rig, a *agent, ch string) error {
		return r.ObserveTask(ctx, task.Task{ID: "t1", Owner: a.id, State: task.Running, Channel: ch}, nil, hub.MirrorOff)
	}
	ends := func(r *rig) {
		if err := r.UpdateTask(ctx, task.Update{ID: "t1", State: task.Completed}, nil, hub.MirrorOff); err != nil {
			r.t.Error(err)
		}
		if tk, err := r.Task(ctx, "t1"); err != nil || tk.State != task.Completed {
			r.t.Errorf("it is %v, %v", tk, err)
		}
	}
	runs(t, "a task after its channel went", byHand, func(t *testing.T, r *rig) {
		l, a, ch := begin(r)
		observed := make(chan error, 1)
		l.dropped = func() {
			go func() { observed <- observe(r, a, ch) }()
			for range 10_000 {
				runtime.Gosched() // lets the other goroutine reach the point where it waits for the channel
			}
		}
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		if err := <-observed; err != nil {
			t.Fatal(err)
		}
		ends(r)
	})
	runs(t, "a task whose id was claimed before its channel went", byHand, func(t *testing.T, r *rig) {
		l, a, ch := begin(r)
		l.written = func(log journal.LogName) {
			if log.Partition != schema.Tenant("main").TaskPlace("t1").Partition {
				return
			}
			l.written = nil
			if err := r.Delete(ctx, ch, theOperator); err != nil {
				t.Error(err)
			}
		}
		if err := observe(r, a, ch); err != nil || l.written != nil {
			t.Fatal(err)
		}
		ends(r)
	})
}
