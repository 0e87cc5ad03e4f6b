package turn_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	directory := func(name string) (string, bool) {
		id, ok := map[string]string{"mira": "agt-mira", "otto": "agt-otto"}[name]
		return id, ok
	}
	call := func(id, name, arguments string) turn.Call { return turn.Call{ID: id, Name: name, Arguments: arguments} }
	results := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	text := turn.Routing{Kind: "text"}
	static := []string{"escalate", "settle"}
	for statement, test := range map[string]struct {
		round turn.Round
		want  turn.Routing
	}{
		"ag2-channels#77: without events the routing is text": {turn.Round{Body: "hi"}, text},
		"ag2-channels#79: a static call gives tool and reason, no target": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `{"reason":"too hot"}`)}},
			turn.Routing{Kind: "handoff", Tool: "escalate", Reason: "too hot"},
		},
		"ag2-channels#79: without a reason": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `{}`)}},
			turn.Routing{Kind: "handoff", Tool: "escalate"},
		},
		"ag2-channels#79: with a reason that is not text": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `{"reason":5}`)}},
			turn.Routing{Kind: "handoff", Tool: "escalate"},
		},
		"ag2-channels#79: with arguments that are no JSON": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `reason`)}},
			turn.Routing{Kind: "handoff", Tool: "escalate"},
		},
		"ag2-channels#80 seed-002#55: a call that no rule names is text": {turn.Round{Calls: []turn.Call{call("1", "search", `{"reason":"x"}`)}}, text},
		"ag2-channels#81 seed-002#54: of two static calls the first counts": {
			turn.Round{Calls: []turn.Call{call("0", "search", `{}`), call("1", "settle", `{"reason":"a"}`), call("2", "escalate", `{"reason":"b"}`)}},
			turn.Routing{Kind: "handoff", Tool: "settle", Reason: "a"},
		},
		"ag2-channels#82 seed-002#57: a handoff's name becomes an id": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{"reason":"ignored"}`)}, Results: results("1", turn.Handoff{Target: "mira", Reason: "billing"})},
			turn.Routing{Kind: "handoff", Tool: "pick", Reason: "billing", Target: "agt-mira"},
		},
		"ag2-channels#83: unknown name passes through": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{}`)}, Results: results("1", turn.Handoff{Target: "agt-nobody"})},
			turn.Routing{Kind: "handoff", Tool: "pick", Target: "agt-nobody"},
		},
		"ag2-channels#84 seed-002#58: handoff beats static for the same call": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `{"reason":"static"}`)}, Results: results("1", turn.Handoff{Target: "otto", Reason: "dynamic"})},
			turn.Routing{Kind: "handoff", Tool: "escalate", Reason: "dynamic", Target: "agt-otto"},
		},
		"ag2-channels#85: dynamic first/static second gives dynamic": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{}`), call("2", "escalate", `{}`)}, Results: results("1", turn.Handoff{Target: "otto"})},
			turn.Routing{Kind: "handoff", Tool: "pick", Target: "agt-otto"},
		},
		"ag2-channels#86: static first/dynamic second gives static without target": {
			turn.Round{Calls: []turn.Call{call("1", "escalate", `{}`), call("2", "pick", `{}`)}, Results: results("2", turn.Handoff{Target: "otto"})},
			turn.Routing{Kind: "handoff", Tool: "escalate"},
		},
		"ag2-channels#87: plain string result gives static only": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{}`), call("2", "settle", `{}`)}, Results: results("1", "mira", "2", "done")},
			turn.Routing{Kind: "handoff", Tool: "settle"},
		},
		"ag2-channels#88: other structured result ignored": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{}`)}, Results: results("1", map[string]any{"target": "mira", "kind": "handoff"})},
			text,
		},
		"ag2-channels#88: a nil value": {
			turn.Round{Calls: []turn.Call{call("1", "pick", `{}`), call("2", "pick", `{}`)}, Results: results("1", (*turn.Handoff)(nil), "2", (*turn.Finish)(nil))},
			text,
		},
		"ag2-channels#89: orphan result ignored": {turn.Round{Results: results("9", turn.Handoff{Target: "mira"}, "8", turn.Finish{})}, text},
		"ag2-channels#90: finish fields copied": {
			turn.Round{Calls: []turn.Call{call("1", "wrap_up", `{}`)}, Results: results("1", turn.Finish{Summary: "sold out", Reason: "no stock"})},
			turn.Routing{Kind: "finish", Tool: "wrap_up", Reason: "no stock", Summary: "sold out"},
		},
		"ag2-channels#91: finish defaults": {
			turn.Round{Calls: []turn.Call{call("1", "wrap_up", `{}`)}, Results: results("1", &turn.Finish{})},
			turn.Routing{Kind: "finish", Tool: "wrap_up", Reason: "finished"},
		},
		"ag2-channels#92: finish before handoff": {
			turn.Round{Calls: []turn.Call{call("1", "a", `{}`), call("2", "b", `{}`)}, Results: results("1", turn.Finish{}, "2", turn.Handoff{Target: "mira"})},
			turn.Routing{Kind: "finish", Tool: "a", Reason: "finished"},
		},
		"ag2-channels#92: handoff before finish": {
			turn.Round{Calls: []turn.Call{call("1", "a", `{}`), call("2", "b", `{}`)}, Results: results("2", turn.Finish{}, "1", &turn.Handoff{Target: "mira"})},
			turn.Routing{Kind: "handoff", Tool: "a", Target: "agt-mira"},
		},
	} {
		spec.Check(t, statement, func(t *spec.T) {
			t.Equal(turn.Route(static, test.round, directory), test.want)
		})
	}
	t.Run("without a directory", func(t *testing.T) {
		t.Parallel()
		round := turn.Round{Calls: []turn.Call{call("1", "pick", "")}, Results: results("1", turn.Handoff{Target: "mira"})}
		(&spec.T{T: t}).Equal(turn.Route(nil, round, nil), turn.Routing{Kind: "handoff", Tool: "pick", Target: "mira"})
	})
}

func TestBuild(t *testing.T) {
	t.Parallel()
	base := func(eventType, data string) *envelope.Envelope {
		return &envelope.Envelope{Channel: "c", Sender: "s", Type: eventType, Priority: envelope.Normal, Data: []byte(data)}
	}
	spec.Check(t, "ag2-channels#95: the shape of a text", func(t *spec.T) {
		got, err := turn.BuildText("c", "s", "h\"i\n", turn.Address{})
		t.NoError(err)
		t.Equal(got, base("ag2.msg.text", `{"text":"h\"i\n"}`))
		got, err = turn.BuildText("c", "s", "hi", turn.Address{Audience: []string{"a"}, Causation: "e1"})
		t.NoError(err)
		want := base("ag2.msg.text", `{"text":"hi"}`)
		want.Audience, want.Causation = []string{"a"}, "e1"
		t.Equal(got, want)
	})
	spec.Check(t, "seed-000#22: the shape of a text", func(t *spec.T) {
		got, err := turn.BuildText("c", "s", "body", turn.Address{})
		t.NoError(err)
		t.Equal(got.Type, "ag2.msg.text")
		t.Equal(string(got.Data), `{"text":"body"}`)
	})
	spec.Check(t, "ag2-channels#95: packet with handoff", func(t *spec.T) {
		got, err := turn.BuildPacket("c", "s", "b", turn.Packet{Handoff: &turn.Handoff{Target: "x", Reason: "r"}})
		t.NoError(err)
		t.Equal(got, base("ag2.packet", `{"body":"b","routing":{"kind":"handoff","target":"x","reason":"r"}}`))
		got, err = turn.BuildPacket("c", "s", "b", turn.Packet{Handoff: &turn.Handoff{Target: "x"}})
		t.NoError(err)
		t.Equal(got, base("ag2.packet", `{"body":"b","routing":{"kind":"handoff","target":"x"}}`))
	})
	spec.Check(t, "ag2-channels#95: packet with context_set", func(t *spec.T) {
		got, err := turn.BuildPacket("c", "s", "b", turn.Packet{Context: map[string]any{"z": nil, "a": 9007199254740993}, Address: turn.Address{Audience: []string{}, Causation: "e"}})
		t.NoError(err)
		want := base("ag2.packet", `{"body":"b","context":{"a":9007199254740993,"z":null},"context_updates":{"set":{"a":9007199254740993,"z":null},"delete":[]}}`)
		want.Audience, want.Causation = []string{}, "e"
		t.Equal(got, want)
	})
	t.Run("plain packet", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		got, err := turn.BuildPacket("c", "s", "b", turn.Packet{})
		c.NoError(err)
		c.Equal(got, base("ag2.packet", `{"body":"b"}`))
	})
	t.Run("what is not JSON", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		_, err := turn.BuildPacket("c", "s", "b", turn.Packet{Context: map[string]any{"f": func() {}}})
		c.ErrorContains(err, "context is not JSON")
		c.Equal(fault.CodeOf(err), fault.Invalid)
		_, err = turn.BuildText("c", "s", "\xff", turn.Address{})
		c.ErrorContains(err, "UTF-8")
		c.Equal(fault.CodeOf(err), fault.Invalid)
	})
}

func TestRoutingEnvelope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		routing turn.Routing
		want    string
	}{
		"text":          {turn.Routing{Kind: "text"}, `{"kind":"text"}`},
		"static":        {turn.Routing{Kind: "handoff", Tool: "t", Reason: ""}, `{"kind":"handoff","tool":"t","reason":""}`},
		"dynamic":       {turn.Routing{Kind: "handoff", Tool: "t", Reason: "r", Target: "x"}, `{"kind":"handoff","tool":"t","reason":"r","target":"x"}`},
		"finish":        {turn.Routing{Kind: "finish", Tool: "t", Reason: "r", Summary: "s"}, `{"kind":"finish","tool":"t","reason":"r","summary":"s"}`},
		"finish, empty": {turn.Routing{Kind: "finish", Tool: "t", Reason: "r"}, `{"kind":"finish","tool":"t","reason":"r","summary":""}`},
	} {
		spec.Check(t, "seed-000#23: routing, context_updates and body, "+name, func(t *spec.T) {
			t.Parallel()
			got, err := test.routing.Envelope("c", "s", "b")
			t.NoError(err)
			t.Equal(got, &envelope.Envelope{
				Channel: "c", Sender: "s", Type: "ag2.packet", Priority: envelope.Normal,
				Data: []byte(`{"routing":` + test.want + `,"context_updates":{"set":{},"delete":[]},"body":"b"}`),
			})
		})
	}
}

// plain is an adapter with no agent's side of its own.
type plain struct{ channel.Adapter }

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	d := turn.For(plain{})
	m := &channel.Metadata{ID: "c"}
	c.Equal(d.View(m, "a").Name(), "full_transcript")
	c.Equal(d.Tools(m, nil, "a"), []string(nil))
	c.Equal(d.Input(adaptertest.Text("a", "hi")), "hi")
	c.Equal(d.Input(adaptertest.Envelope("a", envelope.TypePacket, `{"body":"b"}`)), "")
	_, shown := d.Render(adaptertest.Envelope("a", envelope.TypePacket, `{"body":"b"}`))
	c.False(shown, "a packet is shown")
	got, err := d.Reply(m, nil, "a", turn.Round{Body: "hi"}, nil)
	c.NoError(err)
	c.Equal(got, &envelope.Envelope{Channel: "c", Sender: "a", Type: envelope.TypeText, Priority: envelope.Normal, Data: []byte(`{"text":"hi"}`)})
	got, err = d.Reply(m, nil, "a", turn.Round{Calls: []turn.Call{{Name: "x"}}}, nil)
	c.NoError(err)
	c.True(got == nil, "an empty body is silent")
	got, err = d.BuildText("c", "a", "hi", turn.Address{})
	c.NoError(err)
	c.Equal(string(got.Data), `{"text":"hi"}`)
	got, err = d.BuildPacket("c", "a", "hi", turn.Packet{})
	c.NoError(err)
	c.Equal(string(got.Data), `{"body":"hi"}`)
}
