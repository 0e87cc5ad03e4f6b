package branch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

var subject = adapter.New(adapter.Options{})

func metadata() *channel.Metadata {
	m := adaptertest.Metadata(subject, "", "ines")
	m.Knobs = adapter.Knobs{Session: "s-7", Branch: "main"}.Bytes()
	return m
}

type play struct {
	*adaptertest.Play
	t *spec.T
}

func open(t *spec.T) play {
	t.Helper()
	p, err := adaptertest.Open(subject, metadata())
	t.NoError(err)
	return play{p, t}
}

// event returns an envelope for a line with a type and a payload.
func event(sender, line string, ext branch.Ext) *envelope.Envelope {
	name, payload, _ := strings.Cut(line, " ")
	if payload == "" {
		payload = "{}"
	}
	e := adaptertest.Envelope(sender, branch.LogType(name), payload)
	e.Ext = ext.Bytes()
	return e
}

// server posts events with the dialect's mark, producer those of the run.
func (p play) server(lines ...string) error {
	for _, line := range lines {
		ext := branch.Ext{Server: true, Flow: "t1"}
		if strings.HasPrefix(line, branch.BranchRunStarted) {
			ext.Agent = "bot"
		}
		if err := p.Post(event("user", line, ext)); err != nil {
			return err
		}
	}
	return nil
}

func (p play) producer(lines ...string) error {
	for _, line := range lines {
		if err := p.Post(event("bot", line, branch.Ext{Flow: "t1"})); err != nil {
			return err
		}
	}
	return nil
}

func (p play) state() *adapter.State {
	p.t.Helper()
	s, ok := p.State.(*adapter.State)
	p.t.True(ok, "it is a branch's state")
	return s
}

const (
	started  = `BRANCH_RUN_STARTED {"runtimeRunId":"r1","agentId":"concierge","startedAt":"2026-03-09T10:00:00Z"}`
	ended    = `BRANCH_RUN_COMPLETED {"runtimeRunId":"r1","agentId":"concierge","cancelled":false}`
	turn     = `MESSAGE_TURN_STARTED {"messageTurnId":"t1"}`
	finished = `MESSAGE_TURN_FINISHED {"messageTurnId":"t1"}`
	failed   = `MESSAGE_TURN_ERROR {"messageTurnId":"t1","message":"x"}`
	delta    = `TEXT_DELTA {"text":"Kiwi","messageId":"m1"}`
)

var input = []string{started, turn, `MESSAGE_STARTED {"messageId":"u1","role":"user"}`, `TEXT_MESSAGE_START {"messageId":"u1","role":"user"}`, `TEXT_DELTA {"messageId":"u1","text":"What is a kiwi?"}`, `TEXT_MESSAGE_END {"messageId":"u1"}`, `MESSAGE_COMPLETED {"messageId":"u1"}`}

