package chat_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter"
	transcripts "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/server/chat"
)

// rig is a hub with a chat service, a person and an agent.
type rig struct {
	t      testing.TB
	store  *mem.Store
	engine *mem.Engine
	hub    *hub.Hub
	chat   *chat.Service
	person string
	parrot string
	inbox  *hub.Inbox
	cfg    chat.Config
}

func newRig(t testing.TB, cfg chat.Config) *rig {
	t.Helper()
	r := &rig{t: t, store: mem.NewStore(), cfg: cfg}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) register(name string, kind identity.Kind) string {
	r.t.Helper()
	if id, ok := r.hub.FindAgent(name); ok {
		return id
	}
	p, err := r.hub.Register(context.Background(), hub.Registration{Passport: &identity.Passport{Name: name, Kind: kind, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return p.ID()
}

func (r *rig) start() {
	r.t.Helper()
	engine, err := mem.Open(mem.Options{Store: r.store, Shards: 3})
	if err != nil {
		r.t.Fatal(err)
	}
	r.engine = engine
	r.hub, err = hub.Open(context.Background(), engine, hub.Options{
		Log: slog.New(slog.DiscardHandler), Adapters: append(adapter.All(), transcripts.New(transcripts.Options{})),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.person, r.parrot = r.register("hana", identity.Human), r.register("parrot", identity.Agent)
	r.inbox = hub.NewInbox(0)
	if err := r.hub.BindReplaying(context.Background(), r.parrot, r.inbox, ""); err != nil {
		r.t.Fatal(err)
	}
	cfg := r.cfg
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Store = chat.NewStore(chat.StoreConfig{Hub: r.hub, Writer: func(_ context.Context, o transcript.Owner) (string, error) { return o.Key, nil }})
	r.chat = chat.New(cfg)
	if err := r.chat.Resume(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	r.chat.Close()
	r.hub.Close()
	if err := r.engine.Close(); err != nil {
		r.t.Error(err)
	}
}

// next returns the next text for the agent; invitations are accepted.
func (r *rig) next() *envelope.Envelope {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		n, err := r.inbox.Next(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		e := n.Envelope
		switch e.Type {
		case envelope.TypeInvite:
			ack := &envelope.Envelope{Channel: e.Channel, Sender: r.parrot, Type: envelope.TypeInviteAck, Data: []byte(`{}`), Causation: e.ID}
			if _, err := r.hub.Post(ctx, ack, nil); err != nil {
				r.t.Fatal(err)
			}
		case envelope.TypeText:
			return e
		}
	}
}

// says has the agent answer.
func (r *rig) says(to *envelope.Envelope, text string) {
	r.t.Helper()
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = r.hub.Post(context.Background(), &envelope.Envelope{Channel: to.Channel, Sender: r.parrot, Type: envelope.TypeText, Data: data, Causation: to.ID}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.hub.Ack(context.Background(), r.parrot, to.Channel, to.ID); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) request(session, run, text string) chat.Request {
	input, err := json.Marshal(map[string]string{"message": text})
	if err != nil {
		r.t.Fatal(err)
	}
	return chat.Request{
		Principal: transcript.Principal{OwnerType: "agent", OwnerKey: r.person}, Scope: site,
		Agent: "parrot", Session: session, Run: run, Input: input,
	}
}

func (r *rig) begin(session, run, text string) *chat.Run {
	r.t.Helper()
	begun, err := r.chat.Start(context.Background(), r.request(session, run, text))
	if err != nil {
		r.t.Fatal(err)
	}
	return begun
}

func (r *rig) wait(run *chat.Run) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := run.Wait(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(answer)
}

func (r *rig) messages(session string) []string {
	r.t.Helper()
	s, err := r.chat.Store().Get(context.Background(), session)
	if err != nil {
		r.t.Fatal(err)
	}
	list := []string{}
	for _, e := range s.Envelopes() {
		text, _ := e.Text()
		list = append(list, e.Role+": "+text)
	}
	return list
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// A message goes to the agent, its answer into the session, and the same run
// gets the same answer again.
func TestAnAgentAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, chat.Config{})
	run := r.begin("", "run-1", "hello")
	first := r.next()
	expect(t, "what the agent is told", string(first.Data), `{"text":"hello"}`)
	r.says(first, "hello to you")
	answer := r.wait(run)
	if !strings.Contains(answer, `"reply":"hello to you"`) || !strings.Contains(answer, `"status":"completed"`) || strings.Contains(answer, `"messages"`) {
		t.Errorf("the answer is %s", answer)
	}
	again := r.begin("", "run-1", "hello")
	expect(t, "asked again", r.wait(again), answer)
	expect(t, "in the session of the first time", again.Session, run.Session)
	r.stop()
	r.start()
	later := r.begin("", "run-1", "hello")
	expect(t, "asked again after a restart", r.wait(later), answer)
	expect(t, "in the session of the first time, after a restart", later.Session, run.Session)

	second := r.begin(run.Session, "run-2", "and now?")
	told := r.next()
	expect(t, "the conversation", told.Channel, first.Channel)
	r.says(told, "still here")
	r.wait(second)
	expect(t, "the transcript", strings.Join(r.messages(run.Session), "|"), "user: hello|assistant: hello to you|user: and now?|assistant: still here")
	if _, err := r.chat.Start(t.Context(), r.request("", "run-2", "x")); fault.CodeOf(err) != fault.AccessDenied {
		t.Errorf("the run of another session: %v", err)
	}
}

// A hub that restarts in the middle of a run finishes it: the agent is asked
// once, and the run has one beginning and one end.
func TestARunOutlivesTheHub(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]string{"before the answer": "before", "after the answer": "after"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chat.Config{})
			run := r.begin("", "run-1", "hello")
			told := r.next()
			r.chat.Close()
			if when == "after" {
				r.says(told, "meanwhile")
			}
			r.stop()
			r.start()
			if when == "before" {
				again := r.next()
				expect(t, "delivered again", again.ID, told.ID)
				r.says(again, "meanwhile")
			}
			again := r.begin(run.Session, "run-1", "hello")
			if answer := r.wait(again); !strings.Contains(answer, `"reply":"meanwhile"`) {
				t.Errorf("the answer is %s", answer)
			}
			expect(t, "the transcript", strings.Join(r.messages(run.Session), "|"), "user: hello|assistant: meanwhile")
			kinds := map[string]int{}
			for e, err := range r.hub.Log(t.Context(), run.Channel, 0, 0) {
				if err != nil {
					t.Fatal(err)
				}
				kinds[e.Type]++
			}
			if kinds[transcripts.TypeStarted] != 1 || kinds[transcripts.TypeEnded] != 1 || kinds[transcripts.TypeAppended] != 1 {
				t.Errorf("the records are %v", kinds)
			}
		})
	}
}

// Text that the agent is writing is shown to the followers of the session.
func TestDeltasAreForwarded(t *testing.T) {
	t.Parallel()
	r := newRig(t, chat.Config{})
	run := r.begin("", "run-1", "hello")
	told := r.next()
	f, err := r.hub.Follow(t.Context(), run.Channel, hub.FollowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, d := range []agent.Delta{{Text: "hel"}, {At: 3, Text: "p"}, {Reset: true}, {Text: "hello"}} {
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.hub.SendLive(t.Context(), &envelope.Envelope{Channel: told.Channel, Sender: r.parrot, Type: envelope.TypeDelta, Data: data}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.says(told, "hello")
	r.wait(run)
	shown := ""
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		ev, err := f.Next(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		name, told := chat.EventName(ev)
		switch {
		case !told:
		case name == "delta":
			var d chat.Delta
			if err := json.Unmarshal(ev.Envelope.Data, &d); err != nil || d.Run != "run-1" {
				t.Fatalf("%v %s", err, ev.Envelope.Data)
			}
			shown += d.Text + " "
		default:
			shown += name + " "
		}
		if chat.Ends(ev, "run-1") {
			break
		}
	}
	expect(t, "what is shown", shown, "created started hel p reset hello appended ended ")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, chat.Config{})
	run := r.begin("", "run-1", "hello")
	told := r.next()
	if _, err := r.chat.Start(t.Context(), r.request(run.Session, "run-2", "x")); fault.CodeOf(err) != fault.Conflict || fault.ReasonOf(err) != fault.RunActive {
		t.Errorf("a second run at a time: %v", err)
	}
	for what, tc := range map[string]struct {
		edit func(*chat.Request)
		want fault.Code
	}{
		"an unknown agent":   {func(q *chat.Request) { q.Agent, q.Session = "nobody", "" }, fault.NotFound},
		"no agent":           {func(q *chat.Request) { q.Agent, q.Session = "", "" }, fault.Invalid},
		"an unknown session": {func(q *chat.Request) { q.Session = "nope" }, fault.NotFound},
		"another's session":  {func(q *chat.Request) { q.Principal.OwnerKey = r.parrot }, fault.NotFound},
		"nothing said":       {func(q *chat.Request) { q.Input, q.Session = []byte(`{"message":" "}`), "" }, fault.Invalid},
	} {
		q := r.request(run.Session, "run-3 "+what, "x")
		tc.edit(&q)
		if _, err := r.chat.Start(t.Context(), q); fault.CodeOf(err) != tc.want {
			t.Errorf("%s: %v", what, err)
		}
	}
	// An agent that fails says so, and the session takes the next message.
	if err := r.hub.ReportTurnFailure(t.Context(), told.Channel, r.parrot, told.ID, "Timeout", "the provider is away"); err != nil {
		t.Fatal(err)
	}
	if answer := r.wait(run); !strings.Contains(answer, `"status":"failed"`) || !strings.Contains(answer, `"completed":false`) {
		t.Errorf("the answer is %s", answer)
	}
	next := r.begin(run.Session, "run-4", "again")
	r.says(r.next(), "fine")
	r.wait(next)
	expect(t, "the transcript", strings.Join(r.messages(run.Session), "|"), "user: hello|user: again|assistant: fine")
}

func TestAnOwnerHasAShareOfTheRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, chat.Config{Runs: 4})
	r.begin("", "run-1", "hello")
	if _, err := r.chat.Start(t.Context(), r.request("", "run-2", "x")); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "chat.runs") {
		t.Errorf("more than the owner's share: %v", err)
	}
	q := r.request("", "run-3", "x")
	q.Principal.OwnerKey = r.register("ken", identity.Human)
	if _, err := r.chat.Start(t.Context(), q); err != nil {
		t.Errorf("another owner: %v", err)
	}
}
