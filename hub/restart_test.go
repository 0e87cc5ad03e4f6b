package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// state returns a channel's folded state as its adapter encodes it.
func (r *rig) state(channelID string) string {
	r.t.Helper()
	s, err := r.State(ctx, channelID)
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := r.Adapter(ctx, channelID)
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := a.Codec().Encode(s)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// everything returns the state of a hub as text that can be compared.
func (r *rig) everything() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, p := range r.found(identity.Query{}) {
		d, err := r.Details(ctx, p.ID())
		if err != nil {
			r.t.Fatal(err)
		}
		resume, _ := identity.Marshal(d.Resume)
		rule, _ := identity.Marshal(p.Rule)
		passport, _ := identity.Marshal(p.Passport)
		all[p.ID()] = string(passport) + string(resume) + string(rule)
		if d.Skill != nil {
			all[p.ID()] += *d.Skill
		}
		for _, id := range r.listed() {
			cursor, err := r.Cursor(ctx, p.ID(), id)
			if err != nil {
				r.t.Fatal(err)
			}
			all[p.ID()] += "\n" + id + " " + cursor
		}
	}
	tasks, _, err := r.Tasks(ctx, hub.TaskQuery{Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, tk := range tasks {
		all[tk.ID] = taskText(tk)
	}
	for _, id := range r.listed() {
		meta, err := r.channel(id).MarshalJSON()
		if err != nil {
			r.t.Fatal(err)
		}
		all[id] = string(meta) + r.state(id)
		for _, e := range r.log(id) {
			all[id] += fmt.Sprintf("\n%+v", *e)
		}
	}
	return all
}

func TestRestart(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#104: hydrating twice gives the same state", hub.Options{}, func(t *spec.T, r *rig) {
		skill := "# can do"
		a, b := r.agent("alice", claims("ocr")), r.agent("bob", func(reg *hub.Registration) { reg.Skill = &skill })
		ch := r.open("conversation", a, b)
		r.ack(b, ch, r.say(a, ch, "hi"))
		r.observe(task.Task{ID: "1", Owner: b.id, Channel: ch, State: task.Running, Spec: task.Spec{Capability: "ocr"}})
		r.observe(task.Task{ID: "2", Owner: a.id})
		r.update(task.Update{ID: "2", State: task.Failed, Error: "boom"})
		r.end(r.open("consulting", a, b), "")
		live := r.everything()
		t.Equal(len(live), 6)
		r.restart()
		once := r.everything()
		r.restart()
		t.Equal(once, live)
		t.Equal(r.everything(), live)
	})
	holds(t, "ag2-hub#107 seed-000#76: a deleted capability file is rebuilt", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice", claims("ocr")), r.agent("bob")
		ch := r.open("discussion", a, b)
		said := r.say(a, ch, "hi")
		r.post(b, ch, envelope.TypeText, text("ho"), causing(said))
		before := r.everything()
		caps := r.capabilities()
		r.stop()
		r.store.LoseIndex()
		r.start()
		t.Equal(r.everything(), before)
		t.Equal(r.capabilities(), caps)
		e, err := r.AnswerTo(ctx, ch, b.id, said)
		t.NoError(err)
		t.Equal(string(e.Data), text("ho"))
	})
	holds(t, "ag2-hub#108: unknown adapter: channel listed, not active, posts fail", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		turns, err := r.Turns(ctx, a.id)
		t.NoError(err)
		t.Equal(len(turns), 1)
		r.restart(func(o *hub.Options) { o.Adapters = []channel.Adapter{} })
		t.Equal(r.listed(), []string{ch})
		t.Equal(r.health().ActiveChannels, int64(0))
		_, err = r.trySay(a, ch, "hi")
		t.ErrorContains(err, "no registered adapter")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		turns, err = r.Turns(ctx, a.id)
		t.NoError(err)
		t.Equal(len(turns), 0)
		_, err = r.State(ctx, ch)
		t.ErrorContains(err, "no adapter state")
	})
	runs(t, "a channel without its adapter can still be closed", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.restart(func(o *hub.Options) { o.Adapters = []channel.Adapter{} })
		if m := r.end(ch, "gone"); m.State != channel.Closed || m.CloseReason != "gone" {
			t.Errorf("%v %s", m.State, m.CloseReason)
		}
	})
	holds(t, "ag2-hub#109: closed channels load but are not active; open ones are", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		closed, open := r.open("conversation", a, b), r.open("conversation", a, b)
		r.end(closed, "done")
		r.restart()
		t.Equal(r.listed(), []string{closed, open})
		t.Equal(r.channel(closed).State, channel.Closed)
		t.Equal(r.channel(open).State, channel.Active)
		t.Equal(r.health().ActiveChannels, int64(1))
		_, err := r.trySay(a, closed, "hi")
		t.ErrorContains(err, "closed")
		r.say(a, open, "hi")
	})
	holds(t, "ag2-hub#110: observed statistics", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", claims("draw"))
		for i, outcome := range []identity.Outcome{identity.Completed, identity.Failed, identity.Cancelled} {
			r.pass(time.Second)
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: outcome, LatencyMS: ms(int64(i))})
		}
		want := r.resume(a)
		t.Equal(want.Observed, map[string]identity.ObservedStat{"ocr": {N: 3, Completed: 1, Failed: 1, P50LatencyMS: ms(1)}})
		r.restart()
		t.Equal(r.resume(a), want, cmpopts.EquateEmpty())
	})
	holds(t, "ag2-hub#110: custom rules", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		rule := identity.DefaultRule()
		rule.Access.InboundFrom = []string{"b*"}
		rule.Limits.MaxConcurrentTasks = 7
		t.NoError(r.SetRule(ctx, a.id, &rule))
		want, err := r.AgentByID(a.id)
		t.NoError(err)
		r.restart()
		got, err := r.AgentByID(a.id)
		t.NoError(err)
		t.Equal(got.Rule, want.Rule, cmp.AllowUnexported(identity.TTL{}))
		t.Equal(got.Rule.Version, int64(2))
		t.Equal(got.Rule.Access.InboundFrom, []string{"b*"})
	})
	holds(t, "ag2-hub#111: many channels fold to the same states", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		var channels []string
		for i := range 100 {
			kind := []string{"conversation", "discussion"}[i%2]
			ch := r.open(kind, a, b)
			channels = append(channels, ch)
			for n := range 100 {
				r.say([]*agent{a, b}[n%2], ch, fmt.Sprint(n))
			}
		}
		states := map[string]string{}
		for _, ch := range channels {
			states[ch] = r.state(ch)
		}
		r.restart()
		for _, ch := range channels {
			t.Equal(r.state(ch), states[ch])
			t.Equal(len(r.log(ch)), 103)
		}
	})
	holds(t, "ag2-hub#111: a rotation of five goes on at the same speaker", hub.Options{}, func(t *spec.T, r *rig) {
		var five []*agent
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			five = append(five, r.agent(name))
		}
		ch := r.open("discussion", five[0], five[1:]...)
		for i := range 8 {
			r.say(five[i%5], ch, fmt.Sprint(i))
		}
		r.restart()
		turn, ok, err := r.Expected(ctx, ch)
		t.NoError(err)
		t.True(ok, "someone is expected")
		t.Equal(turn.Agent, five[3].id)
		_, err = r.trySay(five[4], ch, "too early")
		t.ErrorContains(err, "expects '"+five[3].id+"' to speak")
		r.say(five[3], ch, "8")
	})
	holds(t, "ag2-hub#94: metadata and folded state stay", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hi")
		before := r.state(ch)
		r.end(ch, "done")
		t.Equal(r.state(ch), before)
		t.Equal(r.channel(ch).CloseReason, "done")
	})
	holds(t, "ag2-channels#13: a restart after the question", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		id := r.say(a, ch, "why?")
		r.restart()
		t.Equal(r.state(ch), `{"initiator_sent":true,"respondent_replied":false,"last_envelope_id":"`+id+`"}`)
	})
	holds(t, "ag2-channels#27: restart restores expected speaker, last speaker, count, order", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		r.say(a, ch, "1")
		id := r.say(b, ch, "2")
		r.restart()
		t.Equal(r.state(ch), fmt.Sprintf(`{"participant_order":[%q,%q,%q],"expected_next_speaker":%q,"last_speaker_id":%q,"last_envelope_id":%q,"turn_count":2}`,
			a.id, b.id, c.id, c.id, b.id, id))
	})
	// flow returns a workflow that its first participant neither opened nor began,
	// after a write of its context and one turn.
	flow := func(r *rig) (ch, id string, a, b, c *agent) {
		a, b, c = r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch = r.openWith("workflow", func(o *hub.Opening) {
			o.Knobs = []byte(`{"graph":` + everyone(c.id) + `,"context_vars":{"n":1,"gone":true}}`)
			o.Participants = []string{b.id, a.id, c.id}
		}, a)
		r.post(b, ch, envelope.TypeContextSet, `{"set":{"n":2,"deep":{"x":[9007199254740993]}},"delete":["gone"]}`)
		id = r.post(c, ch, envelope.TypePacket, `{"routing":{"kind":"text"},"context_updates":{"set":{"none":null}},"body":"go"}`)
		return ch, id, a, b, c
	}
	holds(t, "ag2-channels#65: restart restores expected speaker, last speaker, count, creator", hub.Options{}, func(t *spec.T, r *rig) {
		ch, id, a, b, c := flow(r)
		r.restart()
		t.Contains(r.state(ch), fmt.Sprintf(`{"participant_order":[%q,%q,%q],"expected_next_speaker":%q,"last_speaker_id":%q,"last_envelope_id":%q,"turn_count":1,`+
			`"pending_close_reason":"","creator_id":%q,"graph_data":%s,`, b.id, a.id, c.id, b.id, c.id, id, a.id, everyone(c.id)))
		_, err := r.trySay(a, ch, "me?")
		t.ErrorContains(err, "expects '"+b.id+"' to speak")
		r.say(b, ch, "me")
	})
	holds(t, "ag2-channels#75: restart reproduces the map", hub.Options{}, func(t *spec.T, r *rig) {
		ch, _, _, _, _ := flow(r)
		for range 2 {
			t.Contains(r.state(ch), `"context_vars":{"deep":{"x":[9007199254740993]},"n":2,"none":null}}`)
			r.restart()
		}
	})
	holds(t, "ag2-channels#131: adapter state remains readable after close", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		r.say(a, ch, "why?")
		id := r.say(b, ch, "because")
		want := `{"initiator_sent":true,"respondent_replied":true,"last_envelope_id":"` + id + `"}`
		t.Equal(r.state(ch), want)
		r.restart()
		t.Equal(r.state(ch), want)
	})
	holds(t, "ag2-hub#94: nothing is left of many cycles", byHand, func(t *spec.T, r *rig) {
		a, b, shy := r.agent("alice"), r.agent("bob"), r.agent("carol").ignoreInvites()
		for range 50 {
			ch := r.openWith("conversation", expecting("["+expectation("max_silence", "audit", `{"seconds":60}`)+"]"), a, b)
			waiting, result := r.opening("conversation", nil, a, shy)
			s := r.Stats()
			t.Equal([]int{s.Loaded, s.Opening}, []int{2, 1})
			r.end(waiting, "")
			_, err := result()
			t.ErrorContains(err, "closed during handshake")
			r.pass(time.Minute)
			r.sweep()
			r.end(ch, "")
		}
		r.settle()
		t.Equal(len(r.fired()), 50)
		s := r.Stats()
		t.Equal([]int{s.Loaded, s.Waiting, s.Opening}, []int{0, 0, 0})
		t.Equal(len(r.everything()), 103) // with the three participants
	})
	holds(t, "seed-000#14 seed-000#16: sequences count 1, 2, 3 without gaps", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "4")
		r.restart()
		r.say(b, ch, "5")
		r.end(ch, "")
		var numbers []uint64
		for _, e := range r.log(ch) {
			numbers = append(numbers, e.Seq)
		}
		t.Equal(numbers, []uint64{1, 2, 3, 4, 5, 6})
		t.Equal(r.types(ch)[5], envelope.TypeClosed)
	})
	holds(t, "seed-000#75: after a restart the hub re-folds each log through its adapter", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		var channels []string
		for _, kind := range []string{"conversation", "discussion", "consulting"} {
			others := []*agent{b, c}
			if kind != "discussion" {
				others = others[:1]
			}
			ch := r.open(kind, a, others...)
			r.say(a, ch, "hi")
			channels = append(channels, ch)
		}
		graph := fmt.Sprintf(`{"graph":{"initial_speaker":%q,"transitions":[{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}}}]},"context_vars":{"n":1}}`, a.id)
		flow := r.openWith("workflow", knobs(graph), a, b, c)
		r.say(a, flow, "hi")
		r.post(c, flow, envelope.TypeContextSet, `{"set":{"n":2}}`)
		channels = append(channels, flow)
		var before []string
		for _, ch := range channels {
			before = append(before, r.state(ch))
		}
		r.restart()
		var after []string
		for _, ch := range channels {
			after = append(after, r.state(ch))
		}
		t.Equal(after, before)
		t.Contains(after[3], `"context_vars":{"n":2}`, `"expected_next_speaker":"`+b.id+`"`)
	})
	runs(t, "a channel evicted when idle folds to what it was", hub.Options{EvictAfter: 1 << 40}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		r.say(a, ch, "hi")
		before := r.state(ch)
		r.pass(3 * (1 << 40))
		if n := r.Stats().Loaded; n != 0 {
			t.Fatalf("%d loaded", n)
		}
		if got := r.state(ch); got != before {
			t.Errorf("folded to %s, was %s", got, before)
		}
		r.say(b, ch, "ho")
	})
	runs(t, "opening a hub folds nothing", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for range 20 {
			r.say(a, r.open("conversation", a, b), "hi")
			r.say(b, r.listed()[0], "ho")
		}
		r.restart()
		r.listed()
		if s := r.Stats(); s.ChannelsLoaded != 0 || s.Loaded != 0 {
			t.Errorf("%+v", s)
		}
	})
	runs(t, "deletion leaves the audit and the others", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		doomed, kept := r.open("conversation", a, b), r.open("conversation", a, b)
		r.say(a, doomed, "secret")
		if err := r.Delete(ctx, doomed, theOperator); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.Channel(ctx, doomed); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("got %v", err)
			}
			if got := r.listed(); !slices.Equal(got, []string{kept}) {
				t.Errorf("listed %v", got)
			}
			if n, _ := r.Length(ctx, doomed); n != 0 {
				t.Errorf("%d envelopes left", n)
			}
			r.restart()
		}
	})
}

// Channels beyond the limit of loaded ones are soon evicted.
func TestTooManyLoaded(t *testing.T) {
	t.Parallel()
	runs(t, "limits.loaded_channels", hub.Options{Limits: hub.Limits{LoadedChannels: 3}}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		for range 20 {
			r.open("conversation", a, b)
		}
		r.pass(2 * time.Second)
		if n := r.Stats().Loaded; n > 3 {
			t.Errorf("%d are loaded", n)
		}
	})
}

// An ended channel is folded only for callers that ask for its result.
func TestEndedIsNotFolded(t *testing.T) {
	t.Parallel()
	runs(t, "posts are refused from what is known of it", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hello")
		r.end(ch, "done")
		r.restart()
		for range 3 {
			if _, err := r.trySay(a, ch, "again"); fault.CodeOf(err) != fault.Protocol || !strings.Contains(err.Error(), "done") {
				t.Fatalf("got %v", err)
			}
		}
		if n := r.Stats().BytesFolded; n != 0 {
			t.Errorf("%d bytes were folded", n)
		}
		if _, err := r.State(ctx, ch); err != nil {
			t.Error(err)
		}
		if n := r.Stats().BytesFolded; n == 0 {
			t.Error("its state came from nowhere")
		}
	})
}
