package hub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestExpectationHandlers(t *testing.T) {
	t.Parallel()
	silence := func(onViolation string) func(*hub.Opening) {
		return expecting("[" + expectation("max_silence", onViolation, `{"seconds":60}`) + "]")
	}
	pendingClose := hub.Options{InviteAckTimeout: time.Minute}
	opening := func(t *spec.T, r *rig) (*channel.Metadata, error) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		_, err := r.tryOpen("consulting", nil, a, b) // acks_within 30, auto_close
		list, _, listErr := r.Channels(context.Background(), hub.ListOptions{})
		t.NoError(listErr)
		if len(list) != 1 {
			t.Fatalf("%d channels", len(list))
		}
		return list[0], err
	}
	holds(t, "ag2-channels#115: auto_close on a pending channel fails the opening", pendingClose, func(t *spec.T, r *rig) {
		m, err := opening(t, r)
		t.ErrorContains(err, "closed during handshake", "expectation_violated:acks_within")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "expectation_violated:acks_within")
	})
	holds(t, "ag2-channels#115: and is audited", pendingClose, func(t *spec.T, r *rig) {
		m, _ := opening(t, r)
		t.Equal(r.audit("expectation_violated", "channel_closed"), []map[string]any{
			{
				"kind": "expectation_violated", "channel_id": m.ID, "expectation": "acks_within", "on_violation": "auto_close",
				"params": map[string]any{"seconds": 30.0}, "violators": []any{m.Participants[1].Agent},
				"detail": map[string]any{"elapsed_seconds": 30.0, "threshold_seconds": 30.0},
			},
			{"kind": "channel_closed", "channel_id": m.ID, "reason": "expectation_violated:acks_within"},
		})
	})
	holds(t, "seed-000#38: an expectation that closes the channel posts closed", pendingClose, func(t *spec.T, r *rig) {
		m, _ := opening(t, r)
		t.Equal(r.types(m.ID), []string{envelope.TypeInvite, envelope.TypeClosed})
	})
	holds(t, "seed-000#39: the reason is the stored one", pendingClose, func(t *spec.T, r *rig) {
		m, _ := opening(t, r)
		log := r.log(m.ID)
		t.Equal(string(log[len(log)-1].Data), `{"reason":"expectation_violated:acks_within","channel_id":"`+m.ID+`"}`)
		t.Equal(m.CloseReason, "expectation_violated:acks_within")
	})
	holds(t, "ag2-channels#116 seed-000#44: audit records, and posts no envelope", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", silence("audit"), a, b)
		before := r.types(ch)
		r.pass(2 * time.Minute)
		t.Equal(r.types(ch), before)
		t.Equal(r.channel(ch).State, channel.Active)
		t.Equal(r.fired(), []string{"max_silence []"})
	})
	for _, name := range []string{"notify", "notify_channel", "warn"} {
		statement := "ag2-channels#117: " + name + " posts exactly one violation envelope"
		if name == "notify" {
			statement = "seed-000#42 seed-000#43: notify posts exactly one violation envelope"
		}
		holds(t, statement, hub.Options{}, func(t *spec.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.openWith("conversation", silence(name), a, b)
			before := r.types(ch)
			a.clear()
			b.clear()
			r.pass(2 * time.Minute)
			t.Equal(r.types(ch), append(before, "ag2.channel.expectation_violated"))
			last := r.log(ch)[len(before)]
			t.Equal(string(last.Data), `{"expectation":"max_silence","violators":[],"detail":{"elapsed_seconds":60,"threshold_seconds":60}}`)
			t.Equal(last.Audience, []string{a.id, b.id})
			t.Equal(r.channel(ch).State, channel.Active)
			t.Equal(a.received(), []string{"ag2.channel.expectation_violated"})
			t.Equal(b.received(), []string{"ag2.channel.expectation_violated"})
			t.True(hub.HubMade(last), "the hub made it")
		})
	}
	holds(t, "seed-000#45: auto_close posts no violation but closes", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", silence("auto_close"), a, b)
		before := r.types(ch)
		r.pass(2 * time.Minute)
		t.Equal(r.types(ch), append(before, envelope.TypeClosed))
		t.Equal(r.channel(ch).CloseReason, "expectation_violated:max_silence")
	})
	runs(t, "remove bars the violator for good, and says so", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.openWith("discussion", expecting("["+expectation("turn_within", "remove", `{"seconds":60}`)+"]"), a, b, c)
		r.say(a, ch, "go")
		for _, x := range r.agents {
			x.clear()
		}
		r.ear.clear()
		r.pass(2 * time.Minute)
		log := r.log(ch)
		last := log[len(log)-1]
		want := `{"agent_id":"` + b.id + `","reason":"expectation_violated:turn_within"}`
		if last.Type != "ag2.participant.removed" || string(last.Data) != want || last.Audience != nil || last.Sender != a.id {
			t.Fatalf("got %+v", last)
		}
		for _, x := range r.agents {
			if got := x.received(); !slices.Equal(got, []string{"ag2.participant.removed"}) {
				t.Errorf("%s was told %q", x.name, got)
			}
		}
		if got, want := r.ear.heard(), []string{"expectation turn_within", "channel participant_removed"}; !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		for range 2 {
			_, err := r.trySay(b, ch, "here I am")
			if fault.CodeOf(err) != fault.AccessDenied {
				t.Fatalf("got %v", err)
			}
			r.post(b, ch, envelope.TypeTaskProgress, `{}`) // a type of the hub's protocol
			r.restart()
		}
		if got := len(r.channel(ch).Participants); got != 3 {
			t.Errorf("%d participants", got)
		}
	})
}

