package hub_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// law runs a property in a bubble of its own, so that its time is fake.
func law(t *testing.T, property func(rt *rapid.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			r := newRig(quiet{t, rt}, hub.Options{EvictAfter: time.Minute, ExpectationSweep: -1})
			defer r.stop()
			property(rt, r)
		})
	})
}

// timeless hides the deadline, which a bubble does not have.
type timeless struct{ testing.TB }

// quiet reports a rig's failures to rapid, which shrinks them. The law itself stops
// what the rig would clean up at the end of the test.
type quiet struct {
	testing.TB
	rt *rapid.T
}

func (q quiet) Fatal(args ...any)                 { q.rt.Fatal(args...) }
func (q quiet) Fatalf(format string, args ...any) { q.rt.Fatalf(format, args...) }
func (q quiet) Cleanup(func())                    {}

func TestLawReplayGivesTheLiveState(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		w := newWorld(rt, r)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			_, _ = w.speak()
			live := w.states()
			w.turmoil()
			if diff := cmp.Diff(live, w.states()); diff != "" {
				rt.Fatalf("after turmoil (-live +replayed):\n%s", diff)
			}
		}
	})
}

func TestLawAcknowledgedIsReadBack(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		w := newWorld(rt, r)
		logs := map[string][]*envelope.Envelope{}
		for _, ch := range w.channels {
			logs[ch] = w.log(ch)
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			e, err := w.speak()
			w.turmoil()
			log := w.log(e.Channel)
			before := logs[e.Channel]
			if err != nil && len(log) != len(before) {
				rt.Fatalf("refused with %v, yet the log grew from %d to %d", err, len(before), len(log))
			}
			if err == nil && !slices.ContainsFunc(log[len(before):], func(got *envelope.Envelope) bool { return cmp.Equal(got, e) }) {
				rt.Fatalf("acknowledged %+v, not in the log", e)
			}
			for i, got := range log {
				if got.Seq != uint64(i+1) || i > 0 && got.ID <= log[i-1].ID {
					rt.Fatalf("entry %d has sequence %d and id %s", i, got.Seq, got.ID)
				}
			}
			if diff := cmp.Diff(before, log[:len(before)]); diff != "" {
				rt.Fatalf("history changed:\n%s", diff)
			}
			logs[e.Channel] = log
		}
	})
}

func TestLawClosedAcceptsNothing(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		w := newWorld(rt, r)
		for _, ch := range w.channels {
			w.end(ch, "over")
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			before := w.everything()
			e, err := w.speak()
			if fault.CodeOf(err) != fault.Protocol {
				rt.Fatalf("%s into a closed channel: %v", e.Type, err)
			}
			w.turmoil()
			if diff := cmp.Diff(before, w.everything()); diff != "" {
				rt.Fatal(diff)
			}
		}
	})
}

// Every agent receives what it may see, in log order, and nothing else; an agent
// that was away, at least once.
func TestLawDelivery(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		w := newWorld(rt, r)
		connected := map[*agent]bool{}
		for _, p := range w.people {
			connected[p] = true
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			who := w.anyone("moves")
			switch rapid.IntRange(0, 5).Draw(rt, "move") {
			case 0:
				w.away(who)
				connected[who] = false
			case 1:
				if err := w.BindReplaying(ctx, who.id, who, ""); err != nil {
					rt.Fatal(err)
				}
				connected[who] = true
			}
			_, _ = w.speak()
		}
		for _, p := range w.people {
			if !connected[p] {
				if err := w.BindReplaying(ctx, p.id, p, ""); err != nil {
					rt.Fatal(err)
				}
			}
			w.checkInbox(p)
		}
	})
}

// checkInbox compares an agent's deliveries with the logs.
func (w *world) checkInbox(p *agent) {
	told := map[string][]*envelope.Envelope{}
	for _, e := range p.inbox() {
		told[e.Channel] = append(told[e.Channel], e)
	}
	for _, ch := range w.channels {
		m := w.channel(ch)
		seen := map[string]bool{}
		high := uint64(0)
		for _, e := range told[ch] {
			if !e.VisibleTo(p.id) {
				w.rt.Fatalf("%s was told %+v, which it may not see", p.name, e)
			}
			if !seen[e.ID] && e.Seq < high {
				w.rt.Fatalf("%s was told %d for the first time after %d", p.name, e.Seq, high)
			}
			seen[e.ID], high = true, max(high, e.Seq)
		}
		if m.State.Terminal() {
			continue // what an agent missed of an ended channel is not replayed
		}
		for _, e := range w.log(ch) {
			due := m.Has(p.id) && e.Sender != p.id && e.VisibleTo(p.id)
			due = due && e.Type != envelope.TypeInviteAck && !envelope.IsChannelEvent(e.Type)
			if due && !seen[e.ID] {
				w.rt.Fatalf("%s was never told %d %s of %s", p.name, e.Seq, e.Type, m.Manifest.Type)
			}
		}
	}
}