func TestFold(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	c.NoError(p.server(`BRANCH_CREATED {"name":"main","createdAt":"2026-03-09T10:00:00Z"}`, `BRANCH_METADATA_UPDATED {"description":"d","tags":["x"],"branchMetadata":{"k":1}}`, `BRANCH_TREE_UPDATED {"siblingIndex":0}`))
	c.NoError(p.server(input...))
	s := p.state()
	c.Equal(*s.Run, adapter.Run{ID: "r1", AgentID: "concierge", Agent: "bot", Started: s.Run.Started, Seq: 4, By: "user", Turn: "t1"})
	c.Equal(s.Run.Started.Format("15:04:05"), "10:00:00")
	c.Equal(s.Messages, int64(1))
	c.Equal(s.FirstText, "What is a kiwi?")
	c.Equal(s.Fields, branch.Fields{Description: new("d"), Tags: []string{"x"}, Metadata: branch.Raw(`{"k":1}`)})
	c.Equal(s.Members, []string{"ines", "user", "bot"})
	c.Equal(s.Told, (&branch.Tree{}).Sum())

	c.NoError(p.producer(`TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}`, delta))
	before := p.State
	c.NoError(p.producer(delta, `TOOL_CALL_ARGS {"callId":"c","argsJson":"{}"}`))
	c.True(before == p.State, "a delta of the same message makes no new state")
	c.NoError(p.producer(`TOOL_CALL_START {"callId":"c","name":"f","messageId":"m1"}`, `TOOL_CALL_END {"callId":"c"}`, `TOOL_CALL_RESULT {"callId":"c","result":{}}`, finished))
	c.Equal(p.state().Messages, int64(3))
	c.True(p.state().Run.TurnEnded, "the turn has ended")
	c.NoError(p.server(ended, `BRANCH_MIDDLEWARE_STATE_COMMITTED {"state":{"a":"1"}}`))
	c.Equal(p.state().Run, (*adapter.Run)(nil))
	c.Equal(p.state().StateSeq, uint64(len(p.Log)))
	c.Equal(p.state().Active, p.Log[len(p.Log)-2].CreatedAt)

	e := event("user", `BRANCH_HISTORY_COMPACTED {"durableCompactedMessageIds":["u1","m1","gone"],"replacementMessages":[{"text":"sum"}]}`, branch.Ext{Server: true, Messages: new(int64(2))})
	c.NoError(p.Post(e))
	c.Equal(p.state().Messages, int64(2))
	c.NoError(p.server(`BRANCH_HISTORY_COMPACTED {"durableCompactedMessageIds":["a","b","c"],"replacementMessages":[{"text":"sum"}]}`))
	c.Equal(p.state().Messages, int64(1))

	forked := open(c)
	c.NoError(forked.server(`BRANCH_FORKED {"sourceBranchId":"main","fromMessageId":"m","resolvedMessageIndex":3}`))
	c.Equal(forked.state().Fork, branch.ForkPoint{Source: "main", MessageID: "m", MessageIndex: 3})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	running := func(t *spec.T) play {
		t.Helper()
		p := open(t)
		t.NoError(p.server(input...))
		return p
	}
	refused := func(t *spec.T, err error, code fault.Code, fragments ...string) {
		t.Helper()
		t.ErrorContains(err, fragments...)
		t.Equal(fault.CodeOf(err), code)
	}
	for _, line := range []string{started, ended, `BRANCH_CREATED`, `BRANCH_FORKED`, `BRANCH_METADATA_UPDATED`, `BRANCH_TREE_UPDATED`, `MESSAGE_STARTED {"messageId":"x","role":"user"}`, `CONTENT_ADDED {"messageId":"x","content":{"$type":"uri"}}`, `MESSAGE_COMPLETED {"messageId":"x"}`, `BRANCH_MIDDLEWARE_STATE_COMMITTED`, `BRANCH_HISTORY_COMPACTED`} {
		name, _, _ := strings.Cut(line, " ")
		t.Run("a producer does not write "+name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			refused(c, running(c).producer(line), fault.Protocol, "written by the server only")
		})
	}
	t.Run("a second run", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := running(c)
		err := p.server(`BRANCH_RUN_STARTED {"runtimeRunId":"r2","agentId":"other"}`)
		refused(c, err, fault.Conflict, "active run, r1")
		c.Equal(fault.ReasonOf(err), fault.RunActive)
		c.Equal(p.state().Run.ID, "r1")
		c.NoError(p.server(ended))
		c.NoError(p.server(`BRANCH_RUN_STARTED {"runtimeRunId":"r2","agentId":"other"}`))
	})
	spec.Check(t, "hpd-events#20: a run ends once", func(t *spec.T) {
		p := running(t)
		t.NoError(p.server(ended))
		err := p.server(ended)
		refused(t, err, fault.Conflict, "not active")
		t.Equal(fault.ReasonOf(err), fault.NoRun)
		refused(t, running(t).server(`BRANCH_RUN_COMPLETED {"runtimeRunId":"r9"}`), fault.Conflict, `"r9" is not active`)
	})
	spec.Check(t, "hpd-events#18: a turn begins in a run", func(t *spec.T) {
		refused(t, open(t).server(turn), fault.Conflict, "none is active")
		refused(t, running(t).server(turn), fault.Protocol, "a run has one")
		refused(t, running(t).producer(`MESSAGE_TURN_STARTED {"messageTurnId":"mine"}`), fault.Protocol, "a run has one")
	})
	spec.Check(t, "hpd-events#19: nothing of a run comes after its end", func(t *spec.T) {
		p := running(t)
		t.NoError(p.producer(delta))
		t.NoError(p.server(ended))
		err := p.producer(delta)
		refused(t, err, fault.Conflict, "none is active")
		t.Equal(fault.ReasonOf(err), fault.NoRun)
	})
	spec.Check(t, "hpd-events#40 seed-003#145: a finished turn gets no error, and a failed one no second", func(t *spec.T) {
		p := running(t)
		t.NoError(p.producer(finished))
		refused(t, p.server(failed), fault.Protocol, "not open")
		refused(t, p.producer(finished), fault.Protocol, "not open")
		p = running(t)
		t.NoError(p.server(failed))
		refused(t, p.server(failed), fault.Protocol, "not open")
		refused(t, p.producer(finished), fault.Protocol, "not open")
		refused(t, running(t).producer(failed), fault.Protocol, "never stored")
	})
	t.Run("events of another run, agent or surface", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := running(c)
		for _, ext := range []branch.Ext{{}, {Flow: "t0"}} {
			err := p.Post(event("bot", delta, ext))
			refused(c, err, fault.Conflict, "another run")
			c.Equal(fault.ReasonOf(err), fault.NoRun)
		}
		refused(c, p.Post(event("eve", delta, branch.Ext{Flow: "t1"})), fault.AccessDenied, "another agent")
		for _, eventType := range []string{envelope.TypeText, "app.custom", "hpd.", ""} {
			refused(c, p.Post(adaptertest.Envelope("bot", eventType, `{}`)), fault.Protocol, "HPD events only")
		}
		refused(c, p.producer(`NOVEL {}`), fault.Protocol, "not registered")
	})
	spec.Check(t, "hpd-events#31: live-only types are not stored", func(t *spec.T) {
		p := running(t)
		for _, row := range branch.Rows() {
			if row.Persistence != branch.Live {
				continue
			}
			refused(t, p.producer(row.Type+` {"status":"x"}`), fault.Protocol, "never stored")
			refused(t, p.server(row.Type+` {"status":"x"}`), fault.Protocol, "never stored")
		}
	})
	spec.Check(t, "hpd-events#44: an event of another scope is refused", func(t *spec.T) {
		p := running(t)
		refused(t, p.producer(`TEXT_DELTA {"text":"x","messageId":"m","sessionId":"other"}`), fault.Protocol, "another scope", `"other"`)
		refused(t, p.producer(`TEXT_DELTA {"text":"x","messageId":"m","branchId":"other"}`), fault.Protocol, "another scope")
		refused(t, p.server(`MESSAGE_COMPLETED {"messageId":"m","threadId":"other"}`), fault.Protocol, "another scope")
		t.NoError(p.producer(`TEXT_DELTA {"text":"\"sessionId\":\"other\"","messageId":"m","sessionId":"s-7","branchId":"main"}`))
	})
	t.Run("fields have a bound, and a branch has names", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p, err := adaptertest.Open(adapter.New(adapter.Options{Record: 100}), metadata())
		c.NoError(err)
		refused(c, p.Post(event("user", `BRANCH_METADATA_UPDATED {"name":"`+strings.Repeat("x", 100)+`"}`, branch.Ext{Server: true})), fault.TooLarge, "at most 100")
		for _, knobs := range []string{``, `{}`, `{"session":"s"}`, `[]`, `{"session":"s","branch":5}`} {
			m := metadata()
			m.Knobs = []byte(knobs)
			_, err := adaptertest.Open(subject, m)
			refused(c, err, fault.Protocol, "`session` and `branch`")
		}
	})
}

