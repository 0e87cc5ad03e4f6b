package scripted_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/scripted"
)

// stage is a network with participants on it, in a bubble where time is faked.
type stage struct {
	*agenttest.Network
	t testing.TB
}

// plays runs fn in a bubble.
func plays(t *testing.T, name string, fn func(t *testing.T, s *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { fn(t, &stage{agenttest.New(), t}) })
	})
}

// perform lets a participant play until stop is called, which returns how that
// ended.
func (s *stage) perform(link *agenttest.Link, lines scripted.Lines) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&scripted.Participant{Link: link, Lines: lines}).Run(ctx) }()
	stop = func() error {
		synctest.Wait()
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// open opens a channel in which everyone has accepted.
func (s *stage) open(creator *agenttest.Link, kind, knobs string, others ...*agenttest.Link) string {
	s.t.Helper()
	o := agent.Opening{Type: kind}
	if knobs != "" {
		o.Knobs = []byte(knobs)
	}
	for _, l := range others {
		o.Participants = append(o.Participants, l.Self().ID)
	}
	m, err := creator.OpenChannel(context.Background(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return m.ID
}

func (s *stage) say(link *agenttest.Link, channelID, data string) string {
	s.t.Helper()
	id, err := link.Post(context.Background(), &envelope.Envelope{
		Channel: channelID, Sender: link.Self().ID, Type: envelope.TypeText, Data: []byte(data),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// said returns what a channel's log holds besides its lifecycle, once nothing
// happens any more.
func (s *stage) said(link *agenttest.Link, channelID string) []string {
	s.t.Helper()
	synctest.Wait()
	log, err := link.Log(context.Background(), channelID)
	if err != nil {
		s.t.Fatal(err)
	}
	list := []string{}
	for _, e := range log {
		if !envelope.IsChannelEvent(e.Type) {
			list = append(list, e.Sender[len("id-"):]+" "+e.Type+" "+string(e.Data))
		}
	}
	return list
}

func (s *stage) want(link *agenttest.Link, channelID string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.said(link, channelID)); diff != "" {
		s.t.Errorf("said (-want +got):\n%s", diff)
	}
}

func text(who, says string) string { return who + ` ag2.msg.text {"text":"` + says + `"}` }

func TestEcho(t *testing.T) {
	t.Parallel()
	plays(t, "repeats texts and bodies, and says nothing to nothing", func(t *testing.T, s *stage) {
		alice, parrot := s.Join("alice"), s.Join("parrot")
		s.perform(parrot, scripted.Echo)
		ch := s.open(alice, "conversation", "", parrot)
		question := s.say(alice, ch, `{"text":"how are you?"}`)
		synctest.Wait()
		s.say(alice, ch, `{"text":""}`)
		s.say(alice, ch, `{"text":7}`)
		s.want(alice, ch, text("alice", "how are you?"), text("parrot", "how are you?"), text("alice", ""), `alice ag2.msg.text {"text":7}`)
		answer, err := parrot.Answer(context.Background(), ch, question)
		if err != nil || answer == nil {
			t.Errorf("the answer does not say what it answers: %v, %v", answer, err)
		}
		if !parrot.Idle() {
			t.Error("not everything was acked")
		}
	})
}

func TestScript(t *testing.T) {
	t.Parallel()
	lines := scripted.Script([]scripted.Line{{Say: "one"}, {Say: "two"}})
	plays(t, "says one line each turn, and leaves the rest to others", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		for range 3 {
			s.say(alice, ch, `{"text":"?"}`)
			synctest.Wait()
		}
		s.want(alice, ch, text("alice", "?"), text("bob", "one"), text("alice", "?"), text("bob", "two"), text("alice", "?"))
	})
	plays(t, "counts for each channel of its own", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		for range 2 {
			ch := s.open(alice, "conversation", "", bob)
			s.say(alice, ch, `{"text":"?"}`)
			s.want(alice, ch, text("alice", "?"), text("bob", "one"))
		}
	})
	plays(t, "goes on where it was after a restart", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		stop := s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		s.say(alice, ch, `{"text":"?"}`)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.say(alice, ch, `{"text":"still there?"}`)
		s.perform(bob, lines)
		s.want(alice, ch, text("alice", "?"), text("bob", "one"), text("alice", "still there?"), text("bob", "two"))
	})
	plays(t, "does not answer twice what comes again", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		s.say(alice, ch, `{"text":"?"}`)
		s.want(alice, ch, text("alice", "?"), text("bob", "one"))
		log, err := alice.Log(context.Background(), ch)
		if err != nil {
			t.Fatal(err)
		}
		bob.Repeat(log[len(log)-2])
		s.want(alice, ch, text("alice", "?"), text("bob", "one"))
	})
	plays(t, "speaks only in its turn", func(t *testing.T, s *stage) {
		alice, bob, carol := s.Join("alice"), s.Join("bob"), s.Join("carol")
		for _, link := range []*agenttest.Link{bob, carol} {
			s.perform(link, lines)
		}
		ch := s.open(alice, "discussion", "", bob, carol)
		s.say(alice, ch, `{"text":"?"}`)
		s.want(alice, ch, text("alice", "?"), text("bob", "one"), text("carol", "one"))
		s.say(alice, ch, `{"text":"and now?"}`)
		s.want(alice, ch, text("alice", "?"), text("bob", "one"), text("carol", "one"), text("alice", "and now?"), text("bob", "two"), text("carol", "two"))
	})
	plays(t, "says nothing where nobody listens any more", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		stop := s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.say(alice, ch, `{"text":"?"}`)
		if _, err := alice.CloseChannel(context.Background(), ch, "done"); err != nil {
			t.Fatal(err)
		}
		s.perform(bob, lines)
		s.want(alice, ch, text("alice", "?"))
	})
}

