package hub_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// saying returns a text that came in through another dialect.
func saying(a *agent, channelID, id, text string) hub.Saying {
	return hub.Saying{
		Channel: channelID, Sender: a.id, Message: message.Envelope{Type: message.TypeText, Content: text},
		Origin: envelope.Origin{Dialect: "hpd", ID: id},
	}
}

func TestSay(t *testing.T) {
	t.Parallel()
	runs(t, "what is said is stored in the adapter's form, with its origin, and delivered", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		b.clear()
		s := saying(a, ch, "m-1", "hello")
		s.Causation, s.Trace, s.Priority, s.Audience, s.Depth = "c-1", "00-t", envelope.Urgent, []string{b.id}, 2
		id, err := r.Say(ctx, s, nil).Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		log := r.log(ch)
		e := log[len(log)-1]
		if e.ID != id || e.Type != envelope.TypeText || string(e.Data) != `{"text":"hello"}` || e.Sender != a.id {
			t.Errorf("stored %+v", e)
		}
		if e.Origin != (envelope.Origin{Dialect: "hpd", ID: "m-1", Hops: 1}) || !hub.CameFrom(e, "hpd") || hub.CameFrom(e, "agh") {
			t.Errorf("its origin is %+v", e.Origin)
		}
		if e.Causation != "c-1" || e.Trace == "" || e.Priority != envelope.Urgent || len(e.Audience) != 1 || e.Depth != 2 {
			t.Errorf("what its sender chose is lost: %+v", e)
		}
		if got := b.inbox(); len(got) != 1 || got[0].ID != id {
			t.Errorf("bob was told %v", types(got))
		}
	})
	runs(t, "turns are the adapter's", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		before := len(r.log(ch))
		_, err := r.Say(ctx, saying(b, ch, "m-1", "too early"), nil).Wait(ctx)
		if fault.ReasonOf(err) != fault.OutOfTurn || len(r.log(ch)) != before {
			t.Errorf("out of turn: %v", err)
		}
		if _, err := r.Say(ctx, saying(a, ch, "m-2", "first"), nil).Wait(ctx); err != nil {
			t.Error(err)
		}
		// A refused text does not use up the origin.
		if _, err := r.Say(ctx, saying(b, ch, "m-1", "now"), nil).Wait(ctx); err != nil {
			t.Error(err)
		}
	})
	runs(t, "strangers, empty texts and calls of tools are refused", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("conversation", a, b)
		for want, s := range map[fault.Code]hub.Saying{
			fault.AccessDenied: saying(c, ch, "m-1", "hello"),
			fault.Invalid:      saying(a, ch, "m-1", ""),
			fault.NotFound:     saying(a, strings.Repeat("0", 32), "m-1", "hello"),
		} {
			if _, err := r.Say(ctx, s, nil).Wait(ctx); fault.CodeOf(err) != want {
				t.Errorf("%v: %v", want, err)
			}
		}
		call := saying(a, ch, "m-1", "x")
		call.Message.Type = message.TypeToolCall
		if _, err := r.Say(ctx, call, nil).Wait(ctx); fault.CodeOf(err) != fault.Invalid {
			t.Error(err)
		}
		unnamed := saying(a, ch, "m-1", "x")
		unnamed.Origin.Dialect = "hub"
		if _, err := r.Say(ctx, unnamed, nil).Wait(ctx); fault.CodeOf(err) != fault.Invalid {
			t.Error(err)
		}
		if _, err := r.Say(ctx, saying(a, ch, "m-1", "x"), &hub.Caller{Agents: []string{b.id}}).Wait(ctx); fault.CodeOf(err) != fault.AccessDenied {
			t.Error("one speaks for another: ", err)
		}
	})
	runs(t, "an origin that the channel has seen is a repeat, whoever says it, also after a restart", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		id, err := r.Say(ctx, saying(a, ch, "m-1", "hello"), nil).Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		length := len(r.log(ch))
		r.restart()
		for _, again := range []hub.Saying{saying(a, ch, "m-1", "hello"), saying(b, ch, "m-1", "hello, by another way")} {
			p := r.Say(ctx, again, nil)
			if got, err := p.Wait(ctx); err != nil || got != id || !p.Repeated() {
				t.Errorf("answered %v %v, repeated %v", got, err, p.Repeated())
			}
		}
		other := saying(a, ch, "m-1", "another dialect's m-1")
		other.Origin.Dialect = "agh"
		if got, err := r.Say(ctx, other, nil).Wait(ctx); err != nil || got == id {
			t.Errorf("answered %v %v", got, err)
		}
		if got := len(r.log(ch)); got != length+1 {
			t.Errorf("%d envelopes, not %d", got, length+1)
		}
	})
	runs(t, "a key is answered as the first time", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		s := saying(a, ch, "", "hello")
		s.Key = "k"
		id, err := r.Say(ctx, s, nil).Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Say(ctx, s, nil).Wait(ctx); err != nil || got != id {
			t.Errorf("answered %v %v", got, err)
		}
	})
	runs(t, "what has crossed too often is refused", hub.Options{MaxHops: 3}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		s := saying(a, ch, "m-1", "round and round")
		s.Origin.Hops = 3
		if _, err := r.Say(ctx, s, nil).Wait(ctx); fault.ReasonOf(err) != fault.TooManyHops || !strings.Contains(err.Error(), "bridge.max_hops") {
			t.Error(err)
		}
		s.Origin.Hops = 2
		if _, err := r.Say(ctx, s, nil).Wait(ctx); err != nil {
			t.Error(err)
		}
	})
}
