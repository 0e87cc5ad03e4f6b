package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

// use has an agent call one tool outside any channel, and returns what the
// model reads.
func use(t *spec.T, w *world, link *agenttestLink, tool, arguments string) string {
	t.Helper()
	model := does(calling(turn.Call{ID: "1", Name: tool, Arguments: arguments}))
	return used(t, w, w.start(link, model, agent.Options{}), model)
}

func used(t *spec.T, w *world, a *agent.Agent, model *script) string {
	t.Helper()
	_, err := a.Ask(w.ctx, "use it")
	t.NoError(err)
	asked := model.asked()
	return asked[len(asked)-1].Messages[2].Text
}

// useIn has b call one tool in its turn of a conversation with a.
func useIn(t *spec.T, w *world, tool, arguments string, said ...string) (result, channelID string, a *agenttestLink) {
	t.Helper()
	model := &script{}
	w.run("b", model, agent.Options{})
	_, a = w.run("a", says(), agent.Options{})
	m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
	for _, text := range said {
		w.say(t, a, m.ID, text)
		w.pass(time.Second)
	}
	asked := len(model.asked())
	model.responses = []agent.Response{calling(turn.Call{ID: "1", Name: tool, Arguments: strings.ReplaceAll(arguments, "CHANNEL", m.ID)})}
	w.say(t, a, m.ID, "now")
	messages := model.asked()[asked+1].Messages
	return messages[len(messages)-1].Text, m.ID, a
}

func decode(t *spec.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not JSON: %s", text)
	}
	return v
}

func TestSay(t *testing.T) {
	t.Parallel()
	test(t, "posts into the current channel, to whom it names", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "say", `{"content":"psst","audience":["a"],"channel_id":"elsewhere"}`)
		texts := w.log(t, a, id, envelope.TypeText)
		last := texts[len(texts)-1]
		t.Equal(result, "posted envelope "+last.ID)
		t.Equal(string(last.Data), `{"text":"psst"}`)
		t.Equal(last.Audience, ids("a"))
		t.Equal(last.Causation, "")
	})
	for arguments, want := range map[string][]string{
		`{"content":"x"}`:                 nil,
		`{"content":"x","audience":null}`: nil,
		`{"content":"x","audience":[]}`:   {},
	} {
		test(t, "to everyone by default, and to nobody if so told: "+arguments, func(t *spec.T, w *world) {
			_, id, a := useIn(t, w, "say", arguments)
			texts := w.log(t, a, id, envelope.TypeText)
			t.Equal(texts[len(texts)-1].Audience, want)
		})
	}
	test(t, "an unknown peer", func(t *spec.T, w *world) {
		result, _, _ := useIn(t, w, "say", `{"content":"x","audience":["a","zed"]}`)
		t.Equal(result, "Error: peer 'zed' not found")
	})
	test(t, "a refused send is told", func(t *spec.T, w *world) {
		link := w.Join("b")
		model := does(calling(turn.Call{Name: "say", Arguments: `{"content":"x"}`}), agent.Response{})
		w.start(link, model, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		link.Fail("Post "+envelope.TypeText, errors.New("line down"))
		w.say(t, a, m.ID, "go")
		t.Equal(model.asked()[1].Messages[2].Text, "Error: send failed: line down")
	})
}

