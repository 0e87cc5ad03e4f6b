package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
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
	test(t, "to everyone by default, and to nobody if so told", func(t *spec.T, w *world) {
		_, id, a := useIn(t, w, "say", `{"content":"all","audience":null}`)
		texts := w.log(t, a, id, envelope.TypeText)
		t.True(texts[len(texts)-1].Audience == nil, "it goes to everyone")
	})
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
	check(t, "ag2-channels#101: the functions prefix is stripped", func(t *spec.T, w *world) {
		w.run("helper", says("yes"), agent.Options{})
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"functions.helper","prompt":"x"}`), "yes")
	})
	check(t, "ag2-channels#101: an unknown target lists the peers without the caller", func(t *spec.T, w *world) {
		w.Join("zoe")
		w.Join("bob")
		link := w.Join("a")
		t.Equal(use(t, w, link, "delegate", `{"target":"nobody","prompt":"x"}`), "Error: target 'nobody' not found. Available targets: [bob, zoe]")
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
		t.Equal(use(t, w, w.Join("a"), "delegate", `{"target":"helper","prompt":"x"}`), "Error: delegate to 'helper' channel closed: ttl_expired")
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

func TestPeers(t *testing.T) {
	t.Parallel()
	population := func(w *world) *agenttestLink {
		w.JoinAs(agent.Peer{Name: "zoe", Summary: "Reads SCANS.", Capabilities: []string{"ocr"}, Cost: &agent.Cost{InputPerMTok: "3.50", LatencyTier: "fast"},
			Observed: map[string]agent.Observed{"ocr": {N: 4, Completed: 1, Failed: 3}, "math": {N: 4, Completed: 3, Failed: 1}}})
		w.JoinAs(agent.Peer{Name: "bob", Summary: "Writes.", Owner: "ops", Provider: "acme", Domains: []string{"press"}, Cost: &agent.Cost{InputPerMTok: "0"}})
		w.JoinAs(agent.Peer{Name: "ann", Summary: "Draws.", Cost: &agent.Cost{InputPerMTok: "1"}, Observed: map[string]agent.Observed{"ocr": {N: 1, Completed: 1}}})
		return w.Join("me")
	}
	names := func(t *spec.T, text string) []string {
		list := []string{}
		for _, entry := range decode(t, text).([]any) {
			list = append(list, entry.(map[string]any)["name"].(string))
		}
		return list
	}
	check(t, "ag2-channels#96: find leaves the caller out", func(t *spec.T, w *world) {
		t.Equal(use(t, w, population(w), "peers", `{"action":"find"}`), `[`+
			`{"name":"zoe","agent_id":"id-zoe","summary":"Reads SCANS.","capabilities":["ocr"],"observed_success_rate":0.5,"cost":{"input_per_mtok":3.50,"output_per_mtok":null,"latency_tier":"fast"}},`+
			`{"name":"bob","agent_id":"id-bob","summary":"Writes.","capabilities":[],"observed_success_rate":null,"cost":{"input_per_mtok":0,"output_per_mtok":null,"latency_tier":null}},`+
			`{"name":"ann","agent_id":"id-ann","summary":"Draws.","capabilities":[],"observed_success_rate":1,"cost":{"input_per_mtok":1,"output_per_mtok":null,"latency_tier":null}}]`)
	})
	check(t, "ag2-channels#96: find filters by capability", func(t *spec.T, w *world) {
		me := population(w)
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","capability":"ocr"}`)), []string{"zoe", "ann"}) // claimed, observed
		t.Equal(use(t, w, me, "peers", `{"action":"find","capability":"juggling"}`), `[]`)
	})
	test(t, "find by words, and sorted", func(t *spec.T, w *world) {
		me := population(w)
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","query":"scans"}`)), []string{"zoe"})
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","sort_by":"name"}`)), []string{"ann", "bob", "zoe"})
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","sort_by":"cost"}`)), []string{"ann", "zoe", "bob"})
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","sort_by":"track_record"}`)), []string{"ann", "zoe", "bob"})
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","sort_by":"whim"}`)), []string{"zoe", "bob", "ann"})
	})
	test(t, "the limit counts the caller too", func(t *spec.T, w *world) {
		me := population(w)
		t.Equal(names(t, use(t, w, me, "peers", `{"action":"find","sort_by":"name","limit":3}`)), []string{"ann", "bob"})
		t.Equal(use(t, w, me, "peers", `{"action":"find","limit":0}`), `[]`)
	})
	check(t, "ag2-channels#96: describe returns the stored skill", func(t *spec.T, w *world) {
		me := population(w)
		w.SetSkill("id-bob", "---\nname: bob\n---\nWrites.")
		t.Equal(use(t, w, me, "peers", `{"action":"describe","name":"bob"}`), `{`+
			`"passport":{"name":"bob","agent_id":"id-bob","owner":"ops","provider":"acme","model":null},`+
			`"resume":{"summary":"Writes.","claimed_capabilities":[],"domains":["press"],"observed":{}},`+
			`"skill_md":"---\nname: bob\n---\nWrites."}`)
	})
	check(t, "ag2-channels#96: describe returns the fallback skill", func(t *spec.T, w *world) {
		got := decode(t, use(t, w, population(w), "peers", `{"action":"describe","name":"id-zoe"}`)).(map[string]any)
		t.Equal(got["skill_md"], any("fallback for id-zoe"))
		t.Equal(got["resume"].(map[string]any)["observed"], any(map[string]any{
			"ocr":  map[string]any{"n": 4.0, "completed": 1.0, "failed": 3.0, "expired": 0.0},
			"math": map[string]any{"n": 4.0, "completed": 3.0, "failed": 1.0, "expired": 0.0},
		}))
	})
	test(t, "refusals", func(t *spec.T, w *world) {
		me := population(w)
		for arguments, want := range map[string]string{
			`{"action":"describe"}`:              "Error: describe requires `name` (or agent_id)",
			`{"action":"describe","name":"zed"}`: "Error: peer 'zed' not found",
			`{"action":"hire"}`:                  "Error: unknown action 'hire'; choose from find, describe",
		} {
			t.Equal(use(t, w, me, "peers", arguments), want)
		}
	})
}