func TestLawRefusalWaitsForItsCause(t *testing.T) {
	t.Parallel()
	for name, powerLoss := range map[string]bool{"stored": false, "lost": true} {
		runs(t, name, hub.Options{}, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.open("discussion", a, b)
			r.say(a, ch, "warm up")
			release := r.hold()
			first := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Data: []byte(`{"text":"b"}`)}, nil)
			second := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Data: []byte(`{"text":"again"}`)}, nil)
			var answers atomic.Int32
			var wg sync.WaitGroup
			var errs [2]error
			for i, p := range []*hub.Pending{first, second} {
				wg.Go(func() {
					_, errs[i] = p.Wait(ctx)
					answers.Add(1)
				})
			}
			r.settle()
			if n := answers.Load(); n != 0 {
				t.Fatalf("%d answered before anything was durable", n)
			}
			if powerLoss {
				r.engine.Faults().Crash()
			}
			release()
			wg.Wait()
			if !powerLoss {
				if errs[0] != nil || fault.CodeOf(errs[1]) != fault.Protocol || !strings.Contains(errs[1].Error(), "expects") {
					t.Errorf("got %v and %v", errs[0], errs[1])
				}
				return
			}
			for i, err := range errs {
				if fault.CodeOf(err) != fault.Unavailable {
					t.Errorf("answer %d is %v: it was never stored", i, err)
				}
			}
			r.restart()
			r.say(b, ch, "judged without the first")
		})
	}
}

// A discussion under concurrent posts behaves like one that takes them one at
// a time: porcupine finds an order that explains every answer.
func TestLawPostsAreLinearizable(t *testing.T) {
	t.Parallel()
	model := porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, output any) (bool, any) {
			turn, sender := state.(int), input.(int)
			accepted := output.(bool)
			if accepted != (turn == sender) {
				return false, state
			}
			if accepted {
				return true, (turn + 1) % 3
			}
			return true, state
		},
		Equal: func(a, b any) bool { return a == b },
	}
	runs(t, "discussion", hub.Options{}, func(t *testing.T, r *rig) {
		people := []*agent{r.agent("a"), r.agent("b"), r.agent("c")}
		ch := r.open("discussion", people[0], people[1:]...)
		var clock atomic.Int64
		var mu sync.Mutex
		var history []porcupine.Operation
		var wg sync.WaitGroup
		for client := range 6 {
			wg.Go(func() {
				for range 20 {
					sender := client % 3
					call := clock.Add(1)
					_, err := r.trySay(people[sender], ch, "x")
					end := clock.Add(1)
					if err != nil && fault.CodeOf(err) != fault.Protocol {
						t.Errorf("unexpected: %v", err)
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: client, Input: sender, Call: call, Output: err == nil, Return: end})
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if !porcupine.CheckOperations(model, history) {
			t.Error("no order explains the answers")
		}
	})
}

// Concurrent repeats of one post are answered with one envelope.
func TestLawIdempotency(t *testing.T) {
	t.Parallel()
	runs(t, "the same key gives the same answer, also after a restart", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		post := func(data string) (string, error) {
			return r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Key: "k", Data: []byte(data)}, nil)
		}
		ids := make([]string, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() { ids[i], _ = post(`{"text":"once"}`) })
		}
		wg.Wait()
		r.restart()
		again, err := post(`{"text":"once"}`)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(ids); ids[0] != ids[7] || ids[0] != again || again == "" {
			t.Errorf("answers %v, then %s", ids, again)
		}
		if n := len(r.log(ch)); n != 4 {
			t.Errorf("log has %d entries", n)
		}
		if _, err := post(`{"text":"other"}`); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("other content: %v", err)
		}
		r.end(ch, "")
		if id, err := post(`{"text":"once"}`); err != nil || id != again {
			t.Errorf("known keys are answered before anything else: %s %v", id, err)
		}
	})
	runs(t, "a refused post leaves no key", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		early := &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Key: "k", Data: []byte(`{"text":"1"}`)}
		if _, err := r.Post(ctx, early, nil); fault.CodeOf(err) != fault.Protocol {
			t.Fatal(err)
		}
		r.say(a, ch, "your turn")
		late := &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Key: "k", Data: []byte(`{"text":"2"}`)}
		if _, err := r.Post(ctx, late, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	runs(t, "over the rate the wait is named", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Limits.Rate = identity.Rate{PerMinute: 60, Burst: 2} }))
		ch := r.open("conversation", a, r.agent("bob"))
		r.say(a, ch, "1")
		r.say(a, ch, "2")
		_, err := r.trySay(a, ch, "3")
		if fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), "wait 1s") {
			t.Errorf("got %v", err)
		}
		live := func() error {
			e := &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeDelta, Data: []byte(`{}`)}
			return r.SendLive(ctx, e, &hub.Caller{Agents: []string{a.id}})
		}
		if err := live(); fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), "wait 1s") {
			t.Errorf("shown live: %v", err)
		}
		r.pass(time.Second)
		r.say(a, ch, "3")
		r.pass(time.Second)
		if err := live(); err != nil {
			t.Errorf("shown live within the rate: %v", err)
		}
		if _, err := r.trySay(a, ch, "4"); fault.CodeOf(err) != fault.RateLimited {
			t.Errorf("what is shown live does not count: %v", err)
		}
	})
}