// graph sends alice's word to bob; a handoff beats it, and so does the tool.
const graph = `{"graph":{"initial_speaker":"id-alice","transitions":[
{"when":{"name":"tool_called","args":{"tool_name":"escalate"}},"then":{"name":"agent","args":{"agent_id":"id-carol"}}},
{"when":{"name":"from_speaker","args":{"agent_id":"id-alice"}},"then":{"name":"agent","args":{"agent_id":"id-bob"}}},
{"when":{"name":"from_speaker","args":{"agent_id":"id-bob"}},"then":{"name":"agent","args":{"agent_id":"id-alice"}}}],
"default_target":{"name":"stay"},"max_turns":20}}`

func packet(who, routing, body string) string {
	return who + ` ag2.packet {"routing":` + routing + `,"context_updates":{"set":{},"delete":[]},"body":"` + body + `"}`
}

func TestWorkflow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line scripted.Line
		want []string
	}{
		"a text": {
			scripted.Line{Say: "fine"},
			[]string{packet("bob", `{"kind":"text"}`, "fine")},
		},
		"context before it speaks": {
			scripted.Line{Say: "noted", Set: map[string]any{"n": 1, "area": "db"}, Delete: []string{"old"}},
			[]string{`bob ag2.context.set {"delete":["old"],"set":{"area":"db","n":1}}`, packet("bob", `{"kind":"text"}`, "noted")},
		},
		"context that is only removed": {
			scripted.Line{Delete: []string{"old"}},
			[]string{`bob ag2.context.set {"delete":["old"],"set":{}}`, packet("bob", `{"kind":"text"}`, "")},
		},
		"a handoff, by name": {
			scripted.Line{Say: "yours", Handoff: "carol", Tool: "hand_over", Reason: "packet loss"},
			[]string{
				packet("bob", `{"kind":"handoff","tool":"hand_over","reason":"packet loss","target":"id-carol"}`, "yours"),
				packet("carol", `{"kind":"text"}`, "carol here"),
			},
		},
		"a tool that the graph knows": {
			scripted.Line{Say: "help", Tool: "escalate", Reason: "stuck"},
			[]string{
				packet("bob", `{"kind":"handoff","tool":"escalate","reason":"stuck"}`, "help"),
				packet("carol", `{"kind":"text"}`, "carol here"),
			},
		},
		"the end": {
			scripted.Line{Say: "bye", Finish: "resolved", Tool: "done"},
			[]string{packet("bob", `{"kind":"finish","tool":"done","reason":"resolved","summary":""}`, "bye")},
		},
	} {
		plays(t, name, func(t *testing.T, s *stage) {
			alice, bob, carol := s.Join("alice"), s.Join("bob"), s.Join("carol")
			s.perform(bob, scripted.Script([]scripted.Line{tc.line}))
			s.perform(carol, scripted.Script([]scripted.Line{{Say: "carol here"}}))
			ch := s.open(alice, "workflow", graph, bob, carol)
			m, err := alice.Channel(context.Background(), ch)
			if err != nil {
				t.Fatal(err)
			}
			// A participant may also speak without being asked.
			if err := (&scripted.Participant{Link: alice}).Speak(context.Background(), m, scripted.Line{Say: "go"}, ""); err != nil {
				t.Fatal(err)
			}
			s.want(alice, ch, append([]string{packet("alice", `{"kind":"text"}`, "go")}, tc.want...)...)
			if m, err = alice.Channel(context.Background(), ch); err != nil || m.CloseReason != tc.line.Finish {
				t.Errorf("the channel ended for %q, %v; want %q", m.CloseReason, err, tc.line.Finish)
			}
		})
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	lines := scripted.Script([]scripted.Line{{Say: "at last", Wait: time.Minute}})
	plays(t, "speaks when the time has passed", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		s.say(alice, ch, `{"text":"?"}`)
		<-time.After(time.Minute - time.Nanosecond)
		s.want(alice, ch, text("alice", "?"))
		<-time.After(time.Nanosecond)
		s.want(alice, ch, text("alice", "?"), text("bob", "at last"))
	})
	plays(t, "what is stopped meanwhile is not acked, and answered the next time", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		stop := s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		question := s.say(alice, ch, `{"text":"?"}`)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if acks, _ := bob.Receipts(); slices.Contains(acks, question) || bob.Idle() {
			t.Fatalf("acked %v without an answer", acks)
		}
		bob.Redeliver()
		s.perform(bob, lines)
		<-time.After(time.Minute)
		s.want(alice, ch, text("alice", "?"), text("bob", "at last"))
	})
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	lines := scripted.Script([]scripted.Line{{Say: "one"}})
	boom := errors.New("boom")
	for _, operation := range []string{"Post", "Channel", "Log", "Answer", "CanSend"} {
		plays(t, "a failing "+operation+" ends it, and leaves the delivery unacked", func(t *testing.T, s *stage) {
			alice, bob := s.Join("alice"), s.Join("bob")
			stop := s.perform(bob, lines)
			ch := s.open(alice, "conversation", "", bob)
			synctest.Wait()
			bob.Fail(operation, boom)
			question := s.say(alice, ch, `{"text":"?"}`)
			if err := stop(); !errors.Is(err, boom) {
				t.Errorf("ended with %v", err)
			}
			if acks, _ := bob.Receipts(); slices.Contains(acks, question) {
				t.Errorf("acked %v", acks)
			}
		})
	}
	plays(t, "who is too late goes on", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		ch := s.open(alice, "conversation", "", bob)
		synctest.Wait()
		bob.Fail("Post", fault.New(fault.Protocol, "not your turn"))
		s.say(alice, ch, `{"text":"?"}`)
		s.want(alice, ch, text("alice", "?"))
		if !bob.Idle() {
			t.Error("what cannot be answered is not acked")
		}
		bob.Fail("Post", nil)
		s.say(alice, ch, `{"text":"again?"}`)
		s.want(alice, ch, text("alice", "?"), text("alice", "again?"), text("bob", "one"))
	})
	plays(t, "the end of the link ends it", func(t *testing.T, s *stage) {
		bob := s.Join("bob")
		stop := s.perform(bob, lines)
		bob.Cut()
		if err := stop(); !errors.Is(err, io.EOF) {
			t.Errorf("ended with %v", err)
		}
	})
	plays(t, "a handoff to nobody and context that is not JSON are refused", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		s.perform(bob, lines)
		ch := s.open(alice, "workflow", graph, bob, s.patient("carol"))
		m, err := alice.Channel(context.Background(), ch)
		if err != nil {
			t.Fatal(err)
		}
		p := &scripted.Participant{Link: alice}
		if err := p.Speak(context.Background(), m, scripted.Line{Handoff: "nobody"}, ""); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a handoff to nobody: %v", err)
		}
		if err := p.Speak(context.Background(), m, scripted.Line{Set: map[string]any{"f": func() {}}}, ""); err == nil {
			t.Error("a function is taken for JSON")
		}
		s.want(alice, ch, []string{}...)
	})
}

// patient joins someone who accepts invitations and says nothing.
func (s *stage) patient(name string) *agenttest.Link {
	link := s.Join(name)
	s.perform(link, scripted.Script(nil))
	return link
}

func TestHeard(t *testing.T) {
	t.Parallel()
	plays(t, "every delivery, in order", func(t *testing.T, s *stage) {
		alice, bob := s.Join("alice"), s.Join("bob")
		var heard []string
		p := &scripted.Participant{Link: bob, Lines: scripted.Echo, Heard: func(e *envelope.Envelope) { heard = append(heard, e.Type) }}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		ch := s.open(alice, "conversation", "", bob)
		s.say(alice, ch, `{"text":"?"}`)
		if _, err := alice.CloseChannel(context.Background(), ch, "done"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := []string{envelope.TypeInvite, envelope.TypeOpened, envelope.TypeText, envelope.TypeClosed}
		if !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	})
}
