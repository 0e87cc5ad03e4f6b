package graph_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

// tb is what both *testing.T and *rapid.T offer.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func load(t tb, raw string) *graph.Graph {
	t.Helper()
	g, err := graph.Load([]byte(raw))
	if err != nil {
		t.Fatalf("load %s: %v", raw, err)
	}
	return g
}

func build(t tb, d graph.Definition) *graph.Graph {
	t.Helper()
	g, err := graph.New(d)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return g
}

func object(t tb, g *graph.Graph) string {
	t.Helper()
	raw, err := g.MarshalJSON()
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	return string(raw)
}

func vars(t tb, raw string) graph.Vars {
	t.Helper()
	v, err := graph.ParseVars([]byte(raw))
	if err != nil {
		t.Fatalf("vars %s: %v", raw, err)
	}
	return v
}

func text(sender string) *envelope.Envelope {
	return &envelope.Envelope{ID: "e-" + sender, Sender: sender, Type: envelope.TypeText, Data: []byte(`{"text":"hi"}`)}
}

func packet(sender, data string) *envelope.Envelope {
	return &envelope.Envelope{ID: "p-" + sender, Sender: sender, Type: envelope.TypePacket, Data: []byte(data)}
}

func static(sender, tool string) *envelope.Envelope {
	return packet(sender, fmt.Sprintf(`{"routing":{"kind":"handoff","tool":%q,"reason":""},"body":""}`, tool))
}

func contextSet(sender, data string) *envelope.Envelope {
	return &envelope.Envelope{ID: "c-" + sender, Sender: sender, Type: envelope.TypeContextSet, Data: []byte(data)}
}

func raw(s string) jsontext.Value { return jsontext.Value(s) }

func equal(t *testing.T, got, want any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("got differs from want (-want +got):\n%s", diff)
	}
}

// evaluate evaluates one condition on an envelope, as a graph would.
func evaluate(c graph.Condition, f graph.Facts, e *envelope.Envelope) bool {
	return c.Evaluate(&f, graph.NewTurn(e))
}

func resolve(target graph.Target, f graph.Facts, e *envelope.Envelope) graph.Decision {
	return target.Resolve(&f, graph.NewTurn(e))
}

// rules returns a definition with the given transitions and a default that says so.
func rules(initial string, list ...graph.Transition) graph.Definition {
	return graph.Definition{
		InitialSpeaker: initial,
		Transitions:    list,
		Default:        graph.Terminate{Reason: "fell_off"},
	}
}

func rule(when graph.Condition, then graph.Target) graph.Transition {
	return graph.Transition{When: when, Then: then}
}

func from(agent string) graph.Condition { return graph.FromSpeaker{AgentID: agent} }

func to(agent string) graph.Target { return graph.Agent{AgentID: agent} }

func is(key, value string) graph.Condition {
	return graph.ContextEquals{Key: key, Value: raw(value)}
}

func end(reason string) graph.Target { return graph.Terminate{Reason: reason} }
