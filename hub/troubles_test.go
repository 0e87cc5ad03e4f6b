package hub_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

// A failure in one place does not block others.

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

// Another batch that fails drops the fold of a pending channel, but not those who
// wait for it.
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

// erratic panics on request.
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

// inboxOnly panics only for inboxes.
type inboxOnly struct{ erratic }

func (*inboxOnly) AuthorizeSend(hub.Profile, *envelope.Envelope, []hub.Profile) error { return nil }

func rule1() func(*hub.Registration) {
	return func(g *hub.Registration) { g.Rule.Limits.Inbox.MaxPending = 1 }
}

// nosy calls the hub from within a callback.
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
