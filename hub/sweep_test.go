package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

func TestTTL(t *testing.T) {
	t.Parallel()
	lives := func(seconds int64) func(*hub.Opening) {
		return func(o *hub.Opening) {
			ttl := identity.SecondsTTL(seconds)
			o.TTL = &ttl
		}
	}
	holds(t, "ag2-hub#93: the sweep makes it expired, with reason and audit", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", lives(100), a, b)
		r.pass(99 * time.Second)
		t.Equal(r.channel(ch).State, channel.Active)
		r.pass(30 * time.Second)
		m := r.channel(ch)
		t.Equal(m.State, channel.Expired)
		t.Equal(m.CloseReason, "ttl_expired")
		t.Equal(m.ClosedAt, m.CreatedAt.Add(120*time.Second)) // the sweep's tick
		t.Equal(r.audit("channel_expired", "channel_closed"), []map[string]any{
			{"kind": "channel_expired", "channel_id": ch, "reason": "ttl_expired"},
		})
	})
	holds(t, "ag2-hub#93: waiting peers see ag2.channel.expired", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		r.openWith("conversation", lives(100), a, b)
		a.clear()
		b.clear()
		r.pass(3 * time.Minute)
		t.Equal(a.received(), []string{"ag2.channel.expired", "ag2.channel.closed"})
		t.Equal(b.received(), []string{"ag2.channel.expired", "ag2.channel.closed"})
	})
	holds(t, "ag2-hub#93: exactly at the time, and not 1 ms before", byHand, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", lives(100), a, b)
		r.pass(100*time.Second - time.Millisecond)
		t.Equal(r.SweepTTL(context.Background()), 0)
		t.Equal(r.channel(ch).State, channel.Active)
		r.pass(time.Millisecond)
		t.Equal(r.SweepTTL(context.Background()), 1)
		t.Equal(r.channel(ch).State, channel.Expired)
		t.Equal(r.SweepTTL(context.Background()), 0)
		t.Equal(r.entries("ttl"), 0)
	})
	holds(t, "ag2-hub#93: time spent pending counts, and releases the waiting creator", hub.Options{InviteAckTimeout: time.Hour}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		_, err := r.tryOpen("conversation", lives(100), a, b)
		t.ErrorContains(err, "closed during handshake", "ttl_expired")
	})
	holds(t, "seed-000#40 seed-000#41: expired, then one closed with the same reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", lives(100), a, b)
		opened := len(r.log(ch))
		r.pass(3 * time.Minute)
		log := r.log(ch)[opened:]
		t.Equal(types(log), []string{"ag2.channel.expired", "ag2.channel.closed"})
		for _, e := range log {
			t.Equal(string(e.Data), `{"reason":"ttl_expired","channel_id":"`+ch+`"}`)
			t.Equal(e.Sender, a.id)
			t.True(hub.HubMade(e), "the hub made it")
		}
		t.Equal(r.channel(ch).State, channel.Expired)
		t.Equal(r.channel(ch).CloseReason, "ttl_expired")
		history := journal.LogName{Tenant: "main", Partition: "channel/" + ch, Family: "history", ID: "-"}
		page, err := r.engine.Read(context.Background(), history, journal.ReadOptions{From: uint64(opened) + 1})
		t.NoError(err)
		t.Equal(page.Entries[0].Offset, page.Entries[1].Offset) // both in one batch
	})
	runs(t, "an end in time takes the deadline away, also after a restart and at an odd nanosecond", byHand, func(t *testing.T, r *rig) {
		r.pass(1_234_567 * time.Nanosecond)
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", lives(100), a, b)
		r.restart()
		r.end(ch, "")
		if ttl, invite, look := r.entries("ttl"), r.entries("invite"), r.entries("expectation"); ttl+invite+look != 0 {
			t.Fatalf("left %d, %d, %d", ttl, invite, look)
		}
	})
	runs(t, "also one that cannot be folded any more", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("conversation", lives(100), a, b)
		r.say(a, ch, "x")
		r.observe(task.Task{ID: "1", Owner: a.id, Channel: ch})
		r.restart(func(o *hub.Options) { o.Adapters = []channel.Adapter{unfoldable{}} })
		if _, err := r.State(context.Background(), ch); err == nil {
			t.Fatal("it can be folded")
		}
		r.pass(3 * time.Minute)
		if m := r.channel(ch); m.State != channel.Expired || r.task("1").State != task.Expired {
			t.Fatalf("it is %v", m.State)
		}
	})
	runs(t, "of many channels only the due ones are loaded", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for range 50 {
			r.open("conversation", a, b)
		}
		for range 3 {
			r.openWith("conversation", lives(100), a, b)
		}
		r.restart()
		r.pass(100 * time.Second)
		if n := r.SweepTTL(context.Background()); n != 3 {
			t.Fatalf("ended %d", n)
		}
		if n := r.Stats().ChannelsLoaded; n != 3 {
			t.Fatalf("loaded %d", n)
		}
	})
}

