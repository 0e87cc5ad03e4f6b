package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
)

// entries returns how many deadlines of a kind the index holds.
func (r *rig) entries(kind string) int {
	r.t.Helper()
	n := 0
	for _, err := range journal.IndexAll(context.Background(), r.engine, journal.ScanOptions{Prefix: []byte("due/" + kind + "/")}) {
		if err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	return n
}

func TestOnlyDueChannelsAreLoaded(t *testing.T) {
	t.Parallel()
	runs(t, "of many idle channels the due ones", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		idle, due := min(scale.N(1_000), 5_000), 10
		for range idle {
			r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":36000}`)+"]"), a, b)
		}
		var channels []string
		for range due {
			channels = append(channels, r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":60}`)+"]"), a, b))
		}
		r.restart()
		if n := r.Stats().ChannelsLoaded; n != 0 {
			t.Fatalf("opening loaded %d channels", n)
		}
		r.pass(time.Minute)
		if n := r.SweepExpectations(context.Background()); n != due {
			t.Fatalf("looked at %d channels, %d are due", n, due)
		}
		if n := r.Stats().ChannelsLoaded; n != int64(due) {
			t.Fatalf("loaded %d channels, %d are due", n, due)
		}
		var fired []string
		for _, record := range r.audit("expectation_violated") {
			fired = append(fired, record["channel_id"].(string))
		}
		if slices.Sort(fired); !slices.Equal(fired, channels) {
			t.Fatalf("fired in %q, want %q", fired, channels)
		}
		if n := r.SweepExpectations(context.Background()); n != 0 {
			t.Fatalf("%d channels are due again", n)
		}
	})
	runs(t, "a channel has one entry, and an ended one none", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		list := "[" + expectation("max_silence", "audit", `{"seconds":600}`) + "," + expectation("reply_within", "audit", `{"seconds":60}`) + "]"
		ch := r.openWith("conversation", expecting(list), a, b)
		for range 5 {
			if n := r.entries("expectation"); n != 1 {
				t.Fatalf("%d entries", n)
			}
			r.say(a, ch, "ping")
			r.pass(20 * time.Second)
			r.say(b, ch, "pong")
			r.pass(20 * time.Second)
			r.sweep()
		}
		r.end(ch, "")
		if n := r.entries("expectation"); n != 0 {
			t.Fatalf("%d entries of an ended channel", n)
		}
	})
	runs(t, "most envelopes write nothing beside themselves", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		before := r.engine.Stats().Records
		for n := range 20 {
			r.pass(time.Second)
			r.say([]*agent{a, b}[n%2], ch, "x")
		}
		if n := r.engine.Stats().Records - before; n != 20 {
			t.Fatalf("20 texts wrote %d records", n)
		}
	})
	runs(t, "entries outlast a crash", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "auto_close", `{"seconds":60}`)+"]"), a, b)
		r.crash()
		r.pass(time.Minute)
		r.sweep()
		if m := r.channel(ch); m.State != channel.Closed {
			t.Fatalf("it is %v", m.State)
		}
	})
	runs(t, "what fired in a batch that was lost fires again, once", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting("["+expectation("max_silence", "notify", `{"seconds":60}`)+"]"), a, b)
		before := r.types(ch)
		r.pass(time.Minute)
		r.engine.Faults().FailWrite()
		r.sweep()
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("fired %q, which was not stored", got)
		}
		r.sweep()
		r.sweep()
		if got := r.types(ch); !slices.Equal(got, append(before, envelope.TypeExpectationViolated)) {
			t.Fatalf("log is %q", got)
		}
		if got := r.fired(); len(got) != 1 {
			t.Fatalf("fired %q", got)
		}
	})
}

func TestManyViolators(t *testing.T) {
	t.Parallel()
	slow := byHand
	slow.InviteAckTimeout = time.Hour
	runs(t, "more than one batch holds all fire in one sweep", slow, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		var others []*agent
		for i := range 260 {
			others = append(others, r.agent(fmt.Sprint("agent", i)).ignoreInvites())
		}
		go func() {
			_, _ = r.tryOpen("discussion", expecting("["+expectation("acks_within", "audit", `{"seconds":60}`)+"]"), a, others...)
		}()
		r.pass(time.Minute)
		r.sweep()
		if got := len(r.fired()); got != 260 {
			t.Fatalf("%d of 260 fired", got)
		}
		r.sweep()
		if got := len(r.fired()); got != 260 {
			t.Fatalf("%d fired, 260 should", got)
		}
	})
}