func TestChannels(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#97", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		opened := use(t, w, me, "channels", `{"action":"open","type":"conversation","target":"b","intent":"lunch","ttl":60,"knobs":{"x":1.50}}`)
		list, err := me.ListChannels(w.ctx, 10)
		t.NoError(err)
		id := list[0].ID
		t.Equal(opened, `{"channel_id":"`+id+`","type":"conversation","participants":["id-a","id-b"]}`)
		t.Equal(use(t, w, me, "channels", `{"action":"list"}`), `[{"channel_id":"`+id+`","type":"conversation","state":"active","participants":["id-a","id-b"]}]`)
		now := envelope.FormatTime(time.Now())
		t.Equal(use(t, w, me, "channels", `{"action":"info","channel_id":"`+id+`"}`), `{"channel_id":"`+id+`","type":"conversation","version":1,"state":"active","creator_id":"id-a",`+
			`"participants":[{"agent_id":"id-a","role":"initiator","order":0},{"agent_id":"id-b","role":"respondent","order":1}],"knobs":{"x":1.50},"labels":{"intent":"lunch"},`+
			`"expectations":[{"name":"max_silence","on_violation":"audit","params":{"seconds":3600}}],"created_at":"`+now+`","expires_at":null,"closed_at":null,"close_reason":""}`)
		t.Equal(use(t, w, me, "channels", `{"action":"close","channel_id":"`+id+`"}`), `{"channel_id":"`+id+`","state":"closed","close_reason":"closed_by_agent"}`)
		t.Equal(use(t, w, me, "channels", `{"action":"list"}`), `[]`)
		t.Contains(use(t, w, me, "channels", `{"action":"list","state":"all"}`), `"state":"closed"`)
	})
	check(t, "ag2-channels#98", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		w.run("c", says(), agent.Options{})
		me := w.Join("a")
		opened := decode(t, use(t, w, me, "channels", `{"action":"open","type":"discussion","target":["b","id-c"],"message":"hello all"}`)).(map[string]any)
		texts := w.log(t, me, opened["channel_id"].(string), envelope.TypeText)
		t.Equal(len(texts), 1)
		t.Equal(string(texts[0].Data), `{"text":"hello all"}`)
		t.Equal(texts[0].Sender, "id-a")
		t.Equal(opened["seed_envelope_id"], any(texts[0].ID))
		t.Equal(opened["participants"], any([]any{"id-a", "id-b", "id-c"}))
	})
	test(t, "a seed that is refused closes the channel", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		me.Fail("Post "+envelope.TypeText, errors.New("line down"))
		t.Equal(use(t, w, me, "channels", `{"action":"open","type":"conversation","target":"b","message":"hi"}`), "Error: seed send failed: line down")
		list, err := me.ListChannels(w.ctx, 10)
		t.NoError(err)
		t.Equal(list[0].CloseReason, "seed_failed")
	})
	test(t, "refusals", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		w.run("c", says(), agent.Options{})
		foreign := w.open(t, w.Join("d"), agent.Opening{Type: "conversation", Participants: ids("b")})
		me := w.Join("a")
		for arguments, want := range map[string]string{
			`{"action":"open","type":"conversation"}`:                    "Error: open requires `type` and `target`",
			`{"action":"open","target":"b"}`:                             "Error: open requires `type` and `target`",
			`{"action":"open","type":"conversation","target":[]}`:        "Error: open requires `type` and `target`",
			`{"action":"open","type":"conversation","target":"z"}`:       "Error: open failed: peer 'z' not found",
			`{"action":"open","type":"seance","target":"b"}`:             "Error: open failed: no adapter for 'seance'",
			`{"action":"info","channel_id":"` + foreign.ID + `"}`:        "Error: not a participant of channel '" + foreign.ID + "'",
			`{"action":"info","channel_id":"nope"}`:                      "Error: channel 'nope' not found: channel not found: 'nope'",
			`{"action":"info"}`:                                          "Error: info requires `channel_id`",
			`{"action":"close"}`:                                         "Error: close requires `channel_id`",
			`{"action":"close","channel_id":"nope"}`:                     "Error: close failed: channel not found: 'nope'",
			`{"action":"burn"}`:                                          "Error: unknown action 'burn'; choose from list, open, info, close",
			`{"action":"open","type":"conversation","target":["b","c"]}`: "Error: open failed: conversation needs exactly one respondent; none of the participants has that role",
		} {
			t.Equal(use(t, w, me, "channels", arguments), want)
		}
		t.Contains(use(t, w, me, "channels", `{"action":"open","target":7}`), "Error: arguments of channels", "a name or a list of names")
		t.Contains(use(t, w, me, "channels", `{"action":"open","target":["b",7]}`), "Error: arguments of channels", "holds only texts")
	})
	test(t, "the current channel is the default", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "channels", `{"action":"close"}`)
		t.Equal(result, `{"channel_id":"`+id+`","state":"closed","close_reason":"closed_by_agent"}`)
		m, err := a.Channel(w.ctx, id)
		t.NoError(err)
		t.Equal(m.State, channel.Closed)
	})
	test(t, "at most fifty are listed", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		w.start(me, says(), agent.Options{})
		for range 60 {
			w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b")})
		}
		t.Equal(len(decode(t, use(t, w, me, "channels", `{"action":"list"}`)).([]any)), 50)
	})
}

