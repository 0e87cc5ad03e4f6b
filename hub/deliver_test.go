package hub_test

import (
	"errors"
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
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/view"
)

// back binds an agent again and replays what it missed after since.
func (r *rig) back(a *agent, since string) {
	r.t.Helper()
	a.clear()
	if err := r.BindReplaying(ctx, a.id, a, since); err != nil {
		r.t.Fatal(err)
	}
}

// away unbinds an agent.
func (r *rig) away(a *agent) { r.Unbind(a, a.id) }

func (r *rig) cursor(a *agent, channelID string) string {
	r.t.Helper()
	id, err := r.Cursor(ctx, a.id, channelID)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) ack(a *agent, channelID, envelopeID string) {
	r.t.Helper()
	if err := r.Ack(ctx, a.id, channelID, envelopeID); err != nil {
		r.t.Fatal(err)
	}
}

func causing(id string) func(*envelope.Envelope) {
	return func(e *envelope.Envelope) { e.Causation = id }
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#16 seed-000#53: a broadcast reaches every participant except the sender", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		r.say(a, ch, "all")
		t.Equal(b.texts(), []string{text("all")})
		t.Equal(c.texts(), []string{text("all")})
		t.Equal(a.texts(), []string{})
		own := view.Full().Project(view.Input{Log: r.log(ch), Participant: a.id})
		t.Equal(own, []view.Event{{Kind: view.Assistant, Text: "all"}})
	})
	holds(t, "seed-000#54: audience: [a, b] delivers to a and b only", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c, d := r.agent("alice"), r.agent("bob"), r.agent("carol"), r.agent("dan")
		ch := r.open("discussion", a, b, c, d)
		r.post(a, ch, envelope.TypeText, text("two"), audience(b, c))
		t.Equal([][]string{b.texts(), c.texts(), d.texts()}, [][]string{{text("two")}, {text("two")}, {}})
	})
	holds(t, "ag2-hub#17: binding an unknown endpoint or agent fails", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		err := r.Bind(a.id, nil)
		t.ErrorContains(err, "endpoint not attached")
		t.Equal(fault.CodeOf(err), fault.NotFound)
		err = r.Bind("ghost", a)
		t.ErrorContains(err, "agent not registered")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	holds(t, "ag2-hub#10 seed-000#52: task-type events bypass turn order", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		before, _, _ := r.Expected(ctx, ch)
		for _, eventType := range []string{envelope.TypeTaskStarted, envelope.TypeTaskProgress, envelope.TypeTaskCompleted, "ag2.task.cancel_request"} {
			for _, who := range []*agent{c, b, a, b} {
				r.post(who, ch, eventType, `{"task_id":"t"}`)
			}
		}
		after, _, _ := r.Expected(ctx, ch)
		t.Equal(after, before)
		t.Equal(after, channel.Turn{Agent: a.id})
		r.say(a, ch, "still my turn")
	})
	holds(t, "ag2-hub#10: in a consulting, before the question and before all have acked", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		ch, result := r.opening("consulting", nil, a, b)
		r.post(b, ch, envelope.TypeTaskStarted, `{"task_id":"t"}`)
		r.answer(b, ch, envelope.TypeInviteAck)
		_, err := result()
		t.NoError(err)
		r.post(b, ch, envelope.TypeTaskCompleted, `{"task_id":"t"}`)
		r.say(a, ch, "why?")
		t.Equal(r.types(ch), []string{
			envelope.TypeInvite, envelope.TypeTaskStarted, envelope.TypeInviteAck, envelope.TypeOpened, envelope.TypeTaskCompleted, envelope.TypeText,
		})
	})
	holds(t, "ag2-hub#74 seed-000#19: with a frozen clock ids still increase", hub.Options{Now: frozen}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		ids := make([]string, 20)
		for i := range ids {
			ids[i] = r.say(a, ch, fmt.Sprint(i))
			r.ack(b, ch, ids[i])
		}
		t.True(slices.IsSorted(ids) && len(slices.Compact(slices.Clone(ids))) == 20, "strictly increasing: %v", ids)
		t.Equal(r.cursor(b, ch), ids[19])
		var posts sync.WaitGroup
		for i := range 8 {
			posts.Go(func() {
				for n := range 200 {
					r.say([]*agent{a, b}[i%2], ch, fmt.Sprint(n))
				}
			})
		}
		posts.Wait()
		log := r.log(ch)
		t.Equal(len(log), 3+20+8*200)
		for i, e := range log {
			t.Equal(e.Seq, uint64(i+1))
			t.True(i == 0 || e.ID > log[i-1].ID, "ids grow with the log")
		}
	})
	holds(t, "ag2-hub#75: an older ack after a newer one does not move the cursor back", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		one, two := r.say(a, ch, "1"), r.say(a, ch, "2")
		r.ack(b, ch, two)
		r.ack(b, ch, one)
		t.Equal(r.cursor(b, ch), two)
	})
	holds(t, "ag2-hub#76: nack leaves the cursor", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		one, two := r.say(a, ch, "1"), r.say(a, ch, "2")
		r.ack(b, ch, one)
		r.Nack(b.id, ch, two, "boom")
		t.Equal(r.cursor(b, ch), one)
		r.back(b, "")
		t.Equal(b.texts(), []string{text("2")})
	})
	holds(t, "ag2-hub#81: closed channels are not replayed", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ended, open := r.open("conversation", a, b), r.open("conversation", a, b)
		r.away(b)
		r.say(a, ended, "missed")
		r.end(ended, "")
		r.say(a, open, "waiting")
		r.back(b, "")
		t.Equal(b.texts(), []string{text("waiting")})
		t.False(slices.Contains(b.received(), envelope.TypeClosed), "closed is replayed")
	})
	holds(t, "ag2-hub#82: an ack in one channel does not suppress replay in another", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		older, newer := r.open("conversation", a, b), r.open("conversation", a, b)
		r.away(b)
		r.say(a, older, "old and unacked")
		r.ack(b, newer, r.say(a, newer, "new and acked"))
		r.back(b, "")
		t.Equal(b.texts(), []string{text("old and unacked")})
	})
	holds(t, "ag2-hub#83: they survive a restart", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		one := r.say(a, ch, "1")
		r.say(a, ch, "2")
		r.ack(b, ch, one)
		r.restart()
		t.Equal(r.cursor(b, ch), one)
		r.back(b, "")
		t.Equal(b.texts(), []string{text("2")})
	})
	holds(t, "ag2-hub#83: unregistering removes them", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.ack(b, ch, r.say(a, ch, "1"))
		t.NoError(r.Unregister(ctx, b.id))
		t.Equal(r.cursor(b, ch), "")
		r.restart()
		t.Equal(r.cursor(b, ch), "")
	})
	holds(t, "ag2-hub#84 ag2-channels#128: causation lookup finds the prior envelope", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		asked := r.say(a, ch, "why?")
		answered := r.post(b, ch, envelope.TypeText, text("because"), causing(asked))
		find := func(sender *agent, cause string) string {
			e, err := r.AnswerTo(ctx, ch, sender.id, cause)
			t.NoError(err)
			if e == nil {
				return ""
			}
			return e.ID
		}
		for range 2 {
			t.Equal(find(b, asked), answered)
			t.Equal(find(a, asked), "")
			t.Equal(find(b, "unseen"), "")
			t.Equal(find(a, ""), "")
			r.restart()
		}
		again := r.post(b, ch, envelope.TypeText, text("again"), causing(asked))
		t.Equal(find(b, asked), again)
		r.end(ch, "")
		t.Equal(find(b, asked), "")
		r.restart()
		t.Equal(find(b, asked), "")
	})
	holds(t, "seed-000#70: causation_id names the envelope being answered", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		asked := r.say(a, ch, "why?")
		id := r.post(b, ch, envelope.TypeText, text("because"), causing(asked))
		t.Equal(r.log(ch)[4].Causation, asked)
		inbox := a.inbox()
		t.Equal(inbox[len(inbox)-1].Causation, asked)
		e, err := r.AnswerTo(ctx, ch, b.id, asked)
		t.NoError(err)
		t.Equal(e.ID, id)
		elsewhere, err := r.AnswerTo(ctx, r.open("conversation", a, b), b.id, asked)
		t.NoError(err)
		t.True(elsewhere == nil, "found in another channel")
	})
	holds(t, "ag2-hub#88 ag2-channels#30: a pending turn names its trigger and since when", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		talk := r.open("conversation", a, b)
		r.say(a, talk, "no turns here")
		turns := func(id string) []hub.Turn {
			list, err := r.Turns(ctx, id)
			t.NoError(err)
			return list
		}
		t.Equal(len(turns(a.id))+len(turns(b.id)), 0)
		ch := r.open("discussion", a, b, c)
		r.pass(time.Second)
		t.Equal(turns(a.id), []hub.Turn{{Channel: ch, ExpectedAt: time.Now().UTC()}}) // no envelope triggered it, so the time is the hub's
		said := r.say(a, ch, "yours")
		at := r.last(ch).CreatedAt
		r.pass(time.Second)
		r.post(c, ch, "my.own", `{}`) // not a text, so not a trigger
		for range 2 {
			t.Equal(turns(b.id), []hub.Turn{{Channel: ch, Trigger: said, ExpectedAt: at}})
			for _, other := range []string{a.id, c.id, "ghost"} {
				t.Equal(len(turns(other)), 0)
			}
			r.restart()
		}
		r.end(ch, "")
		t.Equal(len(turns(b.id)), 0)
	})
	holds(t, "ag2-hub#113: they hear registered, created, opened, posted, closed", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hi")
		r.end(ch, "")
		t.Equal(r.ear.heard(), []string{
			"agent registered", "agent registered", "channel created", "posted ag2.channel.invite",
			"channel opened", "posted ag2.msg.text", "channel closed",
		})
	})
	holds(t, "ag2-hub#113: one that throws disturbs nobody", hub.Options{Listeners: []hub.Listener{thrower{}}}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hi")
		t.Equal(b.texts(), []string{text("hi")})
		t.True(slices.Contains(r.ear.heard(), "posted ag2.msg.text"), "the next listener heard")
	})
	holds(t, "ag2-hub#119: inbox pressure fires once at the crossing", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		b := r.agent("bob", rule(func(r *identity.Rule) {
			three := int64(3)
			r.Limits.Inbox = identity.Inbox{MaxPending: 10, Overflow: "reject", HighWater: &three}
		}))
		ch := r.open("conversation", a, b)
		pressure := func() (lines []string) {
			for _, line := range r.ear.heard() {
				if len(line) > 5 && line[:5] == "inbox" {
					lines = append(lines, line)
				}
			}
			return lines
		}
		r.say(a, ch, "1")
		r.say(a, ch, "2")
		t.Equal(len(pressure()), 0)
		r.say(a, ch, "3")
		r.say(a, ch, "4")
		once := fmt.Sprintf("inbox of %s at 3 of 10", b.id)
		t.Equal(pressure(), []string{once})
		r.say(b, ch, "of four")
		r.say(b, ch, "two are answered")
		r.say(a, ch, "and it is crossed again")
		t.Equal(pressure(), []string{once, once})
	})
	proxy := &carrier{}
	holds(t, "ag2-hub#130: to its proxy, once", hub.Options{Remotes: map[string]hub.Remote{"far": proxy}}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		far := r.agent("far", remote("far"))
		ch := r.open("conversation", a, b)
		r.post(a, ch, envelope.TypeText, text("hi"), audience(far, b))
		t.Equal(b.texts(), []string{text("hi")})
		t.Equal(proxy.carried, []string{far.id + " " + text("hi")})
		t.Equal(far.texts(), []string{})
	})
	holds(t, "ag2-hub#130: no proxy", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		far := r.agent("far", remote("far"))
		ch := r.open("conversation", a, b)
		r.post(a, ch, envelope.TypeText, text("hi"), audience(far))
		r.settle()
		t.True(slices.Contains(r.ear.heard(), "dispatch of ag2.msg.text to "+far.id+" failed: no remote proxy is registered for scheme 'far'"),
			"told: %v", r.ear.heard())
	})
	holds(t, "ag2-hub#130: a failing proxy stops nobody", hub.Options{Remotes: map[string]hub.Remote{"far": &carrier{err: errors.New("down")}}}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		far := r.agent("far", remote("far"))
		ch := r.open("conversation", a, b)
		r.post(a, ch, envelope.TypeText, text("hi"), audience(far, b))
		t.Equal(b.texts(), []string{text("hi")})
		t.True(slices.Contains(r.ear.heard(), "dispatch of ag2.msg.text to "+far.id+" failed: down"), "told: %v", r.ear.heard())
	})
	runs(t, "an envelope past its ttl is not delivered or replayed, but stays", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		five := int64(5)
		mortal := func(e *envelope.Envelope) { e.TTL = &five }
		r.away(b)
		r.post(a, ch, envelope.TypeText, text("soon gone"), mortal)
		r.pass(4 * time.Second)
		r.back(b, "")
		if got := b.texts(); len(got) != 1 {
			t.Errorf("before its end: %v", got)
		}
		r.pass(time.Second)
		r.back(b, "")
		if got := b.texts(); len(got) != 0 {
			t.Errorf("after its end: %v", got)
		}
		if !slices.Contains(r.types(ch), envelope.TypeText) {
			t.Error("it is gone from the log")
		}
	})
	runs(t, "a ttl of 0 or less sets no end", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		zero, less := int64(0), int64(-1)
		r.post(a, ch, envelope.TypeText, text("0"), func(e *envelope.Envelope) { e.TTL = &zero })
		r.post(a, ch, envelope.TypeText, text("-1"), func(e *envelope.Envelope) { e.TTL = &less })
		want := []string{text("0"), text("-1")}
		if got := b.texts(); !slices.Equal(got, want) {
			t.Errorf("delivered %v, want %v", got, want)
		}
		r.away(b)
		r.pass(time.Hour)
		r.back(b, "")
		if got := b.texts(); !slices.Equal(got, want) {
			t.Errorf("replayed %v, want %v", got, want)
		}
	})
	runs(t, "priority orders what waits across channels and never within one", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		box := hub.NewInbox(0)
		if err := r.Bind(b.id, box); err != nil {
			t.Fatal(err)
		}
		as := func(p envelope.Priority) func(*envelope.Envelope) {
			return func(e *envelope.Envelope) { e.Priority = p }
		}
		r.post(a, one, envelope.TypeText, text("1 normal"))
		r.post(a, one, envelope.TypeText, text("1 urgent"), as(envelope.Urgent))
		r.post(a, two, envelope.TypeText, text("2 background"), as(envelope.Background))
		r.post(a, two, envelope.TypeText, text("2 urgent"), as(envelope.Urgent))
		var got []string
		for range 4 {
			n, err := box.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(n.Envelope.Data))
		}
		want := []string{text("1 normal"), text("1 urgent"), text("2 background"), text("2 urgent")}
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
	holds(t, "seed-000#58: a waiting higher priority is handed over first", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		rising := []envelope.Priority{envelope.Background, envelope.Normal, envelope.Urgent}
		var channels []string
		for range rising {
			channels = append(channels, r.open("conversation", a, b))
		}
		box := hub.NewInbox(0)
		t.NoError(r.Bind(b.id, box))
		for i, p := range rising {
			r.post(a, channels[i], envelope.TypeText, text(string(p)), func(e *envelope.Envelope) { e.Priority = p })
		}
		var handed []envelope.Priority
		for range rising {
			n, err := box.Next(ctx)
			t.NoError(err)
			handed = append(handed, n.Envelope.Priority)
		}
		t.Equal(handed, []envelope.Priority{envelope.Urgent, envelope.Normal, envelope.Background})
	})
	runs(t, "a reader that falls behind is cut off with a reason and resumes", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		box := hub.NewInbox(2)
		if err := r.Bind(b.id, box); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			r.say(a, ch, fmt.Sprint(i))
		}
		for i := range 2 {
			n, err := box.Next(ctx)
			if err != nil || string(n.Envelope.Data) != text(fmt.Sprint(i)) {
				t.Fatalf("%v %v", n, err)
			}
			r.ack(b, ch, n.Envelope.ID)
		}
		if _, err := box.Next(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("got %v", err)
		}
		r.back(b, "")
		if got := b.texts(); !slices.Equal(got, []string{text("2"), text("3"), text("4")}) {
			t.Errorf("resumed with %v", got)
		}
	})
}
