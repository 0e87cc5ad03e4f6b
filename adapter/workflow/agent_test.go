package workflow_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

func TestRender(t *testing.T) {
	t.Parallel()
	type shown struct {
		Text  string
		Shown bool
		Input string
	}
	for name, test := range map[string]struct {
		eventType, data string
		want            shown
	}{
		"text":                      {envelope.TypeText, `{"text":"hi"}`, shown{"hi", true, "hi"}},
		"no text":                   {envelope.TypeText, `{}`, shown{"", true, ""}},
		"text of another type":      {envelope.TypeText, `{"text":5}`, shown{"", false, ""}},
		"body":                      {envelope.TypePacket, `{"body":"done"}`, shown{"done", true, "done"}},
		"handoff":                   {envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"pick","reason":"billing"}}`, shown{"[Handed off via pick] billing", true, "[Handed off via pick] billing"}},
		"handoff without reason":    {envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"pick"}}`, shown{"[Handed off via pick]", true, "[Handed off via pick]"}},
		"handoff without tool":      {envelope.TypePacket, `{"routing":{"kind":"handoff","reason":"why"}}`, shown{"[Handed off via ] why", true, "[Handed off via handoff] why"}},
		"handoff and body":          {envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"t","reason":"r"},"body":"b"}`, shown{"[Handed off via t] r\nb", true, "[Handed off via t] r\nb"}},
		"finish":                    {envelope.TypePacket, `{"routing":{"kind":"finish","tool":"t","reason":"r"},"body":"b"}`, shown{"b", true, "b"}},
		"finish without body":       {envelope.TypePacket, `{"routing":{"kind":"finish","tool":"t","reason":"r"}}`, shown{}},
		"text kind":                 {envelope.TypePacket, `{"routing":{"kind":"text"},"body":"b"}`, shown{"b", true, "b"}},
		"nothing":                   {envelope.TypePacket, `{"body":""}`, shown{}},
		"body of another type":      {envelope.TypePacket, `{"body":[1]}`, shown{}},
		"context":                   {envelope.TypeContextSet, `{"set":{"text":"x"}}`, shown{}},
		"custom":                    {"app.custom", `{"text":"x","body":"y"}`, shown{}},
		"reason trimmed at the end": {envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"t","reason":"r  "}}`, shown{"[Handed off via t] r", true, "[Handed off via t] r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := adaptertest.Envelope("a", test.eventType, test.data)
			text, ok := adapter.Render(e)
			(&spec.T{T: t}).Equal(shown{text, ok, adapter.Input(e)}, test.want)
		})
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-000#28: a packet's body is shown as the speaker's message", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		t.NoError(p.Post(adaptertest.Envelope(id("alice"), envelope.TypePacket, `{"routing":{"kind":"text"},"context_updates":{},"body":"Draft attached."}`)))
		project := func(who string) []view.Event {
			return adapter.View(p.Meta, who).Project(view.Input{Log: p.Log, Participant: who, Render: adapter})
		}
		t.Equal(project(id("bob")), []view.Event{{Kind: view.User, Text: "[agt-alice]: Draft attached."}})
		t.Equal(project(id("alice")), []view.Event{{Kind: view.Assistant, Text: "Draft attached."}})
	})
	spec.Check(t, "ag2-channels#109: workflow reads through a named window", func(t *spec.T) {
		p := open(t, ring, "alice", "bob", "carol")
		t.Equal(adapter.View(p.Meta, id("bob")).Name(), "named_windowed_summary")
	})
	spec.Check(t, "seed-002#7: the default window is 2 for each participant", func(t *spec.T) {
		all := []string{"alice", "b", "c", "d", "e"}
		for n := 2; n <= 5; n++ {
			want, err := view.NamedWindowed(2 * n)
			t.NoError(err)
			p := open(t, ring, all[:n]...)
			t.True(adapter.View(p.Meta, id("b")) == view.View(want), "a window of %d for %d", 2*n, n)
		}
	})
	spec.Check(t, "ag2-channels#94: workflow offers no say", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		t.Equal(adapter.Tools(p.Meta, p.State, id("alice")), []string(nil))
		t.Equal(adapter.Tools(p.Meta, p.State, id("bob")), []string(nil))
	})
}

