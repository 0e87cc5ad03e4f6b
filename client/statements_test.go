package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// The numbered statements that concern a client and its agents, over the wire.

// another is set in the process that plays the other side.
const another = "PARLEY_TEST_HUB"

func TestMain(m *testing.M) {
	if url := os.Getenv(another); url != "" {
		if err := playBob(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// playBob runs an agent in a process of its own, until its input ends.
func playBob(url string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := client.Dial(ctx, url, client.Options{Log: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	bob, err := c.Attach(ctx, client.Registration{Passport: identity.Passport{Name: "bob"}})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- agent.New(bob, echo, agent.Options{Log: quiet}).Run(ctx) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	<-done
	return nil
}

// echo answers with what it was asked, in capitals.
var echo = agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
	return &agent.Response{Text: strings.ToUpper(p.Input())}, nil
})

// run lets an agent work until the test ends.
func (r *rig) run(link agent.Link, model agent.Model, o agent.Options) *agent.Agent {
	r.t.Helper()
	o.Log = quiet
	a := agent.New(link, model, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	return a
}

// invite opens a channel whose invitees are run by agents, which ack.
func (r *rig) invite(channelType string, creator *client.Identity, invitees ...*client.Identity) string {
	r.t.Helper()
	var ids []string
	for _, i := range invitees {
		ids = append(ids, i.ID())
	}
	m, err := creator.OpenChannel(r.t.Context(), agent.Opening{Type: channelType, Participants: ids})
	if err != nil {
		r.t.Fatal(err)
	}
	return m.ID
}

// texts returns what was said in a channel, in order.
func (r *rig) texts(i *client.Identity, ch string) []string {
	r.t.Helper()
	log, err := i.Log(r.t.Context(), ch)
	if err != nil {
		r.t.Fatal(err)
	}
	list := []string{}
	for _, e := range log {
		if e.Type == envelope.TypeText {
			list = append(list, string(e.Data))
		}
	}
	return list
}

func TestClientStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-000#79: an envelope whose data is not a JSON object is refused before anything is sent", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		c := r.dial(client.Options{})
		a, b := r.attach(c, "alice"), r.attach(r.dial(client.Options{}), "bob")
		ch := r.open("conversation", a, b)
		r.proxy.cut(true) // so whatever is sent waits until it is given up
		for _, data := range []string{`{"a":`, `{"a":NaN}`, `[]`, `"x"`, `null`, `{} {}`, `{},"event_type":"ag2.msg.text"`, "{\"a\":\"\xff\"}"} {
			e := &envelope.Envelope{Channel: ch, Type: "app.note", Data: []byte(data)}
			for _, post := range []func(context.Context, *envelope.Envelope) (string, error){a.Post, a.PostWhenAllowed} {
				_, err := post(t.Context(), e)
				t.ErrorContains(err, "event_data is not a JSON object")
				t.Equal(fault.CodeOf(err), fault.Invalid)
			}
		}
	})
	spec.Check(t, "ag2-hub#1: the client adopts the endpoint", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		r.attach(r.dial(client.Options{}), "alice")
		c := r.dial(client.Options{})
		again := r.attach(c, "alice")
		at, bound := r.hub.Bound(again.ID())
		t.Equal([]any{c.Endpoint(), bound}, []any{at, true})
		t.True(at != "", "the endpoint has a name")
	})
	spec.Check(t, "ag2-hub#12: a handler error at the client does not stop later deliveries", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		var mu sync.Mutex
		var handled []string
		r.run(b, echo, agent.Options{Handle: func(_ context.Context, _ *agent.Agent, e *envelope.Envelope) (bool, error) {
			if e.Type != "app.note" {
				return false, nil
			}
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, string(e.Data))
			if len(handled) == 1 {
				return true, errors.New("on purpose")
			}
			return true, nil
		}})
		ch := r.invite("conversation", a, b)
		for n := range 3 {
			_, err := a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: "app.note", Data: fmt.Appendf(nil, `{"n":%d}`, n)})
			t.NoError(err)
		}
		until(t, "all are handled", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(handled) == 3
		})
		t.Equal(handled, []string{`{"n":0}`, `{"n":1}`, `{"n":2}`})
	})
	spec.Check(t, "ag2-hub#20: a missing agent surfaces as NotFoundError in the remote client", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		_, err := r.attach(r.dial(client.Options{}), "alice").Peer(t.Context(), "nobody")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	spec.Check(t, "ag2-hub#21: a bad claim at register surfaces as AuthError", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		_, err := r.dial(client.Options{}).Register(t.Context(), client.Registration{Passport: identity.Passport{
			Name: "keyed", Auth: identity.Auth{Scheme: "api_key", Claim: []byte(`{"token":"wrong"}`)},
		}})
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		_, registered := r.hub.FindAgent("keyed")
		t.False(registered, "it is registered")
	})
	spec.Check(t, "ag2-hub#22: two remote processes complete a discussion", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		other := exec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), another+"=ws://"+r.proxy.address())
		stdin, err := other.StdinPipe()
		t.NoError(err)
		t.NoError(other.Start())
		until(t, "bob registers", func() bool { _, ok := r.hub.FindAgent("bob"); return ok })
		bob, _ := r.hub.FindAgent("bob")
		a := r.attach(r.dial(client.Options{}), "alice")
		m, err := a.OpenChannel(t.Context(), agent.Opening{Type: "discussion", Participants: []string{bob}})
		t.NoError(err)
		_, err = a.Send(t.Context(), m.ID, "hello there")
		t.NoError(err)
		reply := r.receive(a, envelope.TypeText)
		t.Equal([]string{reply.Envelope.Sender, string(reply.Envelope.Data)}, []string{bob, `{"text":"[ALICE]: HELLO THERE"}`})
		t.NoError(stdin.Close())
		t.NoError(other.Wait())
	})
	spec.Check(t, "ag2-hub#45: examples append through get + set in order", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		c := r.dial(client.Options{})
		a := r.attach(c, "alice")
		for _, title := range []string{"first", "second", "third"} {
			resume, err := c.Resume(t.Context(), a.ID())
			t.NoError(err)
			resume.Examples = append(resume.Examples, identity.Example{Title: title})
			t.NoError(a.SetResume(t.Context(), resume))
		}
		resume, err := c.Resume(t.Context(), a.ID())
		t.NoError(err)
		t.Equal(resume.Examples, []identity.Example{{Title: "first"}, {Title: "second"}, {Title: "third"}})
	})
	spec.Check(t, "ag2-hub#87: attach to an unknown name registers (needs passport and resume)", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		c := r.dial(client.Options{})
		i, err := c.Attach(t.Context(), client.Registration{
			Passport: identity.Passport{Name: "new", Owner: "o"}, Resume: &identity.Resume{Summary: "s", Version: 1},
		})
		t.NoError(err)
		p, err := c.Passport(t.Context(), "new")
		t.NoError(err)
		resume, err := c.Resume(t.Context(), i.ID())
		t.NoError(err)
		t.Equal([]string{p.AgentID, p.Owner, resume.Summary}, []string{i.ID(), "o", "s"})
	})
}

func TestDeliveryStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#73: auto-acks carry the cursor to the WAL head", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a, b := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		ch := r.invite("conversation", a, b)
		var last string
		for n := range 5 {
			var err error
			last, err = a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: "app.note", Data: fmt.Appendf(nil, `{"n":%d}`, n)})
			t.NoError(err)
		}
		cursor := func(h *hub.Hub) string {
			c, err := h.Cursor(context.Background(), b.ID(), ch)
			t.NoError(err)
			return c
		}
		until(t, "the last is acked", func() bool { return cursor(r.hub) >= last })
		log, err := a.Log(t.Context(), ch)
		t.NoError(err)
		t.Equal(cursor(r.hub), log[len(log)-1].ID)
		second, closeSecond := r.second()
		defer closeSecond()
		t.Equal(cursor(second), last)
	})
	spec.Check(t, "ag2-hub#90: a client offline for two task events gets both on reconnect", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a := r.attach(r.dial(client.Options{}), "alice")
		away := r.dial(client.Options{})
		b := r.attach(away, "bob")
		ch := r.open("conversation", a, b)
		t.NoError(r.receive(b, envelope.TypeOpened).Ack(t.Context()))
		t.NoError(away.Close())
		var want []string
		for _, eventType := range []string{envelope.TypeTaskStarted, envelope.TypeTaskCompleted} {
			id, err := a.Post(t.Context(), &envelope.Envelope{Channel: ch, Type: eventType, Data: []byte(`{"task_id":"t"}`)})
			t.NoError(err)
			want = append(want, id)
		}
		back := r.attach(r.dial(client.Options{}), "bob")
		got := []string{r.receive(back, envelope.TypeTaskStarted).Envelope.ID, r.receive(back, envelope.TypeTaskCompleted).Envelope.ID}
		t.Equal(got, want)
	})
	spec.Check(t, "ag2-hub#96: a creator can send, sleep, then wait", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		b := r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		person := agent.NewHuman(r.attach(r.dial(client.Options{}), "ines"), agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		m, err := person.Open(t.Context(), agent.Opening{Type: "consulting", Participants: []string{b.ID()}})
		t.NoError(err)
		_, err = person.Send(t.Context(), m.ID, "hello", turn.Address{})
		t.NoError(err)
		until(t, "it is all over", func() bool {
			now, err := r.hub.Channel(t.Context(), m.ID)
			return err == nil && now.State.Terminal()
		})
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		reply, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
		t.NoError(err)
		t.Equal(string(reply.Data), `{"text":"HELLO"}`)
		closed, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeClosed })
		t.NoError(err)
		t.Contains(string(closed.Data), "consulting_complete")
	})
}

func TestHumanStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-hub#129: acks invites, and its reply closes a consulting channel", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		a := r.attach(r.dial(client.Options{}), "alice")
		i := r.attach(r.dial(client.Options{}), "ines")
		person := agent.NewHuman(i, agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		ch := r.invite("consulting", a, i)
		_, err := a.Send(t.Context(), ch, "what do you think?")
		t.NoError(err)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		asked, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
		t.NoError(err)
		t.Equal(string(asked.Data), `{"text":"what do you think?"}`)
		_, err = person.Send(ctx, ch, "fine", turn.Address{})
		t.NoError(err)
		m, err := a.Channel(ctx, ch)
		t.NoError(err)
		t.Equal([]string{m.State.String(), m.CloseReason}, []string{"closed", "consulting_complete"})
	})
	spec.Check(t, "ag2-hub#129: opens a channel and takes a turn in it", func(t *spec.T) {
		t.Parallel()
		r := newRig(t)
		b := r.attach(r.dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		i := r.attach(r.dial(client.Options{}), "ines")
		person := agent.NewHuman(i, agent.HumanOptions{Log: quiet})
		defer person.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		m, err := person.Open(ctx, agent.Opening{Type: "discussion", Participants: []string{b.ID()}})
		t.NoError(err)
		for _, text := range []string{"one", "two"} {
			_, err = person.Send(ctx, m.ID, text, turn.Address{})
			t.NoError(err)
			_, err = person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
			t.NoError(err)
		}
		t.Equal(r.texts(i, m.ID), []string{`{"text":"one"}`, `{"text":"[INES]: ONE"}`, `{"text":"two"}`, `{"text":"[INES]: TWO"}`})
	})
}