func TestIndexAndSide(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	c.NoError(p.server(input...))
	fx := subject.OnAccepted(p.Meta, p.State, p.Log[0])
	c.Equal(len(fx.Index), 3)
	c.Equal(fx.Index[0].Key, adapter.RunEventsPrefix(p.Meta.ID, "r1")+"0000000000000001")
	c.Equal(fx.Index[1].Key, adapter.BranchEntry+p.Meta.ID)
	c.Equal(fx.Index[2].Key, adapter.RunEntry+p.Meta.ID)
	got, err := adapter.ParseSummary(fx.Index[1].Value)
	c.NoError(err)
	c.Equal(got, adapter.Summarize(p.Meta, p.state()))
	c.Equal(got.Run, "r1")
	c.Equal(got.Messages, int64(1))
	c.Equal(subject.OnAccepted(p.Meta, p.State, event("bot", delta, branch.Ext{})), channel.Effects{})

	side := func(s channel.State, data string) channel.State {
		return subject.FoldSide(s, adaptertest.Envelope("user", adapter.TypeSession, data))
	}
	s := side(side(side(p.State, `{"metadata":{"a":1},"active":"2026-01-02T00:00:00Z"}`), `{"active":"2026-01-01T00:00:00Z"}`), `{"metadata":5`)
	info := s.(*adapter.State).SessionInfo
	c.Equal(string(info.Metadata), `{"a":1}`)
	c.Equal(info.Active.Format("2006-01-02"), "2026-01-02")
	c.True(subject.FoldSide(s, adaptertest.Envelope("user", "parley.request", `{}`)) == s, "other side envelopes change nothing")
}