func TestDelegate(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#101: the reply is returned", func(t *spec.T, w *world) {
		w.run("helper", says("the answer"), agent.Options{})
		link := w.Join("a")
		t.Equal(use(t, w, link, "delegate", `{"target":"helper","prompt":"find out","capability":"research"}`), "the answer")
		list, err := link.ListChannels(w.ctx, 10)
		t.NoError(err)
		t.Equal(len(list), 1)
		t.Equal(list[0].Manifest.Type, "consulting")
		t.Equal(string(list[0].Knobs), `{"capability":"research"}`)
		t.Equal(list[0].CloseReason, "consulting_complete")
		asked := w.log(t, link, list[0].ID, envelope.TypeText)[0]
		t.Equal(asked.Audience, ids("helper"))
		t.Equal(asked.Depth, 1)
		t.Equal(string(asked.Data), `{"text":"find out"}`)
	})
	check(t, "ag2-channels#101: even when it arrives at once", func(t *spec.T, w *world) {
		link := &eager{agenttestLink: w.Join("a")}
		w.run("helper", says("at once"), agent.Options{})
		model := does(calling(turn.Call{ID: "1", Name: "delegate", Arguments: `{"target":"helper","prompt":"x"}`}))
		a := agent.New(link, model, agent.Options{})
		ctx, stop := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = a.Run(ctx) }()
		link.after = w.settle // the reply is there before Post returns
		t.Equal(used(t, w, a, model), "at once")
		stop()
		<-done
		t.Equal(len(model.asked()), 2) // and the caller's own handler did not take it as a turn
	})
	check(t, "ag2-channels#101: even when turns that delegate fill the queue", func(t *spec.T, w *world) {
		release := make(chan struct{})
		w.run("helper", agent.ModelFunc(func(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &agent.Response{Text: "re " + p.Input()}, nil
		}), agent.Options{})
		w.run("b", agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
			if last := p.Messages[len(p.Messages)-1]; last.Role != agent.User {
				return &agent.Response{Text: last.Text}, nil
			}
			return &agent.Response{Calls: []turn.Call{{ID: "1", Name: "delegate", Arguments: `{"target":"helper","prompt":"` + p.Input() + `"}`}}}, nil
		}), agent.Options{Queue: 1})
		_, a := w.run("a", says(), agent.Options{})
		one := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		two := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		for _, text := range []string{"1", "2", "3"} {
			w.say(t, a, one.ID, text)
			w.say(t, a, two.ID, text)
		}
		close(release)
		w.settle()
		for _, m := range []*channel.Metadata{one, two} {
			t.Equal(w.lines(t, a, m.ID), []string{"id-a: 1", "id-a: 2", "id-a: 3", "id-b: re 1", "id-b: re 2", "id-b: re 3"})
		}
	})
	check(t, "ag2-channels#101: the functions prefix is stripped", func(t *spec.T, w *world) {
		w.run("helper", says("yes"), agent.Options{})
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"functions.helper","prompt":"x"}`), "yes")
	})
	check(t, "ag2-channels#101: an unknown target lists the peers without the caller", func(t *spec.T, w *world) {
		w.Join("mia")
		w.Join("zoe")
		link := w.Join("a")
		w.Join("bob")
		t.Equal(use(t, w, link, "delegate", `{"target":"nobody","prompt":"x"}`), "Error: target 'nobody' not found. Available targets: [bob, mia, zoe]")
	})
	test(t, "while it waits, 1024 more are received than the queue holds", func(t *spec.T, w *world) {
		stop := ackOnly(w, w.Join("helper"))
		defer stop()
		link := &counting{agenttestLink: w.Join("b")}
		release := make(chan struct{})
		model := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
			switch last := p.Messages[len(p.Messages)-1]; last.Text {
			case "delegate":
				return &agent.Response{Calls: []turn.Call{{ID: "1", Name: "delegate", Arguments: `{"target":"helper","prompt":"x"}`}}}, nil
			case "think":
				<-release
			}
			return &agent.Response{}, nil
		})
		b := agent.New(link, model, agent.Options{Queue: 3})
		ctx, end := context.WithCancel(w.ctx)
		done := make(chan struct{})
		go func() { defer close(done); _ = b.Run(ctx) }()
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		flood := func(text string) int64 {
			before := link.received.Load()
			w.say(t, a, m.ID, text)
			for range 1100 {
				_, err := a.Post(w.ctx, &envelope.Envelope{Channel: m.ID, Sender: "id-a", Type: envelope.TypeTaskProgress, Data: []byte(`{}`)})
				t.NoError(err)
			}
			w.settle()
			return link.received.Load() - before
		}
		t.Equal(flood("delegate"), int64(3+1024+1)) // and the opened of the helper's channel, which is handled
		w.pass(5 * time.Minute)
		t.True(link.Idle(), "everything was answered")
		t.Equal(flood("think"), int64(3))
		close(release)
		w.settle()
		t.True(link.Idle(), "everything was answered")
		end()
		<-done
	})
	test(t, "without peers there is no list", func(t *spec.T, w *world) {
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"nobody","prompt":"x"}`), "Error: target 'nobody' not found")
	})
	check(t, "ag2-channels#101: self is refused without opening a channel", func(t *spec.T, w *world) {
		link := w.Join("a")
		for _, target := range []string{"a", "id-a", "functions.a"} {
			t.Equal(use(t, w, link, "delegate", `{"target":"`+target+`","prompt":"x"}`), "Error: cannot delegate to self (target '"+target+"' is this agent)")
		}
		list, err := link.ListChannels(w.ctx, 10)
		t.NoError(err)
		t.Equal(len(list), 0)
	})
	check(t, "ag2-channels#101: a close before the reply is an error, promptly", func(t *spec.T, w *world) {
		_, helper := w.run("helper", says(), agent.Options{Handle: func(ctx context.Context, h *agent.Agent, e *envelope.Envelope) (bool, error) {
			if e.Type != envelope.TypeText {
				return false, nil
			}
			_, err := h.Link().CloseChannel(ctx, e.Channel, "no time")
			return true, err
		}})
		begun := time.Now()
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"helper","prompt":"x"}`), "Error: delegate to 'helper' channel closed: no time")
		t.Equal(time.Since(begun), time.Duration(0))
		w.settle()
		t.True(helper.Idle(), "the helper is done")
	})
	check(t, "ag2-channels#101: an expiry before the reply is an error, promptly", func(t *spec.T, w *world) {
		w.run("helper", says(), agent.Options{Handle: func(ctx context.Context, h *agent.Agent, e *envelope.Envelope) (bool, error) {
			if e.Type != envelope.TypeText {
				return false, nil
			}
			_, err := h.Link().Post(ctx, &envelope.Envelope{Channel: e.Channel, Sender: h.Self().ID, Type: envelope.TypeExpired, Data: []byte(`{"reason":"ttl_expired"}`)})
			return true, err
		}})
		begun := time.Now()
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"helper","prompt":"x"}`), "Error: delegate to 'helper' channel closed: ttl_expired")
		t.Equal(time.Since(begun), time.Duration(0))
	})
	test(t, "a silent helper times out, and later mail is handled again", func(t *spec.T, w *world) {
		w.run("helper", says(""), agent.Options{})
		link := w.Join("a")
		begun := time.Now()
		t.Equal(use(t, w, link, "delegate", `{"target":"helper","prompt":"x","timeout":2.5}`), "Error: delegate to 'helper' timed out after 2.5s")
		t.Equal(time.Since(begun), 2500*time.Millisecond)
	})
	test(t, "what fails on the way is told", func(t *spec.T, w *world) {
		w.run("helper", says(""), agent.Options{})
		link := w.Join("a")
		link.Fail("OpenChannel", errors.New("closed today"))
		t.Equal(use(t, w, link, "delegate", `{"target":"helper","prompt":"x"}`), "Error: failed to open consulting channel: closed today")
		link.Fail("OpenChannel", nil)
		link.Fail("Post "+envelope.TypeText, errors.New("line down"))
		t.Equal(use(t, w, link, "delegate", `{"target":"helper","prompt":"x"}`), "Error: prompt send failed: line down")
	})
	test(t, "depth grows with every delegation", func(t *spec.T, w *world) {
		last := says("deep")
		w.run("c", last, agent.Options{})
		_, b := w.run("b", does(calling(turn.Call{Name: "delegate", Arguments: `{"target":"c","prompt":"deeper"}`}), agent.Response{Text: "ok"}), agent.Options{})
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"b","prompt":"deep"}`), "ok")
		list, err := b.ListChannels(w.ctx, 10)
		t.NoError(err)
		t.Equal(len(list), 2)
		t.Equal(w.log(t, b, list[1].ID, envelope.TypeText)[0].Depth, 2)
		t.Equal(w.log(t, b, list[1].ID, envelope.TypeText)[1].Depth, 0)
	})
}

// eager lets something happen before a post returns.
type eager struct {
	*agenttestLink
	after func()
}

func (l *eager) Post(ctx context.Context, e *envelope.Envelope) (string, error) {
	id, err := l.agenttestLink.Post(ctx, e)
	if l.after != nil && e.Type == envelope.TypeText {
		l.after()
	}
	return id, err
}

// counting counts what was received.
type counting struct {
	*agenttestLink
	received atomic.Int64
}

func (l *counting) Receive(ctx context.Context) (*agent.Delivery, error) {
	d, err := l.agenttestLink.Receive(ctx)
	if err == nil {
		l.received.Add(1)
	}
	return d, err
}