func TestExpectationsKnob(t *testing.T) {
	t.Parallel()
	runs(t, "it replaces the manifest's list", byHand, func(t *testing.T, r *rig) {
		ch := r.openWith("conversation", expecting("[]"), r.agent("alice"), r.agent("bob"))
		r.pass(90 * time.Minute)
		r.sweep()
		if got := r.fired(); len(got) != 0 {
			t.Fatalf("fired %q", got)
		}
		if n := r.entries("expectation"); n != 0 || r.channel(ch).State != channel.Active {
			t.Fatalf("%d entries", n)
		}
	})
	runs(t, "null leaves the manifest's", byHand, func(t *testing.T, r *rig) {
		r.openWith("conversation", expecting("null"), r.agent("alice"), r.agent("bob"))
		r.pass(time.Hour)
		r.sweep()
		if got := r.fired(); !slices.Equal(got, []string{"max_silence []"}) {
			t.Fatalf("fired %q", got)
		}
	})
	for name, list := range map[string]string{
		"no list":           `{"name":"max_silence"}`,
		"no name":           `[{"on_violation":"audit"}]`,
		"no handler":        `[{"name":"max_silence"}]`,
		"params no object":  `[{"name":"max_silence","on_violation":"audit","params":[]}]`,
		"seconds no number": `[{"name":"max_silence","on_violation":"audit","params":{"seconds":"60"}}]`,
	} {
		runs(t, "refused before anything is stored: "+name, byHand, func(t *testing.T, r *rig) {
			_, err := r.tryOpen("conversation", expecting(list), r.agent("alice"), r.agent("bob"))
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("got %v", err)
			}
			if channels, _, _ := r.Channels(context.Background(), hub.ListOptions{}); len(channels) != 0 {
				t.Fatalf("%d channels", len(channels))
			}
		})
	}
	runs(t, "applies_to narrows it by id and by role", byHand, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		list := `[{"name":"reply_within","on_violation":"audit","params":{"seconds":60},"applies_to":["` + c.id + `"]},` +
			`{"name":"reply_within","on_violation":"audit","params":{"seconds":90},"applies_to":["initiator"]},` +
			`{"name":"max_silence","on_violation":"audit","params":{"seconds":120},"applies_to":["initiator"]}]`
		ch := r.openWith("discussion", expecting(list), a, b, c)
		r.say(a, ch, "go")
		r.pass(time.Hour)
		r.sweep()
		if got, want := r.fired(), []string{"reply_within [" + c.id + "]", "max_silence []"}; !slices.Equal(got, want) {
			t.Fatalf("fired %q, want %q", got, want)
		}
	})
}

// quota finds participants that have sent more than a number of envelopes.
type quota struct{ calls *int }

func (q quota) Evaluate(x channel.Expectation, c hub.Case) hub.Verdict {
	*q.calls++
	said := map[string]int{}
	for e, err := range c.Log() {
		if err == nil && envelope.IsContent(e.Type) {
			said[e.Sender]++
		}
	}
	v := hub.Verdict{Next: c.Now.Add(time.Hour), Detail: fmt.Appendf(nil, `{"state":"%T"}`, c.State)}
	for _, p := range c.Metadata.Participants {
		if said[p.Agent] > 2 {
			v.Violated, v.Violators = true, append(v.Violators, p.Agent)
		}
	}
	return v
}

type recorder struct{ got *[]hub.Violation }

func (h recorder) Handle(ctx context.Context, on *hub.Hub, channelID string, v hub.Violation) error {
	*h.got = append(*h.got, v)
	_, err := on.CloseChannel(ctx, channelID, "quota")
	return err
}

