package hub_test

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// place is a connection of an agent, one of several.
type place struct{ *agent }

func (p *place) ID() string { return fmt.Sprintf("%s-%p", p.agent.ID(), p) }

func (p *place) answers(ch, cause, said string) error {
	e := &envelope.Envelope{Channel: ch, Sender: p.id, Type: envelope.TypeText, Data: []byte(text(said)), Causation: cause}
	_, err := p.r.Post(ctx, e, &hub.Caller{Agents: []string{p.id}, Connection: p.ID()})
	return err
}

func (r *rig) placeOf(a *agent) *place { return &place{&agent{r: r, id: a.id, name: a.name}} }

func TestHandedOutAgain(t *testing.T) {
	t.Parallel()
	runs(t, "a turn that was asked for is answered once, though it comes round again", hub.Options{}, func(t *testing.T, r *rig) {
		c := &spec.T{T: t}
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		first := r.say(a, ch, "1")
		for range 2 { // it may ask several times before either answer
			_, err := r.Turns(ctx, b.id)
			c.NoError(err)
		}
		r.post(b, ch, envelope.TypeText, text("to 1"), causing(first))
		second := r.say(a, ch, "2")

		late := &envelope.Envelope{Channel: ch, Sender: b.id, Type: envelope.TypeText, Data: []byte(text("to 1, late")), Causation: first}
		_, err := r.Post(ctx, late, nil)
		c.ErrorContains(err, "has answered '"+first+"' already", "'"+second+"'")
		c.Equal(fault.CodeOf(err), fault.Protocol)
		// Envelopes that are not answers, or that cite another envelope, are not
		// refused.
		r.post(b, ch, "app.note", `{}`, causing(first))
		r.post(b, ch, envelope.TypeText, text("to 2"), causing(second))
		r.say(a, ch, "3")
		r.post(b, ch, envelope.TypeText, text("on the whole"), causing(second))
		r.say(a, ch, "4")
		r.post(b, ch, envelope.TypeText, text("without a cause"))
	})
	runs(t, "where nobody takes turns, answers may be many", hub.Options{}, func(t *testing.T, r *rig) {
		c := &spec.T{T: t}
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		asked := r.say(a, ch, "?")
		_, err := r.Turns(ctx, b.id)
		c.NoError(err)
		r.post(b, ch, envelope.TypeText, text("thinking"), causing(asked))
		r.post(b, ch, envelope.TypeText, text("done"), causing(asked))
	})
	runs(t, "what is replayed to another connection is answered there", hub.Options{}, func(t *testing.T, r *rig) {
		c := &spec.T{T: t}
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		old, young := r.placeOf(b), r.placeOf(b)
		c.NoError(r.BindReplaying(ctx, b.id, old, ""))
		before := r.say(a, ch, "before")
		r.settle()
		r.ack(b, ch, before)
		asked := r.say(a, ch, "?")
		more := r.say(a, ch, "??")
		r.settle()
		c.NoError(r.BindReplaying(ctx, b.id, young, ""))
		c.Equal(len(young.inbox()), 2)

		for _, cause := range []string{asked, more} {
			err := old.answers(ch, cause, "old")
			c.ErrorContains(err, "attached at another connection", "'"+cause+"'")
			c.Equal(fault.CodeOf(err), fault.AccessDenied)
			c.NoError(young.answers(ch, cause, "young"))
		}
		// The old connection may post other answers.
		c.NoError(old.answers(ch, before, "to what it had before"))
		c.NoError(old.answers(ch, "", "by itself"))
		// After the other has left, nobody else works on the turn.
		third := r.say(a, ch, "???")
		r.settle()
		r.Unbind(young, b.id)
		c.NoError(old.answers(ch, third, "old"))
	})
	runs(t, "an attach without replay hands nothing on", hub.Options{}, func(t *testing.T, r *rig) {
		c := &spec.T{T: t}
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		old, young := r.placeOf(b), r.placeOf(b)
		c.NoError(r.Bind(b.id, old))
		asked := r.say(a, ch, "?")
		c.NoError(r.Bind(b.id, young))
		c.NoError(old.answers(ch, asked, "old"))
	})
}