// unfoldable is a conversation that this process cannot fold.
type unfoldable struct{ conversation.Adapter }

func (unfoldable) Initial(*channel.Metadata) (channel.State, error) {
	return nil, errors.New("an older graph")
}

// alarm is a conversation whose participants set deadlines: a post of type "set"
// with {"name","in"} sets one, in seconds; 0 removes it.
type alarm struct{ conversation.Adapter }

func (alarm) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) channel.Effects {
	var name string
	var seconds int
	if e.Type != "set" {
		return channel.Effects{}
	}
	if _, err := fmt.Sscanf(string(e.Data), `{"name":%q,"in":%d}`, &name, &seconds); err != nil {
		return channel.Effects{}
	}
	d := channel.Deadline{Name: name}
	if seconds > 0 {
		d.At = e.CreatedAt.Add(time.Duration(seconds) * time.Second)
	}
	return channel.Effects{Deadlines: []channel.Deadline{d}}
}

func (alarm) OnDeadline(m *channel.Metadata, _ channel.State, name string, at time.Time) channel.Effects {
	if name == "end" {
		return channel.Effects{Next: channel.Closed, Reason: "alarm"}
	}
	fx := channel.Effects{
		Append: []channel.Draft{{Envelope: envelope.Envelope{Type: "rang", Data: []byte(`{"name":"` + name + `"}`)}}},
		Index:  []channel.IndexEntry{{Key: name, Value: []byte("rang")}},
	}
	if name == "again" {
		fx.Deadlines = []channel.Deadline{{Name: name, At: at.Add(10 * time.Second)}}
	}
	return fx
}

func TestAdapterDeadlines(t *testing.T) {
	t.Parallel()
	o := hub.Options{Adapters: []channel.Adapter{alarm{}}}
	rang := func(r *rig, ch string) []string {
		list := []string{}
		for _, e := range r.log(ch) {
			if e.Type == "rang" {
				list = append(list, fmt.Sprintf("%s at %s", e.Data, e.CreatedAt.Sub(r.channel(ch).CreatedAt)))
			}
		}
		return list
	}
	set := func(r *rig, a *agent, ch, name string, in int) {
		r.post(a, ch, "set", fmt.Sprintf(`{"name":%q,"in":%d}`, name, in))
	}
	runs(t, "each is told once, at its time, across a restart", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		set(r, a, ch, "x", 10)
		set(r, a, ch, "y", 10)
		set(r, a, ch, "z", 20)
		b.clear()
		r.restart()
		r.pass(time.Minute)
		want := []string{`{"name":"x"} at 10s`, `{"name":"y"} at 10s`, `{"name":"z"} at 20s`}
		got := rang(r, ch)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if got := b.received(); !slices.Equal(got, []string{"rang", "rang", "rang"}) {
			t.Fatalf("told %q", got)
		}
		if n := r.entries("adapter"); n != 0 {
			t.Fatalf("%d entries are left", n)
		}
	})
	runs(t, "one of the same name is moved or removed", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		set(r, a, ch, "x", 10)
		set(r, a, ch, "x", 30)
		set(r, a, ch, "y", 10)
		set(r, a, ch, "y", 0)
		if n := r.entries("adapter"); n != 1 {
			t.Fatalf("%d entries", n)
		}
		r.pass(time.Minute)
		if got, want := rang(r, ch), []string{`{"name":"x"} at 30s`}; !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
	runs(t, "what is set when one comes due comes due too", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		set(r, a, ch, "again", 10)
		r.pass(35 * time.Second)
		want := []string{`{"name":"again"} at 10s`, `{"name":"again"} at 20s`, `{"name":"again"} at 30s`}
		if got := rang(r, ch); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
	runs(t, "one can end the channel, which takes the others away", o, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		set(r, a, ch, "end", 10)
		set(r, a, ch, "x", 20)
		r.pass(15 * time.Second)
		if n := r.entries("adapter"); n != 0 {
			t.Fatalf("%d entries are left", n)
		}
		r.pass(time.Minute)
		if m := r.channel(ch); m.CloseReason != "alarm" || len(rang(r, ch)) != 0 {
			t.Fatalf("%q, rang %q", m.CloseReason, rang(r, ch))
		}
	})
	few := o
	few.Limits.Deadlines = 2
	runs(t, "too many are refused, and moving one is not", few, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		set(r, a, ch, "x", 10)
		set(r, a, ch, "y", 10)
		set(r, a, ch, "y", 20)
		e := &envelope.Envelope{Channel: ch, Sender: a.id, Type: "set", Data: []byte(`{"name":"z","in":10}`)}
		if _, err := r.Post(context.Background(), e, nil); fault.CodeOf(err) != fault.TooLarge {
			t.Fatalf("got %v", err)
		}
	})
}
