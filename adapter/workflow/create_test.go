package workflow_test

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
)

func TestManifest(t *testing.T) {
	t.Parallel()
	manifest := adapter.Manifest()
	got, err := manifest.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"workflow","version":1,"participants":{"min":2,"max":null,"roles":[]},` +
		`"knobs_schema":{"graph":"TransitionGraph"},"default_view_policy":"named_windowed_summary","expectations":[` +
		`{"name":"turn_within","on_violation":"warn","params":{"seconds":120},"applies_to":null},` +
		`{"name":"turn_within","on_violation":"auto_close","params":{"seconds":600},"applies_to":null}]}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	spec.Check(t, "seed-002#8: turn_within warns after 120 seconds", func(t *spec.T) {
		t.Equal(manifest.Expectations[0], channel.Expectation{Name: "turn_within", OnViolation: "warn", Params: []byte(`{"seconds":120}`)})
	})
	spec.Check(t, "seed-002#9: turn_within closes after 600 seconds", func(t *spec.T) {
		t.Equal(manifest.Expectations[1], channel.Expectation{Name: "turn_within", OnViolation: "auto_close", Params: []byte(`{"seconds":600}`)})
	})
}

// refused requires that both hooks refuse a channel; a restart calls the second
// one.
func refused(t *spec.T, m *channel.Metadata, fragments ...string) {
	t.Helper()
	err := adapter.ValidateCreate(m)
	t.ErrorContains(err, fragments...)
	t.Equal(fault.CodeOf(err), fault.Protocol)
}

func TestCreate(t *testing.T) {
	t.Parallel()
	ring := graph("a", node("round_robin", "{}"), 0)
	spec.Check(t, "seed-002#1: fewer than 2 participants are refused", func(t *spec.T) {
		refused(t, adaptertest.Metadata(adapter, knobs(ring), ids("a")...), "at least 2 participants", "not 1")
		// The number of participants is checked before the graph.
		refused(t, adaptertest.Metadata(adapter, "", ids("a")...), "at least 2 participants")
	})
	crowd := []string{"b", "a"}
	for i := len(crowd); i < 300; i++ {
		crowd = append(crowd, fmt.Sprint("p", i))
	}
	for _, n := range []int{2, 3, len(crowd)} {
		spec.Check(t, "seed-002#2: 2, 3 and more participants are accepted", func(t *spec.T) {
			names := crowd[:n]
			p := open(t, graph("b", node("round_robin", "{}"), 0), names...)
			for i := range names {
				t.NoError(p.Say(id(names[i])))
				t.Equal(standing(p), names[(i+1)%len(names)])
			}
		})
	}
	for name, knobs := range map[string]string{
		"absent": "", "no graph": `{"context_vars":{}}`, "null": `{"graph":null}`,
		"text": `{"graph":"{\"initial_speaker\":\"agt-a\"}"}`, "list": `{"graph":[]}`,
	} {
		spec.Check(t, "ag2-channels#50 seed-002#12: the graph knob is refused, "+name, func(t *spec.T) {
			refused(t, adaptertest.Metadata(adapter, knobs, ids("a", "b")...), "graph", "JSON object")
		})
	}
	spec.Check(t, "ag2-channels#51 seed-002#79: initial_speaker must be a participant id", func(t *spec.T) {
		for _, initial := range []string{"carol", ""} {
			refused(t, adaptertest.Metadata(adapter, knobs(graph(initial, node("round_robin", "{}"), 0)), ids("a", "b")...),
				"initial_speaker 'agt-"+initial+"'", "not in participants")
		}
	})
	spec.Check(t, "seed-002#51: an unregistered target or condition", func(t *spec.T) {
		for fragment, g := range map[string]string{
			"no transition target registered for 'nobody'":   graph("a", node("nobody", "{}"), 0),
			"no transition condition registered for 'whims'": graph("a", end("x"), 0, rule(node("whims", "{}"), end("y"))),
		} {
			refused(t, adaptertest.Metadata(adapter, knobs(g), ids("a", "b")...), "invalid workflow graph", fragment)
		}
	})
	t.Run("structural faults", func(t *testing.T) {
		t.Parallel()
		for fragment, g := range map[string]string{
			"initial_speaker": `{"transitions":[]}`,
			"agent_id":        graph("a", node("agent", "{}"), 0),
			"does not take":   graph("a", node("stay", `{"x":1}`), 0),
		} {
			refused(&spec.T{T: t}, adaptertest.Metadata(adapter, knobs(g), ids("a", "b")...), "invalid workflow graph", fragment)
		}
	})
	t.Run("context variables that are no object", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for _, bad := range []string{`[]`, `"x"`, `5`, `null`} {
			m := adaptertest.Metadata(adapter, `{"graph":{"initial_speaker":"agt-a"},"context_vars":`+bad+`}`, ids("a", "b")...)
			refused(c, m, "context_vars")
			_, err := adapter.Initial(m)
			c.ErrorContains(err, "context_vars")
			c.Equal(fault.CodeOf(err), fault.Protocol)
		}
	})
	t.Run("supervisors that are no participants", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for fragment, list := range map[string]string{"a list of agent ids": `"agt-a"`, "'agt-x' is not in participants": `["agt-a","agt-x"]`} {
			m := adaptertest.Metadata(adapter, `{"graph":{"initial_speaker":"agt-a"},"supervisors":`+list+`}`, ids("a", "b")...)
			refused(c, m, "supervisor", fragment)
		}
	})
	t.Run("whom else the graph names is not checked", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, graph("a", to("nobody"), 0, rule(from("ghost"), to("phantom"))), "a", "b")
		play(c, p, "a T -> nobody")
		c.ErrorContains(p.Say(id("b")), "expects 'agt-nobody' to speak")
	})
}