// Folding a stream of tokens allocates nothing.
func TestDeltasAllocateNothing(t *testing.T) {
	c := &spec.T{T: t}
	p := open(c)
	c.NoError(p.server(input...))
	c.NoError(p.producer(`TEXT_MESSAGE_START {"messageId":"0123456789abcdef0123456789abcdef","role":"assistant"}`))
	e := event("bot", `TEXT_DELTA {"text":"Kiwi","messageId":"0123456789abcdef0123456789abcdef"}`, branch.Ext{Flow: "t1"})
	if n := testing.AllocsPerRun(100, func() { p.State = subject.Fold(p.State, e) }); n > 0 {
		t.Errorf("a delta's fold allocates %v times", n)
	}
}

// payload draws a payload that the fold reads.
func payload(t *rapid.T, eventType string, _ []string) string {
	id := rapid.SampledFrom([]string{"m1", "m2", "é\"", ""}).Draw(t, "id")
	fields := map[string]any{
		"messageId": id, "callId": rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "call"), "role": rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"), "text": "x",
		"runtimeRunId": rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run"), "messageTurnId": rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "turn"), "name": "n",
		"sourceBranchId": "main", "fromMessageId": "m1", "durableCompactedMessageIds": []string{"m1"},
	}
	data, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(data)
}

func own() []string {
	var types []string
	for _, row := range branch.Rows() {
		if row.Persistence != branch.Live {
			types = append(types, branch.LogType(row.Type))
		}
	}
	return types
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter: subject, Metadata: func(*rapid.T) *channel.Metadata { return metadata() }, Payload: payload, Own: own(),
		Ext: func(t *rapid.T, agents []string) []byte {
			return branch.Ext{Server: rapid.Bool().Draw(t, "server"), Flow: rapid.SampledFrom([]string{"", "t1"}).Draw(t, "flow"), Agent: rapid.SampledFrom(agents).Draw(t, "agent")}.Bytes()
		},
	})
}

// The fold's count equals that of the projection, and its run that of the log.
func TestLawCountIsTheProjections(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, err := adaptertest.Open(subject, metadata())
		if err != nil {
			t.Fatal(err)
		}
		history := &branch.History{}
		for i := range rapid.IntRange(1, 60).Draw(t, "events") {
			id := fmt.Sprintf("m%d", rapid.IntRange(0, 8).Draw(t, "id"))
			call := fmt.Sprintf("c%d", rapid.IntRange(0, 5).Draw(t, "call"))
			line := rapid.SampledFrom([]string{
				`MESSAGE_STARTED {"messageId":"` + id + `","role":"user"}`, `TEXT_MESSAGE_START {"messageId":"` + id + `","role":"assistant"}`, `TEXT_DELTA {"messageId":"` + id + `","text":"x"}`,
				`REASONING_DELTA {"text":"y","messageId":"` + id + `"}`, `CONTENT_ADDED {"messageId":"` + id + `","content":{"$type":"uri","uri":"u"}}`,
				`TOOL_CALL_START {"callId":"` + call + `","name":"f","messageId":"` + id + `"}`, `TOOL_CALL_END {"callId":"` + call + `"}`, `TOOL_CALL_RESULT {"callId":"` + call + `","result":{}}`,
				`TOOL_CALL_ARGS {"callId":"` + call + `","argsJson":"{}"}`, `TEXT_MESSAGE_END {"messageId":"` + id + `"}`,
			}).Draw(t, "line")
			e := event("bot", line, branch.Ext{})
			e.Seq = uint64(i + 1)
			p.State = subject.Fold(p.State, e)
			ev, _ := branch.FromEnvelope(e)
			history.Apply(ev)
			if got, want := p.State.(*adapter.State).Messages, int64(history.Count()); got != want {
				t.Fatalf("after %s the fold counts %d messages, the projection %d", line, got, want)
			}
		}
		p2, err := subject.Codec().Decode([]byte(p.JSON()))
		if err != nil || adaptertest.StateJSON(subject, p2) != p.JSON() {
			t.Fatalf("the counter is lost by the codec: %v", err)
		}
	})
}

func FuzzState(f *testing.F) {
	p, err := adaptertest.Open(subject, metadata())
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range slices.Concat(input, []string{delta, `TOOL_CALL_START {"callId":"c","messageId":"m9"}`}) {
		p.State = subject.Fold(p.State, event("user", line, branch.Ext{Server: true}))
	}
	f.Add([]byte(p.JSON()))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, subject, data) })
}