func TestTasksTool(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	done := agent.Task{
		ID: "t1", Owner: "id-b", Spec: agent.TaskSpec{Title: "scan", Capability: "ocr"}, State: agent.TaskCompleted, Channel: "c1",
		CreatedAt: at, StartedAt: at, CompletedAt: at.Add(time.Second), Result: []byte(`{"n":9007199254740993}`),
	}
	const summary = `{"task_id":"t1","owner_id":"id-b","title":"scan","capability":"ocr","state":"completed","created_at":"2026-03-09T10:00:00.000000Z",` +
		`"started_at":"2026-03-09T10:00:00.000000Z","completed_at":"2026-03-09T10:00:01.000000Z","expires_at":null,"last_progress_at":null,"result":{"n":9007199254740993},"error":""}`
	check(t, "ag2-channels#100: list, status and wait on a completed task", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(done)
		w.AddTask(agent.Task{ID: "t2", Owner: "id-z", State: agent.TaskRunning})
		t.Equal(use(t, w, b, "tasks", `{"action":"status","task_id":"t1"}`), summary)
		t.Equal(use(t, w, b, "tasks", `{"action":"wait","task_id":"t1"}`), summary)
		t.Equal(use(t, w, b, "tasks", `{"action":"list","state":"all"}`), `[`+summary+`]`)
		t.Equal(use(t, w, b, "tasks", `{"action":"list"}`), `[]`)
		t.Contains(use(t, w, b, "tasks", `{"action":"list","scope":"all"}`), `"task_id":"t2"`, `"result":null`, `"capability":null`)
		t.Equal(use(t, w, b, "tasks", `{"action":"list","state":"all","limit":0}`), `[]`)
	})
	check(t, "ag2-channels#100: an unknown task", func(t *spec.T, w *world) {
		b := w.Join("b")
		for _, action := range []string{"status", "wait", "cancel"} {
			t.Equal(use(t, w, b, "tasks", `{"action":"`+action+`","task_id":"t9"}`), "Error: task 't9' not found")
		}
	})
	check(t, "ag2-channels#100: cancel posts exactly one request", func(t *spec.T, w *world) {
		b, a := w.Join("b"), w.Join("a")
		stop := ackOnly(w, b)
		defer stop()
		w.start(a, says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.AddTask(agent.Task{ID: "t1", Owner: "id-b", State: agent.TaskRunning, Channel: m.ID})
		t.Equal(use(t, w, a, "tasks", `{"action":"cancel","task_id":"t1","reason":"enough"}`), "cancel_request posted to id-b for task t1")
		posted := w.log(t, a, m.ID, envelope.TypeTaskCancelRequest)
		t.Equal(len(posted), 1)
		t.Equal(string(posted[0].Data), `{"task_id":"t1","reason":"enough"}`)
		t.Equal(posted[0].Audience, ids("b"))
		t.Equal(posted[0].Task, "t1")
		t.Equal(posted[0].Sender, "id-a")
	})
	check(t, "ag2-channels#100: cancel's refusals", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(done)
		w.AddTask(agent.Task{ID: "orphan", Owner: "id-b", State: agent.TaskRunning})
		t.Equal(use(t, w, b, "tasks", `{"action":"cancel"}`), "Error: cancel requires `task_id`")
		t.Equal(use(t, w, b, "tasks", `{"action":"cancel","task_id":"t1"}`), "Error: task 't1' is already completed")
		t.Contains(use(t, w, b, "tasks", `{"action":"cancel","task_id":"orphan"}`), "Error: task 'orphan'", "no associated channel")
	})
	test(t, "wait polls until the end, or its own", func(t *spec.T, w *world) {
		b := w.Join("b")
		w.AddTask(agent.Task{ID: "slow", Owner: "id-b", State: agent.TaskRunning})
		begun := time.Now()
		t.Equal(use(t, w, b, "tasks", `{"action":"wait","task_id":"slow","timeout":5}`), "Error: task 'slow' did not complete within 5s")
		t.Equal(time.Since(begun), 5*time.Second)
		go func() {
			<-time.After(2 * time.Second)
			w.must(b.UpdateTask(context.WithoutCancel(w.ctx), agent.TaskUpdate{ID: "slow", State: agent.TaskFailed, Error: "broke"}))
		}()
		t.Contains(use(t, w, b, "tasks", `{"action":"wait","task_id":"slow"}`), `"state":"failed"`, `"error":"broke"`)
	})
	test(t, "progress and complete need a task", func(t *spec.T, w *world) {
		b := w.Join("b")
		t.Equal(use(t, w, b, "tasks", `{"action":"progress","payload":{"n":1}}`), "Error: progress requires an active `agent.task(...)` block")
		t.Equal(use(t, w, b, "tasks", `{"action":"complete"}`), "Error: complete requires an active `agent.task(...)` block")
		t.Equal(use(t, w, b, "tasks", `{"action":"start"}`), "Error: unknown action 'start'; choose from progress, complete, list, status, wait, cancel")
	})
	test(t, "progress and complete act on the enclosing task", func(t *spec.T, w *world) {
		b := w.Join("b")
		model := does(calling(turn.Call{Name: "tasks", Arguments: `{"action":"progress","payload":{"n":1}}`}, turn.Call{Name: "tasks", Arguments: `{"action":"complete","result":[1.50]}`},
			turn.Call{Name: "tasks", Arguments: `{"action":"complete"}`}))
		a := w.start(b, model, agent.Options{Task: func(*agent.Turn) *agent.TaskSpec { return &agent.TaskSpec{ID: "t7"} }})
		_, err := a.Ask(w.ctx, "go")
		t.NoError(err)
		var shown []string
		for _, m := range model.asked()[1].Messages[2:] {
			shown = append(shown, m.Text)
		}
		t.Equal(shown, []string{"progress emitted on t7", "completed t7", "Error: complete requires an active `agent.task(...)` block"})
		record, err := b.Task(w.ctx, "t7")
		t.NoError(err)
		t.Equal(string(record.Progress), `{"n":1}`)
		t.Equal(string(record.Result), `[1.50]`)
		t.Equal(record.State, agent.TaskCompleted)
	})
}