func TestInitialState(t *testing.T) {
	t.Parallel()
	const g = `{ "initial_speaker":"agt-ines", "note":1.50, "transitions":[] }`
	knobs := `{"graph":` + g + `,"context_vars":{"n":9007199254740993,"deep":{"b":[1.0,null]}}}`
	spec.Check(t, "seed-002#90 seed-002#91: the state has its fields, empty before the first turn", func(t *spec.T) {
		p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs, ids("ines", "otto", "mira")...))
		t.NoError(err)
		t.Equal(p.JSON(), `{"participant_order":["agt-ines","agt-otto","agt-mira"],"expected_next_speaker":"agt-ines",`+
			`"last_speaker_id":null,"last_envelope_id":null,"turn_count":0,"pending_close_reason":"",`+
			`"creator_id":"agt-ines","graph_data":{"initial_speaker":"agt-ines","note":1.50,"transitions":[]},`+
			`"context_vars":{"deep":{"b":[1.0,null]},"n":9007199254740993}}`)
	})
	spec.Check(t, "seed-002#90: each field after a turn that ended it", func(t *spec.T) {
		p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, `{"graph":`+g+`}`, ids("otto", "ines")...))
		t.NoError(err)
		play(t, p, "ines T -> closed after_work")
		t.Equal(p.JSON(), `{"participant_order":["agt-otto","agt-ines"],"expected_next_speaker":null,`+
			`"last_speaker_id":"agt-ines","last_envelope_id":"`+p.Log[0].ID+`","turn_count":1,"pending_close_reason":"after_work",`+
			`"creator_id":"agt-otto","graph_data":{"initial_speaker":"agt-ines","note":1.50,"transitions":[]},"context_vars":{}}`)
	})
	spec.Check(t, "ag2-channels#76: initial values from the knob", func(t *spec.T) {
		p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs, ids("ines", "otto")...))
		t.NoError(err)
		t.Equal(vars(t, p), `{"deep":{"b":[1.0,null]},"n":9007199254740993}`)
	})
	spec.Check(t, "seed-002#23: the first speaker is the graph's, not the creator", func(t *spec.T) {
		p := open(t, graph("b", end("x"), 0), "a", "b")
		turn, ok := adapter.Expected(p.Meta, p.State)
		t.Equal(turn, channel.Turn{Agent: id("b")})
		t.True(ok, "someone is expected")
		t.ErrorContains(p.Say(id("a")), "expects 'agt-b' to speak")
		t.NoError(p.Say(id("b")))
	})
	t.Run("the zero adapter works, with the default registry", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		s, err := workflow.Adapter{}.Initial(adaptertest.Metadata(adapter, knobs, ids("ines", "otto")...))
		c.NoError(err)
		c.Equal(s.(*workflow.State).Facts.Expected, "agt-ines")
	})
}