func TestHide(t *testing.T) {
	t.Parallel()
	hidden := func(r *rig) (ch string, a, b, c *agent) {
		a, b, c = r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch = r.open("discussion", a, b, c) // turn_within 120 warns, 600 hides
		r.say(a, ch, "go")
		r.pass(10 * time.Minute)
		for _, x := range r.agents {
			if err := r.Ack(context.Background(), x.id, ch, r.log(ch)[len(r.log(ch))-1].ID); err != nil {
				r.t.Fatal(err)
			}
			x.clear()
		}
		return ch, a, b, c
	}
	runs(t, "live deliveries to the violator are dropped, and it keeps its turn", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b, c := hidden(r)
		if got := r.ear.channels[len(r.ear.channels)-1]; got.Kind != "participant_hidden" || got.Agent != b.id || got.Reason != "turn_within" {
			t.Fatalf("heard %+v", got)
		}
		r.post(c, ch, "my.own", `{"n":1}`)
		if got := b.received(); len(got) != 0 {
			t.Fatalf("told %q", got)
		}
		if can, err := r.CanSend(context.Background(), ch, b.id, ""); !can || err != nil {
			t.Fatalf("%v %v", can, err)
		}
	})
	runs(t, "it comes back with its next send, from its cursor, in order", hub.Options{}, func(t *testing.T, r *rig) {
		ch, a, b, c := hidden(r)
		for n := range 3 {
			r.post(c, ch, "my.own", fmt.Sprintf(`{"n":%d}`, n))
		}
		r.say(b, ch, "sorry")
		r.post(a, ch, "my.own", `{"n":3}`)
		r.post(a, ch, "my.own", `{"n":4}`)
		var got []string
		for _, e := range b.inbox() {
			got = append(got, string(e.Data))
		}
		want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}
		if !slices.Equal(got, want) {
			t.Fatalf("told %q, want %q", got, want)
		}
	})
	runs(t, "what others say while it comes back reaches it once, in order", hub.Options{}, func(t *testing.T, r *rig) {
		ch, a, b, c := hidden(r)
		var all sync.WaitGroup
		for _, other := range []*agent{a, c} {
			all.Go(func() {
				for n := range 40 {
					if _, err := r.Post(context.Background(), &envelope.Envelope{
						Channel: ch, Sender: other.id, Type: "my.own", Data: fmt.Appendf(nil, `{"n":%d}`, n),
					}, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			if _, err := r.trySay(b, ch, "sorry"); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		var want, got []uint64
		for _, e := range r.log(ch) {
			if e.Type == "my.own" {
				want = append(want, e.Seq)
			}
		}
		for _, e := range b.inbox() {
			got = append(got, e.Seq)
		}
		if len(want) != 80 || !slices.Equal(got, want) {
			t.Fatalf("told %v, want %v", got, want)
		}
	})
	runs(t, "what was on its way when it spoke comes in its place", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b, c := hidden(r)
		r.post(c, ch, "my.own", `{"n":0}`)
		r.post(c, ch, "my.own", `{"n":1}`)
		release := r.hold()
		ctx := context.Background()
		before := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: c.id, Type: "my.own", Data: []byte(`{"n":2}`)}, nil)
		spoke := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Data: []byte(`{"text":"sorry"}`)}, nil)
		after := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: c.id, Type: "my.own", Data: []byte(`{"n":3}`)}, nil)
		release()
		for _, p := range []*hub.Pending{before, spoke, after} {
			if _, err := p.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, e := range b.inbox() {
			got = append(got, string(e.Data))
		}
		if want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`}; !slices.Equal(got, want) {
			t.Fatalf("told %q, want %q", got, want)
		}
	})
	runs(t, "nor is anything repeated that arrives in the midst of a long replay", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b, c := hidden(r)
		const missed = 300 // more than one page of the log
		for range missed {
			r.post(c, ch, "my.own", `{}`)
		}
		late := 0
		b.replaying(func() {
			if late++; late == 1 {
				r.post(c, ch, "late", `{}`) // held back, and read by the next page
			}
		})
		r.say(b, ch, "sorry")
		got := b.received()
		if len(got) != missed+1 || got[missed] != "late" {
			t.Fatalf("told %d, the last %q", len(got), got[len(got)-1])
		}
	})
	runs(t, "one that reads nowhere is replayed to when it binds", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b, c := hidden(r)
		r.Unbind(b, b.id)
		r.post(c, ch, "my.own", `{}`)
		r.say(b, ch, "sorry")
		r.post(c, ch, "my.own", `{}`)
		if err := r.BindReplaying(context.Background(), b.id, b, ""); err != nil {
			t.Fatal(err)
		}
		r.post(c, ch, "my.own", `{}`)
		if got := b.received(); !slices.Equal(got, []string{"my.own", "my.own", "my.own"}) {
			t.Fatalf("told %q", got)
		}
	})
	runs(t, "it stays hidden across a restart, and fires no more", hub.Options{}, func(t *testing.T, r *rig) {
		ch, _, b, c := hidden(r)
		fired := r.fired()
		r.restart()
		r.post(c, ch, "my.own", `{}`)
		r.pass(30 * time.Minute)
		if got := b.received(); len(got) != 0 {
			t.Fatalf("told %q", got)
		}
		if got := r.fired(); !slices.Equal(got, fired) {
			t.Fatalf("fired %q, then %q", fired, got)
		}
		r.say(b, ch, "sorry")
		if got := b.received(); !slices.Equal(got, []string{"my.own"}) {
			t.Fatalf("told %q", got)
		}
		r.restart()
		b.clear()
		r.post(c, ch, "my.own", `{}`)
		if got := b.received(); !slices.Equal(got, []string{"my.own"}) {
			t.Fatalf("after unhiding and a restart told %q", got)
		}
	})
}