func TestCustomExpectations(t *testing.T) {
	t.Parallel()
	calls := 0
	var got []hub.Violation
	o := hub.Options{
		Evaluators: map[string]hub.Evaluator{"quota": quota{&calls}},
		Handlers:   map[string]hub.Handler{"record": recorder{&got}},
	}
	runs(t, "judge by metadata, state and log, and act on the hub", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting(`[{"name":"quota","on_violation":"record"}]`), a, b)
		r.pass(30 * time.Minute)
		if calls != 1 {
			t.Fatalf("an idle channel was judged %d times in half an hour, once is enough", calls)
		}
		for range 3 {
			r.say(a, ch, "me")
			r.say(b, ch, "you")
		}
		r.pass(10 * time.Second)
		if calls != 2 {
			t.Fatalf("judged %d times, want again after the sends", calls)
		}
		if len(got) != 2 || !slices.Equal(got[1].Violators, []string{a.id, b.id}) || got[0].Expectation.Name != "quota" {
			t.Fatalf("got %+v", got)
		}
		if m := r.channel(ch); m.CloseReason != "quota" {
			t.Fatalf("closed with %q", m.CloseReason)
		}
		// Each of the two fired, and was handled, with both named.
		if fired := r.fired(); len(fired) != 2 {
			t.Fatalf("fired %q", fired)
		}
	})
	var seen []int
	lengths := byHand
	lengths.Evaluators = map[string]hub.Evaluator{"lengths": evaluatorFunc(func(c hub.Case) hub.Verdict {
		n := 0
		for range c.Log() {
			n++
		}
		seen = append(seen, n)
		return hub.Verdict{}
	})}
	runs(t, "the log that is judged by holds all that the state does", lengths, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", expecting(`[{"name":"lengths","on_violation":"audit"}]`), a, b)
		release := r.hold()
		post := r.Admit(context.Background(), &envelope.Envelope{Channel: ch, Sender: a.id, Type: "my.own", Data: []byte(`{}`)}, nil)
		swept := make(chan struct{})
		go func() { defer close(swept); r.sweep() }()
		r.settle()
		if len(seen) != 0 {
			t.Fatalf("judged by %d envelopes, with one on its way", seen[0])
		}
		release()
		<-swept
		if _, err := post.Wait(context.Background()); err != nil || !slices.Equal(seen, []int{4}) {
			t.Fatalf("judged by %v, %v", seen, err)
		}
	})
	judged := map[string]int{}
	several := byHand
	several.Evaluators = map[string]hub.Evaluator{
		"often":  evaluatorFunc(func(hub.Case) hub.Verdict { judged["often"]++; return hub.Verdict{} }),
		"seldom": evaluatorFunc(func(c hub.Case) hub.Verdict { judged["seldom"]++; return hub.Verdict{Next: c.Now.Add(time.Hour)} }),
	}
	runs(t, "the one that wants to look soonest decides when", several, func(t *testing.T, r *rig) {
		for _, list := range []string{`[{"name":"often","on_violation":"audit"},{"name":"seldom","on_violation":"audit"}]`, `[{"name":"seldom","on_violation":"audit"},{"name":"often","on_violation":"audit"}]`} {
			clear(judged)
			ch := r.openWith("conversation", expecting(list), r.agent("alice"+list), r.agent("bob"+list))
			for range 5 {
				r.sweep()
				r.pass(time.Second)
			}
			if judged["often"] != 5 || judged["seldom"] != 5 {
				t.Fatalf("judged %v in five sweeps", judged)
			}
			r.end(ch, "")
		}
	})
	panics := hub.Options{Evaluators: map[string]hub.Evaluator{"quota": panicky{}}}
	runs(t, "one that panics finds nothing, and stops no other", panics, func(t *testing.T, r *rig) {
		list := `[{"name":"quota","on_violation":"audit"},` + expectation("max_silence", "audit", `{"seconds":60}`) + `]`
		r.openWith("conversation", expecting(list), r.agent("alice"), r.agent("bob"))
		r.pass(2 * time.Minute)
		if fired := r.fired(); !slices.Equal(fired, []string{"max_silence []"}) {
			t.Fatalf("fired %q", fired)
		}
	})
}

type evaluatorFunc func(hub.Case) hub.Verdict

func (f evaluatorFunc) Evaluate(_ channel.Expectation, c hub.Case) hub.Verdict { return f(c) }

type panicky struct{}

func (panicky) Evaluate(channel.Expectation, hub.Case) hub.Verdict { panic("no") }

func TestSweepTick(t *testing.T) {
	t.Parallel()
	auto := expecting("[" + expectation("max_silence", "auto_close", `{"seconds":60}`) + "," + expectation("max_silence", "audit", `{"seconds":60}`) + "]")
	holds(t, "ag2-hub#120: the auto-close of one channel does not hide another's violation", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		first := r.openWith("conversation", auto, a, b)
		second := r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":60}`)+"]"), a, b)
		r.pass(time.Minute)
		r.sweep()
		where := []any{}
		for _, record := range r.audit("expectation_violated") {
			where = append(where, record["channel_id"])
		}
		t.Equal(where, []any{first, second})
		t.Equal(r.channel(first).State, channel.Closed)
		t.Equal(r.channel(second).State, channel.Active)
	})
	holds(t, "ag2-hub#120: same-name expectations fire separately, and not again on later ticks", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		// The last one causes another check after the others have fired.
		list := "[" + expectation("max_silence", "audit", `{"seconds":60}`) + "," + expectation("max_silence", "warn", `{"seconds":60}`) +
			"," + expectation("max_silence", "notify", `{"seconds":120}`) + "]"
		r.openWith("conversation", expecting(list), a, b)
		for range 3 {
			r.pass(time.Minute)
			r.sweep()
		}
		handlers := []any{}
		for _, record := range r.audit("expectation_violated") {
			handlers = append(handlers, record["on_violation"])
		}
		t.Equal(handlers, []any{"audit", "warn", "notify"})
	})
	holds(t, "ag2-hub#120: unknown evaluator or handler is ignored", byHand, func(t *spec.T, r *rig) {
		list := "[" + expectation("nobody_knows", "audit", `{}`) + "," + expectation("max_silence", "nobody_knows", `{"seconds":1}`) + "]"
		r.openWith("conversation", expecting(list), r.agent("alice"), r.agent("bob"))
		r.pass(time.Hour)
		r.sweep()
		t.Equal(r.fired(), []string{})
		t.Equal(len(r.ear.fired), 0)
	})
	var calls int
	throwing := byHand
	throwing.Handlers = map[string]hub.Handler{"throw": handlerFunc(func(string) error { calls++; panic("no") })}
	holds(t, "ag2-hub#120: a throwing handler is not retried", throwing, func(t *spec.T, r *rig) {
		r.openWith("conversation", expecting("["+expectation("max_silence", "throw", `{"seconds":60}`)+"]"), r.agent("alice"), r.agent("bob"))
		for range 3 {
			r.pass(time.Minute)
			r.sweep()
		}
		t.Equal(calls, 1)
		t.Equal(r.fired(), []string{"max_silence []"})
	})
}
