package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

func TestPeers(t *testing.T) {
	t.Parallel()
	population := func(w *world) *agenttestLink {
		w.JoinAs(agent.Peer{
			Name: "zoe", Summary: "Reads SCANS.", Capabilities: []string{"ocr"}, Cost: &agent.Cost{InputPerMTok: "3.50", LatencyTier: "fast"},
			Observed: map[string]agent.Observed{"ocr": {N: 4, Completed: 1, Failed: 3}, "math": {N: 4, Completed: 3, Failed: 1}},
		})
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
	check(t, "ag2-channels#97: open, list, info and close agree on the channel", func(t *spec.T, w *world) {
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
	check(t, "ag2-channels#97: info tells the expectations that hold", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		for knob, want := range map[string]string{
			`[{"name":"max_silence","on_violation":"warn","params":{"seconds":5}}]`: `[{"name":"max_silence","on_violation":"warn","params":{"seconds":5}}]`,
			`[]`:   `[]`,
			`null`: `[{"name":"max_silence","on_violation":"audit","params":{"seconds":3600}}]`,
		} {
			m := w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b"), Knobs: []byte(`{"expectations":` + knob + `}`)})
			t.Contains(use(t, w, me, "channels", `{"action":"info","channel_id":"`+m.ID+`"}`), `"expectations":`+want+`,"created_at"`)
		}
	})
	check(t, "ag2-channels#98: open with message logs the seed", func(t *spec.T, w *world) {
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
			`{"action":"open","type":"conversation","target":["b","c"]}`: "Error: open failed: conversation needs exactly one respondent besides the initiator; 3 participants were given",
		} {
			t.Equal(use(t, w, me, "channels", arguments), want)
		}
		t.Contains(use(t, w, me, "channels", `{"action":"open","target":7}`), "Error: arguments of channels", "a name or a list of names")
		t.Contains(use(t, w, me, "channels", `{"action":"open","target":["b",7]}`), "Error: arguments of channels", "holds only texts")
	})
	test(t, "a hub that shows channels to participants only", func(t *spec.T, w *world) {
		me := w.Join("a")
		me.Fail("Channel", fault.New(fault.AccessDenied, "no participant in channel 'c1' is bound to this connection"))
		t.Equal(use(t, w, me, "channels", `{"action":"info","channel_id":"c1"}`), "Error: not a participant of channel 'c1'")
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
	test(t, "active ones are found behind many that have ended", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		w.start(me, says(), agent.Options{})
		listed := func() []string {
			states := []string{}
			for _, entry := range decode(t, use(t, w, me, "channels", `{"action":"list"}`)).([]any) {
				c := entry.(map[string]any)
				states = append(states, c["channel_id"].(string)+" "+c["state"].(string))
			}
			return states
		}
		endMany := func(n int) {
			for range n {
				m := w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b")})
				_, err := me.CloseChannel(w.ctx, m.ID, "enough")
				t.NoError(err)
			}
		}
		endMany(200)
		t.Equal(listed(), []string{})
		first := w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b")})
		t.Equal(listed(), []string{first.ID + " active"})
		endMany(600)
		second := w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b")})
		t.Equal(listed(), []string{first.ID + " active", second.ID + " active"})
	})
	test(t, "it gives up at some point", func(t *spec.T, w *world) {
		link := &endless{agenttestLink: w.Join("a")}
		model := does(calling(turn.Call{ID: "1", Name: "channels", Arguments: `{"action":"list"}`}))
		t.Equal(used(t, w, agent.New(link, model, agent.Options{}), model), "[]")
		t.Equal(link.asked, []int{200, 800, 3200, 12800})
	})
	test(t, "what the link can bring is listed", func(t *spec.T, w *world) {
		w.run("b", says(), agent.Options{})
		me := w.Join("a")
		w.start(me, says(), agent.Options{})
		var opened []*channel.Metadata
		for range 200 {
			opened = append(opened, w.open(t, me, agent.Opening{Type: "conversation", Participants: ids("b")}))
		}
		for _, m := range opened[1:] {
			_, err := me.CloseChannel(w.ctx, m.ID, "enough")
			t.NoError(err)
		}
		link := &narrow{agenttestLink: me, most: 200}
		model := does(calling(turn.Call{ID: "1", Name: "channels", Arguments: `{"action":"list"}`}), agent.Response{},
			calling(turn.Call{ID: "1", Name: "channels", Arguments: `{"action":"list"}`}))
		a := agent.New(link, model, agent.Options{})
		t.Contains(used(t, w, a, model), `"channel_id":"`+opened[0].ID+`"`)
		_, err := me.CloseChannel(w.ctx, opened[0].ID, "enough")
		t.NoError(err)
		t.Equal(used(t, w, a, model), "Error: list failed: too much at once") // not that there is none
	})
}

// endless is a link with more channels that have ended than anyone could list.
type endless struct {
	*agenttestLink
	asked []int
}

func (l *endless) ListChannels(_ context.Context, limit int) ([]*channel.Metadata, error) {
	l.asked = append(l.asked, limit)
	list := make([]*channel.Metadata, limit)
	for i := range list {
		list[i] = &channel.Metadata{State: channel.Closed}
	}
	return list, nil
}

// narrow is a link that cannot bring much at once.
type narrow struct {
	*agenttestLink
	most int
}

func (l *narrow) ListChannels(ctx context.Context, limit int) ([]*channel.Metadata, error) {
	if limit > l.most {
		return nil, errors.New("too much at once")
	}
	return l.agenttestLink.ListChannels(ctx, limit)
}
