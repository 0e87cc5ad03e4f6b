package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

func isText(e *envelope.Envelope) bool { return e.Type == envelope.TypeText }

// person joins a human, who leaves when the test ends.
func person(w *world, name string, opts agent.HumanOptions) (*agent.Human, *agenttestLink) {
	link := w.Join(name)
	opts.Log = slog.New(slog.DiscardHandler)
	h := agent.NewHuman(link, opts)
	w.t.Cleanup(h.Disconnect)
	return h, link
}

func TestHuman(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#132: a failing callback does not starve queues or siblings", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, link := person(w, "h", agent.HumanOptions{})
		var order []string
		note := func(name string, err error, panics bool) {
			h.OnEnvelope(func(e *envelope.Envelope) error {
				if isText(e) {
					order = append(order, name)
				}
				if panics {
					panic("oh")
				}
				return err
			})
		}
		note("first", errors.New("failed"), false)
		note("second", nil, true)
		note("third", nil, false)
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		waited := make(chan string, 1)
		go func() {
			e, err := h.WaitForChannelEvent(w.ctx, m.ID, isText)
			w.must(err)
			waited <- string(e.Data)
		}()
		w.settle()
		w.say(t, a, m.ID, "hello")
		e, err := h.Next(w.ctx, isText)
		t.NoError(err)
		t.Equal(string(e.Data), `{"text":"hello"}`)
		t.Equal(<-waited, `{"text":"hello"}`)
		t.Equal(order, []string{"first", "second", "third"})
		t.True(link.Idle(), "everything was acked")
	})
	check(t, "ag2-channels#132: disconnect wakes all waiters", func(t *spec.T, w *world) {
		h, _ := person(w, "h", agent.HumanOptions{})
		results := make(chan error, 2)
		streamed := make(chan int, 1)
		go func() { _, err := h.Next(w.ctx, nil); results <- err }()
		go func() { _, err := h.WaitForChannelEvent(w.ctx, "c", nil); results <- err }()
		go func() {
			n := 0
			for range h.Envelopes(w.ctx) {
				n++
			}
			streamed <- n
		}()
		w.settle()
		h.Disconnect()
		h.Disconnect() // again
		t.ErrorIs(<-results, agent.ErrDisconnected)
		t.ErrorIs(<-results, agent.ErrDisconnected)
		t.Equal(<-streamed, 0)
		_, err := h.Send(w.ctx, "c", "x", turn.Address{})
		t.ErrorIs(err, agent.ErrDisconnected)
		_, err = h.Open(w.ctx, agent.Opening{Type: "conversation"})
		t.ErrorIs(err, agent.ErrDisconnected)
		_, err = h.CloseChannel(w.ctx, "c", "")
		t.ErrorIs(err, agent.ErrDisconnected)
	})
	check(t, "ag2-channels#132: disconnect wakes all waiters, also from a callback that does not return", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, _ := person(w, "h", agent.HumanOptions{})
		release := make(chan struct{})
		defer close(release)
		h.OnEnvelope(func(e *envelope.Envelope) error {
			if isText(e) {
				h.Disconnect()
				<-release
			}
			return nil
		})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		results := make(chan error, 2)
		never := func(*envelope.Envelope) bool { return false }
		go func() { _, err := h.Next(w.ctx, never); results <- err }()
		go func() { _, err := h.WaitForChannelEvent(w.ctx, m.ID, never); results <- err }()
		w.settle()
		w.say(t, a, m.ID, "go away")
		t.ErrorIs(<-results, agent.ErrDisconnected)
		t.ErrorIs(<-results, agent.ErrDisconnected)
	})
	check(t, "seed-000#60: send posts one text with the given audience", func(t *spec.T, w *world) {
		w.run("a", says(), agent.Options{})
		h, link := person(w, "h", agent.HumanOptions{})
		m := w.open(t, link, agent.Opening{Type: "conversation", Participants: ids("a")})
		one, err := h.Send(w.ctx, m.ID, "to all", turn.Address{})
		t.NoError(err)
		two, err := h.Send(w.ctx, m.ID, "to a", turn.Address{Audience: ids("a")})
		t.NoError(err)
		texts := w.log(t, link, m.ID, envelope.TypeText)
		t.Equal(len(texts), 2)
		t.Equal([]string{texts[0].ID, texts[1].ID}, []string{one, two})
		t.Equal([]string{texts[0].Sender, texts[1].Sender}, ids("h", "h"))
		t.Equal([]string{string(texts[0].Data), string(texts[1].Data)}, []string{`{"text":"to all"}`, `{"text":"to a"}`})
		t.True(texts[0].Audience == nil, "null when left out")
		t.Equal(texts[1].Audience, ids("a"))
	})
	test(t, "invites are acked before anyone sees them", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, link := person(w, "h", agent.HumanOptions{})
		var acked []int
		h.OnEnvelope(func(e *envelope.Envelope) error {
			if e.Type == envelope.TypeInvite {
				log, err := link.Log(w.ctx, e.Channel)
				w.must(err)
				acked = append(acked, len(log))
			}
			return nil
		})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		t.Equal(m.State, channel.Active)
		t.Equal(acked, []int{3}) // invite, ack, opened
	})
	test(t, "or left to the application", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, _ := person(w, "h", agent.HumanOptions{NoAutoAck: true})
		opened := make(chan error, 1)
		go func() {
			_, err := a.OpenChannel(w.ctx, agent.Opening{Type: "conversation", Participants: ids("h")})
			opened <- err
		}()
		invite, err := h.Next(w.ctx, nil)
		t.NoError(err)
		t.Equal(invite.Type, envelope.TypeInvite)
		_, err = h.Post(w.ctx, &envelope.Envelope{Channel: invite.Channel, Type: envelope.TypeInviteAck, Causation: invite.ID, Data: []byte(`{}`)})
		t.NoError(err)
		t.NoError(<-opened)
	})
	test(t, "pulling drops what does not match", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, _ := person(w, "h", agent.HumanOptions{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		w.say(t, a, m.ID, "one")
		w.say(t, a, m.ID, "two")
		e, err := h.Next(w.ctx, func(e *envelope.Envelope) bool { return string(e.Data) == `{"text":"two"}` })
		t.NoError(err)
		t.Equal(string(e.Data), `{"text":"two"}`)
		ctx, stop := context.WithTimeout(w.ctx, time.Second)
		defer stop()
		_, err = h.Next(ctx, nil)
		t.ErrorIs(err, context.DeadlineExceeded)
	})
	test(t, "closing says why", func(t *spec.T, w *world) {
		w.run("a", says(), agent.Options{})
		h, _ := person(w, "h", agent.HumanOptions{})
		for _, reason := range []string{"", "bored"} {
			m, err := h.Open(w.ctx, agent.Opening{Type: "conversation", Participants: ids("a")})
			t.NoError(err)
			closed, err := h.CloseChannel(w.ctx, m.ID, reason)
			t.NoError(err)
			t.Equal(closed.CloseReason, map[string]string{"": "human_closed", "bored": "bored"}[reason])
			w.settle() // it is seen though it came before anyone waited
			e, err := h.WaitForChannelEvent(w.ctx, m.ID, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeClosed })
			t.NoError(err)
			t.Equal(e.Channel, m.ID)
			h.Forget(m.ID)
		}
	})
	test(t, "who does not read keeps the newest", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, _ := person(w, "h", agent.HumanOptions{Pull: 2})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		for _, text := range []string{"one", "two", "three"} {
			w.say(t, a, m.ID, text)
		}
		var got []string
		for e := range h.Envelopes(w.ctx) {
			if got = append(got, string(e.Data)); len(got) == 2 {
				break
			}
		}
		t.Equal(got, []string{`{"text":"two"}`, `{"text":"three"}`})
	})
	test(t, "what arrived is read though the link has ended", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		h, link := person(w, "h", agent.HumanOptions{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("h")})
		w.say(t, a, m.ID, "last words")
		link.Cut()
		w.settle()
		e, err := h.Next(w.ctx, isText)
		t.NoError(err)
		t.Equal(string(e.Data), `{"text":"last words"}`)
		_, err = h.Next(w.ctx, isText)
		t.ErrorIs(err, agent.ErrDisconnected)
		t.ErrorContains(err, "EOF")
	})
}