func TestReply(t *testing.T) {
	t.Parallel()
	const updates = `"context_updates":{"set":{},"delete":[]}`
	g := graph("alice", to("bob"), 0, rule(called("escalate"), to("bob")),
		rule(node("all_of", `{"conditions":[`+called("nested")+`]}`), to("bob")))
	ids := func(name string) (string, bool) { return map[string]string{"Bob": id("bob")}[name], name == "Bob" }
	for name, test := range map[string]struct {
		round turn.Round
		want  string // empty: silent
	}{
		"a body":   {turn.Round{Body: "hello"}, `{"routing":{"kind":"text"},` + updates + `,"body":"hello"}`},
		"nothing":  {turn.Round{}, ""},
		"no match": {turn.Round{Calls: []turn.Call{{ID: "1", Name: "search"}}}, ""},
		"a static handoff without a body": {
			turn.Round{Calls: []turn.Call{{ID: "1", Name: "escalate", Arguments: `{"reason":"too hot"}`}}},
			`{"routing":{"kind":"handoff","tool":"escalate","reason":"too hot"},` + updates + `,"body":""}`,
		},
		"a nested static tool": {
			turn.Round{Calls: []turn.Call{{ID: "1", Name: "nested"}}},
			`{"routing":{"kind":"handoff","tool":"nested","reason":""},` + updates + `,"body":""}`,
		},
		"a dynamic handoff": {
			turn.Round{Body: "b", Calls: []turn.Call{{ID: "1", Name: "pick"}}, Results: map[string]any{"1": turn.Handoff{Target: "Bob", Reason: "r"}}},
			`{"routing":{"kind":"handoff","tool":"pick","reason":"r","target":"agt-bob"},` + updates + `,"body":"b"}`,
		},
		"a finish": {
			turn.Round{Calls: []turn.Call{{ID: "1", Name: "stop"}}, Results: map[string]any{"1": turn.Finish{Summary: "s"}}},
			`{"routing":{"kind":"finish","tool":"stop","reason":"finished","summary":"s"},` + updates + `,"body":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			p := open(c, g, "alice", "bob")
			got, err := adapter.Reply(p.Meta, p.State, id("alice"), test.round, ids)
			c.NoError(err)
			if test.want == "" {
				c.True(got == nil, "the round is silent")
				return
			}
			c.Equal(got, &envelope.Envelope{
				Channel: "channel-1", Sender: id("alice"), Type: envelope.TypePacket, Priority: envelope.Normal, Data: []byte(test.want),
			})
			c.NoError(p.Post(got))
		})
	}
	spec.Check(t, "ag2-channels#78: without a graph the routing is text", func(t *spec.T) {
		p := open(t, g, "alice", "bob")
		calls := []turn.Call{{ID: "1", Name: "escalate"}}
		got, err := adapter.Reply(p.Meta, nil, id("alice"), turn.Round{Body: "b", Calls: calls}, ids)
		t.NoError(err)
		t.Equal(string(got.Data), `{"routing":{"kind":"text"},`+updates+`,"body":"b"}`)
	})
	spec.Check(t, "seed-000#69: a packet's context_set is folded", func(t *spec.T) {
		p := open(t, g, "alice", "bob")
		e, err := adapter.BuildPacket(p.Meta.ID, id("alice"), "b", turn.Packet{Context: map[string]any{"k": []int{1}}})
		t.NoError(err)
		t.NoError(p.Post(e))
		t.Equal(vars(t, p), `{"k":[1]}`)
	})
	spec.Check(t, "seed-000#68: a packet's handoff moves the graph to its target", func(t *spec.T) {
		p := open(t, graph("alice", end("x"), 0), "alice", "bob", "carol")
		e, err := adapter.BuildPacket(p.Meta.ID, id("alice"), "b", turn.Packet{Handoff: &turn.Handoff{Target: id("carol")}})
		t.NoError(err)
		t.NoError(p.Post(e))
		t.Equal(standing(p), "carol")
	})
	spec.Check(t, "seed-000#67: a text built by hand is a turn", func(t *spec.T) {
		p := open(t, ring, "alice", "bob")
		e, err := adapter.BuildText(p.Meta.ID, id("alice"), "hi", turn.Address{})
		t.NoError(err)
		t.NoError(p.Post(e))
		t.Equal(standing(p), "bob")
		t.Equal(state(p).Facts.Turns, 1)
	})
}