func TestContextTool(t *testing.T) {
	t.Parallel()
	check(t, "ag2-channels#99: search finds one of two texts", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "context", `{"action":"search","query":"BREAD"}`, "buy Bread", "buy milk")
		texts := w.log(t, a, id, envelope.TypeText)
		t.Equal(result, fmt.Sprintf(`[{"envelope_id":%q,"sender_id":"id-a","when":%q,"excerpt":"buy Bread"}]`, texts[0].ID, envelope.FormatTime(texts[0].CreatedAt)))
	})
	check(t, "ag2-channels#99: quote returns the last two in order", func(t *spec.T, w *world) {
		result, id, a := useIn(t, w, "context", `{"action":"quote","speaker":"a","recent_n":2}`, "one", "two", "three")
		texts := w.log(t, a, id, envelope.TypeText)
		when := envelope.FormatTime(texts[0].CreatedAt)
		t.Equal(result, fmt.Sprintf(`[{"envelope_id":%q,"when":%q,"text":"three"},{"envelope_id":%q,"when":%q,"text":"now"}]`, texts[2].ID, when, texts[3].ID, when))
	})
	test(t, "long texts are cut, hits are limited, oldest first", func(t *spec.T, w *world) {
		exact, long := strings.Repeat("é", 240), strings.Repeat("é", 241)
		result, _, _ := useIn(t, w, "context", `{"action":"search","query":"é","limit":2}`, exact, long, "é again")
		hits := decode(t, result).([]any)
		t.Equal(len(hits), 2)
		t.Equal(hits[0].(map[string]any)["excerpt"], any(exact))
		t.Equal(hits[1].(map[string]any)["excerpt"], any(strings.Repeat("é", 239)+"…"))
	})
	test(t, "knowledge is empty", func(t *spec.T, w *world) {
		t.Equal(use(t, w, w.Join("a"), "context", `{"action":"search","scope":"knowledge","query":"x"}`), `[]`)
	})
	test(t, "only what the caller may see, and only texts", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		w.run("c", says(), agent.Options{})
		me := w.Join("a")
		w.start(me, says(), agent.Options{})
		m := w.open(t, me, agent.Opening{Type: "workflow", Participants: ids("b", "c"), Knobs: graphOf("id-b", toAgent("id-b"))})
		for _, e := range []*envelope.Envelope{
			{Type: envelope.TypeText, Audience: ids("c"), Data: []byte(`{"text":"secret plan"}`)},
			{Type: envelope.TypePacket, Data: []byte(`{"body":"packet plan"}`)},
			{Type: envelope.TypeText, Data: []byte(`{"text":"open plan"}`)},
		} {
			e.Channel, e.Sender = m.ID, "id-b"
			_, err := me.Post(w.ctx, e)
			t.NoError(err)
		}
		hits := decode(t, use(t, w, me, "context", `{"action":"search","query":"plan","channel_id":"`+m.ID+`"}`)).([]any)
		t.Equal(len(hits), 1)
		t.Equal(hits[0].(map[string]any)["excerpt"], any("open plan"))
	})
	test(t, "refusals", func(t *spec.T, w *world) {
		me := w.Join("a")
		for arguments, want := range map[string]string{
			`{"action":"search"}`:                                    "Error: search requires `query`",
			`{"action":"search","query":"x"}`:                        "Error: search scope=channel requires an active channel",
			`{"action":"search","query":"x","channel_id":"nope"}`:    "Error: channel 'nope' not found",
			`{"action":"quote"}`:                                     "Error: quote requires `speaker`",
			`{"action":"quote","speaker":"zed","channel_id":"nope"}`: "Error: speaker 'zed' not found",
			`{"action":"quote","speaker":"a","channel_id":"nope"}`:   "Error: channel 'nope' not found",
			`{"action":"forget"}`:                                    "Error: unknown action 'forget'; choose from search, quote",
		} {
			t.Equal(use(t, w, me, "context", arguments), want)
		}
	})
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	test(t, "every tool's parameters are a JSON object", func(t *spec.T, w *world) {
		b := says("ok")
		w.run("b", b, agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "conversation", Participants: ids("b")})
		w.say(t, a, m.ID, "hello")
		tools := b.asked()[0].Tools
		t.Equal(len(tools), 6)
		for _, tool := range tools {
			schema := decode(t, string(tool.Parameters)).(map[string]any)
			t.Equal(schema["type"], any("object"))
			t.True(len(tool.Description) > 10, "%s is described", tool.Name)
		}
	})
}

