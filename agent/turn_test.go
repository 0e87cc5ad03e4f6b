package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

func TestConversations(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#19: two scripted agents alternate until one returns an empty body", func(t *spec.T, w *world) {
		w.run("b", says("b1", "b2"), agent.Options{})
		_, a := w.run("a", says("a2", "a3", ""), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "a1")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: a1", "id-b: b1", "id-a: a2", "id-b: b2", "id-a: a3"})
	})
	check(t, "ag2-channels#28: three agents drive themselves until one has nothing to say", func(t *spec.T, w *world) {
		w.run("b", says("b1", ""), agent.Options{})
		w.run("c", says("c1"), agent.Options{})
		_, a := w.run("a", says("a2"), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b", "c")})
		w.say(t, a, m.ID, "a1")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: a1", "id-b: b1", "id-c: c1", "id-a: a2"})
		t.Equal(w.State(m.ID).(*discussion.State).Next, "id-b")
	})
	check(t, "ag2-channels#29: only the expected participant's handler calls its model", func(t *spec.T, w *world) {
		first, b, c := says("never"), says("b1"), says()
		w.run("b", b, agent.Options{})
		_, carol := w.run("c", c, agent.Options{})
		_, a := w.run("a", first, agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b", "c")})
		w.say(t, a, m.ID, "hello")
		t.Equal(len(first.asked()), 0)
		t.Equal(b.inputs(), []string{"[a]: hello"})
		t.Equal(c.inputs(), []string{"[b]: b1"}) // not asked about a's text, though it arrived
		t.True(carol.Idle(), "all that arrived was answered")
	})
	check(t, "seed-002#83: the default handler takes a turn only when can_send answers true", func(t *spec.T, w *world) {
		b, c := says("b1"), says("never")
		w.run("b", b, agent.Options{})
		w.run("c", c, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "workflow", Participants: ids("b", "c"), Knobs: graphOf("id-a", toAgent("id-b"))})
		w.say(t, a, m.ID, "go")
		t.Equal(len(c.asked()), 0)
		t.Equal(b.inputs(), []string{"[a]: go"})
		ok, err := a.CanSend(w.ctx, m.ID, envelope.TypeText)
		t.NoError(err)
		t.False(ok, "a may send")
	})
	check(t, "seed-000#71: the default reply names the text it answers", func(t *spec.T, w *world) {
		w.run("b", says("hi"), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		asked := w.say(t, a, m.ID, "ping")
		texts := w.log(t, a, m.ID, envelope.TypeText)
		t.Equal(len(texts), 2)
		t.Equal(texts[1].Causation, asked)
		t.Equal(texts[1].Sender, "id-b")
		t.Equal(string(texts[1].Data), `{"text":"hi"}`)
		t.Equal(texts[1].Depth, 0)
		t.True(texts[1].Audience == nil, "it goes to everyone")
	})
	check(t, "ag2-channels#14: an agent's reply reaches a human initiator", func(t *spec.T, w *world) {
		w.run("b", says("42"), agent.Options{})
		h := agent.NewHuman(w.Join("h"), agent.HumanOptions{})
		defer h.Disconnect()
		m, err := h.Open(w.ctx, agent.Opening{Type: "consulting", Participants: ids("b")})
		t.NoError(err)
		_, err = h.Send(w.ctx, m.ID, "what is it?", turn.Address{})
		t.NoError(err)
		e, err := h.Next(w.ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
		t.NoError(err)
		t.Equal(e.Sender, "id-b")
		t.Equal(string(e.Data), `{"text":"42"}`)
	})
	check(t, "ag2-channels#14: a human respondent's single reply closes the channel", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h := agent.NewHuman(w.Join("h"), agent.HumanOptions{})
		defer h.Disconnect()
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("h")})
		w.say(t, a, m.ID, "coffee?")
		_, err := h.Send(w.ctx, m.ID, "yes", turn.Address{})
		t.NoError(err)
		closed, err := a.Channel(w.ctx, m.ID)
		t.NoError(err)
		t.Equal(closed.State, channel.Closed)
		t.Equal(closed.CloseReason, "consulting_complete")
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: coffee?", "id-h: yes"})
	})
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	check(t, "seed-000#33: the default handler acks every invite and never posts a reject", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		t.Equal(m.State, channel.Active)
		acks := w.log(t, a, m.ID, envelope.TypeInviteAck)
		t.Equal(len(acks), 1)
		invites := w.log(t, a, m.ID, envelope.TypeInvite)
		t.Equal(acks[0].Causation, invites[0].ID)
		t.Equal(acks[0].Sender, "id-b")
		t.True(acks[0].Audience == nil, "it goes to everyone")
		t.Equal(string(acks[0].Data), `{"channel_id":"`+m.ID+`"}`)
		t.Equal(len(w.log(t, a, m.ID, envelope.TypeInviteReject)), 0)
	})
	test(t, "an invite that cannot be acked is nobody's failure", func(t *spec.T, w *world) {
		_, b := w.run("b", says(), agent.Options{})
		b.Fail("Post "+envelope.TypeInviteAck, errors.New("down"))
		_, a := w.run("a", says(), agent.Options{})
		ctx, stop := context.WithTimeout(w.ctx, minute)
		defer stop()
		_, err := a.OpenChannel(ctx, agent.Opening{Type: "conversation", Participants: ids("b")})
		t.ErrorIs(err, context.DeadlineExceeded)
		acks, nacks := b.Receipts()
		t.Equal(len(acks), 1)
		t.Equal(len(nacks), 0)
		t.Equal(len(w.Failures()), 0)
	})
	test(t, "an application may reject", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{Handle: func(ctx context.Context, b *agent.Agent, e *envelope.Envelope) (bool, error) {
			if e.Type != envelope.TypeInvite {
				return false, nil
			}
			_, err := b.Link().Post(ctx, &envelope.Envelope{Channel: e.Channel, Sender: b.Self().ID, Type: envelope.TypeInviteReject, Data: []byte(`{"reason":"busy"}`)})
			return true, err
		}})
		_, a := w.run("a", says(), agent.Options{})
		_, err := a.OpenChannel(w.ctx, agent.Opening{Type: "conversation", Participants: ids("b")})
		t.ErrorContains(err, "rejected")
	})
}

