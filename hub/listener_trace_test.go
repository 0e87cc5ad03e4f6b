package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/hub/tracing/spanlog"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// traced returns a hub's options with a recorder of spans, and the lines of a log.
func traced() (hub.Options, *tracetest.SpanRecorder, *bytes.Buffer) {
	spans, lines := tracetest.NewSpanRecorder(), &bytes.Buffer{}
	log := spanlog.New(lines)
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSyncer(log))
	o := byHand
	o.Tracing, o.SpanLog = provider, log
	return o, spans, lines
}

// named returns the ended spans of a name.
func named(spans *tracetest.SpanRecorder, name string) []sdk.ReadOnlySpan {
	var found []sdk.ReadOnlySpan
	for _, s := range spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func attributes(list []attribute.KeyValue) map[string]any {
	all := map[string]any{}
	for _, kv := range list {
		all[string(kv.Key)] = kv.Value.AsInterface()
	}
	return all
}

func events(s sdk.ReadOnlySpan) []string {
	var list []string
	for _, e := range s.Events() {
		list = append(list, fmt.Sprint(e.Name, " ", attributes(e.Attributes)))
	}
	return list
}

func TestEnvelopeSpans(t *testing.T) {
	t.Parallel()
	o, spans, _ := traced()
	holds(t, "ag2-hub#124: an envelope's span is a root under an active span, which it links", o, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		ctx, caller := o.Tracing.Tracer("test").Start(context.Background(), "caller")
		id, err := r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`), Audience: []string{b.id}, Causation: "c1"}, nil)
		t.NoError(err)
		caller.End()
		got := named(spans, "network.envelope ag2.msg.text")
		t.Equal(len(got), 1)
		span := got[0]
		t.False(span.Parent().IsValid(), "it has a parent")
		t.True(span.SpanContext().TraceID() != caller.SpanContext().TraceID(), "it is of another trace")
		t.Equal(span.SpanKind(), trace.SpanKindProducer)
		t.Equal(span.InstrumentationScope().Name, "opentelemetry.instrumentation.ag2")
		t.Equal(span.InstrumentationScope().SchemaURL, "https://opentelemetry.io/schemas/1.11.0")
		t.Equal(attributes(span.Attributes()), map[string]any{
			"ag2.span.type": "envelope", "ag2.network.channel_id": ch, "ag2.network.sender_id": a.id, "ag2.network.event_type": envelope.TypeText,
			"ag2.network.envelope_id": id, "ag2.network.causation_id": "c1", "ag2.network.audience": []string{b.id},
		})
		links := map[string]trace.SpanID{}
		for _, l := range span.Links() {
			links[attributes(l.Attributes)["ag2.link.kind"].(string)] = l.SpanContext.SpanID()
		}
		r.end(ch, "")
		channel := named(spans, "network.channel conversation")[0]
		t.Equal(links, map[string]trace.SpanID{"triggered_by": caller.SpanContext().SpanID(), "in_channel": channel.SpanContext().SpanID()})
		t.Equal(span.Status().Code, codes.Unset)
		log := r.log(ch)
		stored := log[len(log)-2]
		t.Equal(stored.Trace, fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()))
		t.Equal(b.inbox()[len(b.inbox())-2].Trace, stored.Trace)
	})
	own, ownSpans, _ := traced()
	runs(t, "only what is posted and of substance has one", own, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "notify", `{"seconds":60}`)+"]"), a, b)
		r.post(a, ch, "my.own", `{}`)
		r.post(a, ch, envelope.TypeTaskProgress, `{}`)
		r.post(a, ch, envelope.TypeClosed, `{}`)
		r.openWith("discussion", expecting("["+expectation("turn_within", "remove", `{"seconds":60}`)+"]"), a, b)
		r.pass(time.Hour)
		r.sweep()
		r.end(ch, "")
		var names []string
		for _, s := range ownSpans.Ended() {
			if strings.HasPrefix(s.Name(), "network.envelope") {
				names = append(names, s.Name())
			}
		}
		if len(names) != 1 || names[0] != "network.envelope my.own" {
			t.Fatalf("got %q", names)
		}
	})
	failing, failed, _ := traced()
	holds(t, "ag2-hub#127: a failed delivery counts, and is an error", failing, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		b.fail(errors.New("gone"))
		r.say(a, ch, "x")
		span := named(failed, "network.envelope ag2.msg.text")[0]
		t.Equal(attributes(span.Attributes())["ag2.network.dispatch_failures"], any(int64(1)))
		t.Equal(span.Status(), sdk.Status{Code: codes.Error, Description: "1 dispatch failure(s)"})
		t.Equal(c.received()[len(c.received())-1], envelope.TypeText)
		b.fail(nil)
		r.end(ch, "")
		t.Equal(events(named(failed, "network.channel discussion")[0])[1], "dispatch_failed map[ag2.error.message:gone ag2.error.type:internal]")
	})
	breaking, broken, _ := traced()
	breaking.Arbiter = &fragile{}
	holds(t, "ag2-hub#127: an escaped arbiter error is the span's, is not counted, and fails the post", breaking, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		breaking.Arbiter.(*fragile).broken = true
		_, err := r.trySay(a, ch, "x")
		t.ErrorContains(err, "the arbiter is out")
		t.Equal(fault.CodeOf(err), fault.Internal)
		span := named(broken, "network.envelope ag2.msg.text")[0]
		t.Equal(span.Status().Code, codes.Error)
		_, counted := attributes(span.Attributes())["ag2.network.dispatch_failures"]
		t.False(counted, "it is counted as a failure")
		t.Equal(len(span.Events()), 1)
		t.Equal(span.Events()[0].Name, "exception")
		t.Contains(attributes(span.Events()[0].Attributes)["exception.message"].(string), "the arbiter is out")
		breaking.Arbiter.(*fragile).broken = false
		r.say(b, ch, "the hub goes on")
		t.Equal(len(named(broken, "network.envelope ag2.msg.text")), 2)
		t.Equal(len(r.log(ch)), 5) // invite, ack, opened, and both texts
	})
	lost, lostSpans, _ := traced()
	runs(t, "one that was not stored is an error", lost, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.engine.Faults().FailWrite()
		if _, err := r.trySay(a, ch, "x"); fault.CodeOf(err) != fault.Unavailable {
			t.Fatalf("got %v", err)
		}
		if got := named(lostSpans, "network.envelope ag2.msg.text"); len(got) != 1 || got[0].Status().Code != codes.Error {
			t.Fatalf("%d spans", len(got))
		}
	})
}

// fragile is an arbiter that panics when it is asked about a delivery.
type fragile struct {
	hub.Rules
	broken bool
}

func (f *fragile) AuthorizeDispatch(hub.Profile, hub.Profile, *envelope.Envelope) error {
	if f.broken {
		panic("the arbiter is out")
	}
	return nil
}

func TestChannelSpans(t *testing.T) {
	t.Parallel()
	o, spans, lines := traced()
	holds(t, "ag2-hub#125: a channel's span has opened and closed, and stands in the span log", o, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		t.Equal(len(named(spans, "network.channel conversation")), 0)
		r.pass(time.Minute)
		r.end(ch, "done")
		span := named(spans, "network.channel conversation")[0]
		t.Equal(span.SpanKind(), trace.SpanKindInternal)
		t.Equal(attributes(span.Attributes()), map[string]any{
			"ag2.span.type": "channel", "ag2.network.channel_id": ch, "ag2.network.manifest_type": "conversation", "ag2.network.creator_id": a.id,
		})
		t.Equal(events(span), []string{"opened map[]", "closed map[reason:done]"})
		t.Equal(span.EndTime().Sub(span.StartTime()), time.Minute)
		t.Equal(span.Status().Code, codes.Unset)
		var line map[string]any
		for text := range strings.Lines(lines.String()) {
			if strings.Contains(text, `"network.channel conversation"`) {
				t.NoError(json.Unmarshal([]byte(text), &line))
			}
		}
		t.Equal(line, map[string]any{
			"trace_id": span.SpanContext().TraceID().String(), "span_id": span.SpanContext().SpanID().String(), "parent_span_id": nil,
			"name": "network.channel conversation", "kind": "INTERNAL", "status": "UNSET", "status_message": "",
			"start": "2000-01-01T00:00:00.000000Z", "end": "2000-01-01T00:01:00.000000Z", "links": []any{},
			"attributes": map[string]any{
				"ag2.span.type": "channel", "ag2.network.channel_id": ch, "ag2.network.manifest_type": "conversation", "ag2.network.creator_id": a.id,
			},
			"events": []any{
				map[string]any{"name": "opened", "at": "2000-01-01T00:00:00.000000Z", "attributes": map[string]any{}},
				map[string]any{"name": "closed", "at": "2000-01-01T00:01:00.000000Z", "attributes": map[string]any{"reason": "done"}},
			},
		})
		t.Equal(r.health().TelemetryLogBytes, int64(lines.Len()))
	})
	expired, expiredSpans, _ := traced()
	runs(t, "one that expires is an error; what happens in it are events", expired, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("discussion", expecting("["+expectation("turn_within", "audit", `{"seconds":60}`)+"]"), a, b)
		_, _ = r.trySay(b, ch, "not my turn")
		_ = r.ReportTurnFailure(context.Background(), ch, a.id, "e", "ValueError", "boom")
		r.pass(time.Minute)
		r.sweep()
		r.pass(2 * time.Hour)
		r.SweepTTL(context.Background())
		span := named(expiredSpans, "network.channel discussion")[0]
		want := []string{
			"opened map[]",
			"envelope_rejected map[ag2.error.message:discussion expects '" + a.id + "' to speak, not '" + b.id + "' ag2.error.type:protocol_error]",
			"turn_failed map[ag2.error.message:boom ag2.error.type:ValueError]",
			"expectation.turn_within map[ag2.expectation.on_violation:audit ag2.expectation.violators:[" + a.id + "]]",
			"expired map[reason:ttl_expired]",
		}
		if got := events(span); fmt.Sprint(got) != fmt.Sprint(want) || span.Status().Code != codes.Error {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
	open, openSpans, _ := traced()
	runs(t, "one that is open ends with the hub", open, func(t *testing.T, r *rig) {
		r.open("conversation", r.agent("alice"), r.agent("bob"))
		r.Close()
		if got := named(openSpans, "network.channel conversation"); len(got) != 1 {
			t.Fatalf("%d spans", len(got))
		}
	})
}

func TestTaskSpans(t *testing.T) {
	t.Parallel()
	o, spans, _ := traced()
	holds(t, "ag2-hub#126: backdated to started_at, and an error when cancelled", o, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		ch := r.open("conversation", a, r.agent("bob"))
		begun := time.Now()
		r.pass(time.Minute)
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch, State: task.Running, StartedAt: begun, Spec: task.Spec{Capability: "ocr"}})
		r.observe(task.Task{ID: "2", Owner: a.id, State: task.Running, StartedAt: begun})
		r.update(task.Update{ID: "1", State: task.Cancelled, Error: "stop"})
		r.pass(time.Minute)
		r.update(task.Update{ID: "2", State: task.Completed})
		cancelled, completed := named(spans, "network.task ocr")[0], named(spans, "network.task task")[0]
		t.True(cancelled.StartTime().Equal(begun), "it began when the task did")
		t.Equal(cancelled.EndTime().Sub(cancelled.StartTime()), time.Minute)
		t.Equal(cancelled.Status(), sdk.Status{Code: codes.Error, Description: "stop"})
		t.Equal(attributes(cancelled.Attributes()), map[string]any{
			"ag2.span.type": "task", "ag2.network.task_id": "1", "ag2.network.capability": "ocr", "ag2.network.outcome": "cancelled",
			"ag2.network.channel_id": ch, "ag2.network.owner_id": a.id,
		})
		r.observe(task.Task{ID: "3", Owner: a.id, Spec: task.Spec{Capability: "idle"}})
		r.update(task.Update{ID: "3", State: task.Expired})
		never := named(spans, "network.task idle")[0]
		t.Equal(never.StartTime(), never.EndTime()) // it never began
		t.Equal(completed.Status().Code, codes.Ok)
		t.Equal(completed.EndTime().Sub(completed.StartTime()), 2*time.Minute)
	})
	quiet, quietSpans, _ := traced()
	holds(t, "ag2-hub#126: started and progress give none", quiet, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		r.observe(task.Task{ID: "1", Owner: a.id, State: task.Running, StartedAt: time.Now()})
		r.update(task.Update{ID: "1", Progress: []byte(`{"n":1}`)})
		for _, kind := range []string{"started", "progress"} {
			t.NoError(r.FireTaskEvent(context.Background(), "1", kind, nil))
		}
		t.Equal(len(quietSpans.Ended()), 0)
		t.NoError(r.FireTaskEvent(context.Background(), "1", "mirror_failed", []byte(`{"owner_id":"`+a.id+`"}`)))
		t.Equal(named(quietSpans, "network.task task")[0].Status().Code, codes.Error)
	})
	once, onceSpans, _ := traced()
	holds(t, "ag2-hub#102: one span", once, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		r.observe(task.Task{ID: "1", Owner: a.id, State: task.Running})
		for range 3 {
			r.update(task.Update{ID: "1", State: task.Failed})
		}
		t.Equal(len(named(onceSpans, "network.task task")), 1)
	})
}

func TestAgentSpans(t *testing.T) {
	t.Parallel()
	o, spans, _ := traced()
	runs(t, "a lifetime, with what changes in it", o, func(t *testing.T, r *rig) {
		ctx := context.Background()
		a := r.agent("alice", func(reg *hub.Registration) {
			mark := int64(1)
			reg.Rule.Limits.Inbox.HighWater = &mark
		})
		b := r.agent("bob")
		skill := "s"
		rule := identity.DefaultRule()
		if err := errors.Join(
			r.SetResume(ctx, a.id, &identity.Resume{}), r.SetSkill(ctx, a.id, &skill),
			r.RecordObservation(ctx, hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Failed}),
		); err != nil {
			t.Fatal(err)
		}
		ch := r.open("conversation", a, b)
		r.say(b, ch, "x")
		r.settle()
		if err := errors.Join(r.SetRule(ctx, a.id, &rule), r.Unregister(ctx, a.id)); err != nil {
			t.Fatal(err)
		}
		life := named(spans, "agent.lifetime alice")[0]
		if got, want := attributes(life.Attributes()), (map[string]any{"ag2.span.type": "agent_lifetime", "ag2.agent.id": a.id, "gen_ai.agent.name": "alice"}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v", got)
		}
		if got, want := events(life), []string{"inbox_pressure map[ag2.inbox.cap:1000 ag2.inbox.pending:1]", "unregistered map[]"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		var got []string
		for _, s := range spans.Ended() {
			if s.Parent().SpanID() == life.SpanContext().SpanID() {
				if !s.StartTime().Equal(s.EndTime()) {
					t.Errorf("%s took time", s.Name())
				}
				got = append(got, fmt.Sprint(s.Name(), " ", attributes(s.Attributes())))
			}
		}
		id := "ag2.agent.id:" + a.id
		want := []string{
			"agent.resume_set " + a.id + " map[" + id + " ag2.agent.resume_source:tenant ag2.span.type:agent_event]",
			"agent.skill_set " + a.id + " map[" + id + " ag2.agent.skill_removed:false ag2.span.type:agent_event]",
			"agent.resume_set " + a.id + " map[ag2.agent.capability:ocr " + id + " ag2.agent.outcome:failed ag2.agent.resume_source:observed ag2.span.type:agent_event]",
			"agent.rule_set " + a.id + " map[" + id + " ag2.span.type:agent_event]",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

func TestNoTracing(t *testing.T) {
	t.Parallel()
	busy := func(t *spec.T, r *rig) *envelope.Envelope {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "x")
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch})
		log := r.log(ch)
		r.end(ch, "")
		t.NoError(r.Unregister(context.Background(), a.id))
		return log[len(log)-1]
	}
	lines := &bytes.Buffer{}
	without := byHand
	without.SpanLog = spanlog.New(lines)
	holds(t, "ag2-hub#123: without tracing there is no trace id, no span and no byte", without, func(t *spec.T, r *rig) {
		t.Equal(busy(t, r).Trace, "")
		t.Equal(lines.Len(), 0)
		t.Equal(r.health().TelemetryLogBytes, int64(0))
	})
	holds(t, "ag2-hub#123: without tracing a sender's trace id passes through", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.post(a, ch, "my.own", `{}`, func(e *envelope.Envelope) { e.Trace = "00-1-2-3" })
		log := r.log(ch)
		t.Equal(log[len(log)-1].Trace, "00-1-2-3")
	})
	nothing, unwritten := byHand, &bytes.Buffer{}
	nothing.Tracing, nothing.SpanLog = noop.NewTracerProvider(), spanlog.New(unwritten)
	holds(t, "ag2-hub#128: with a no-op provider nothing breaks and nothing is written", nothing, func(t *spec.T, r *rig) {
		t.Equal(busy(t, r).Trace, "")
		t.Equal(unwritten.Len(), 0)
		t.Equal(r.health().TelemetryLogBytes, int64(0))
		t.Equal(len(r.audit()), 6) // two registered, created, task, closed, and one left
	})
}