func TestSendWhenAllowed(t *testing.T) {
	t.Parallel()
	test(t, "waits for its turn", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		b := w.Join("late")
		stop := ackOnly(w, b)
		defer stop()
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("late")})
		e, err := turn.BuildText(m.ID, "id-late", "at last", turn.Address{})
		t.NoError(err)
		sent := make(chan error, 1)
		go func() {
			_, err := agent.SendWhenAllowed(w.ctx, b, e)
			sent <- err
		}()
		w.pass(10 * time.Second)
		t.Equal(w.lines(t, a, m.ID), []string(nil))
		w.say(t, a, m.ID, "go on")
		t.NoError(<-sent)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go on", "id-late: at last"})
	})
	test(t, "a race that was lost is no error", func(t *spec.T, w *world) {
		_, a := w.run("a", says(), agent.Options{})
		b := w.Join("b")
		stop := ackOnly(w, b)
		defer stop()
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		w.say(t, a, m.ID, "go on")
		e, err := turn.BuildText(m.ID, "id-b", "mine", turn.Address{})
		t.NoError(err)
		b.Fail("Post", fault.New(fault.Protocol, "discussion expects 'id-a' to speak, not 'id-b'"))
		time.AfterFunc(time.Second, func() { b.Fail("Post", nil) })
		_, err = agent.SendWhenAllowed(w.ctx, b, e)
		t.NoError(err)
		t.Equal(w.lines(t, a, m.ID), []string{"id-a: go on", "id-b: mine"})
		b.Fail("Post", fault.New(fault.AccessDenied, "no"))
		_, err = agent.SendWhenAllowed(w.ctx, b, &envelope.Envelope{Channel: m.ID, Sender: "id-b", Type: "app.x", Data: []byte(`{}`)})
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
	})
	test(t, "ends with its context", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		_, a := w.run("a", says(), agent.Options{})
		m := w.open(t, a, agent.Opening{Type: "discussion", Participants: ids("b")})
		ctx, stop := context.WithTimeout(w.ctx, minute)
		defer stop()
		w.say(t, a, m.ID, "b is silent now")
		e, err := turn.BuildText(m.ID, "id-a", "x", turn.Address{})
		t.NoError(err)
		_, err = agent.SendWhenAllowed(ctx, a, e)
		t.ErrorIs(err, context.DeadlineExceeded)
	})
}