func TestInput(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#108: the text of the trigger", func(t *spec.T, w *world) {
		b := says("ok")
		w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
		w.say(t, a, m.ID, "the question")
		t.Equal(b.inputs(), []string{"the question"})
	})
	check(t, "ag2-channels#108: an empty projection falls back to the adapter", func(t *spec.T, w *world) {
		custom := &viewing{Adapter: shipped("consulting"), view: fixed(nil), input: "from the adapter"}
		t.Equal(inputThrough(t, w, custom), []string{"from the adapter"})
	})
	check(t, "ag2-channels#108: a projection without text falls back to the adapter", func(t *spec.T, w *world) {
		custom := &viewing{Adapter: shipped("consulting"), view: fixed([]view.Event{{Content: "an image"}}), input: "from the adapter"}
		t.Equal(inputThrough(t, w, custom), []string{"from the adapter"})
	})
	check(t, "ag2-channels#108: an assistant's projection gives its text", func(t *spec.T, w *world) {
		custom := &viewing{Adapter: shipped("consulting"), view: fixed([]view.Event{{Kind: view.Assistant, Text: "as myself"}}), input: "unused"}
		t.Equal(inputThrough(t, w, custom), []string{"as myself"})
	})
	test(t, "nothing to say is no turn", func(t *spec.T, w *world) {
		custom := &viewing{Adapter: shipped("consulting"), view: fixed(nil)}
		t.Equal(inputThrough(t, w, custom), []string(nil))
	})
	test(t, "history comes before the trigger, summed up and in roles", func(t *spec.T, w *world) {
		b := says("b1", "b2")
		w.run("b", b, agent.Options{System: "Be brief."})
		a := w.Join("a")
		w.start(a, says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "one")
		w.say(t, a, m.ID, "two")
		last := b.asked()[1]
		t.Equal(last.System, "You are b (agent_id: id-b).\n\nBe brief.")
		t.Equal(last.Messages, []agent.Message{{Role: agent.User, Text: "one"}, {Role: agent.Assistant, Text: "b1"}, {Role: agent.User, Text: "two"}})
	})
	test(t, "an empty text engages only through a label", func(t *spec.T, w *world) {
		b := says("x")
		w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "")
		t.Equal(len(b.asked()), 0)
		m = w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		w.say(t, a, m.ID, "")
		t.Equal(b.inputs(), []string{"[a]: "})
	})
}

// shipped returns one of Parley's adapters.
func shipped(name string) channel.Adapter { return adapterNamed(name) }

// viewing is an adapter with a view and a fallback of its own.
type viewing struct {
	channel.Adapter
	turn.Defaults
	view  view.View
	input string
}

func (v *viewing) View(*channel.Metadata, string) view.View { return v.view }
func (v *viewing) Input(*envelope.Envelope) string          { return v.input }

// fixed is a view that always shows the same.
type fixedView struct{ events []view.Event }

func fixed(events []view.Event) view.View           { return fixedView{events} }
func (fixedView) Name() string                      { return "fixed" }
func (f fixedView) Project(view.Input) []view.Event { return f.events }

func inputThrough(t *spec.T, w *world, custom channel.Adapter) []string {
	b := says("ok")
	w.run("b", b, agent.Options{Adapters: []channel.Adapter{custom}})
	_, a := w.run("a", says(), agent.Options{})
	m := w.open(t, a, agent.Opening{Type: "consulting", Participants: ids("b")})
	w.say(t, a, m.ID, "the question")
	return b.inputs()
}
