package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	transitions "github.com/parley-hub/parley/graph"
)

func TestBoundsOfWhatComesIn(t *testing.T) {
	t.Parallel()
	long := "1e" + strings.Repeat("9", 900_000)
	refused := func(t *testing.T, err error, fragment string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), fragment) {
			t.Fatalf("got %.200v, want %q", err, fragment)
		}
	}
	meta := func(knobs string) *channel.Metadata { return adaptertest.Metadata(adapter, knobs, "a", "b") }
	threshold := `{"initial_speaker":"a","transitions":[{"when":{"name":"context_threshold","args":{"key":"n","threshold":%s}},"then":{"name":"agent","args":{"agent_id":"b"}}}]}`

	t.Run("a graph", func(t *testing.T) {
		t.Parallel()
		m := meta(`{"graph":` + fmt.Sprintf(threshold, long) + `}`)
		refused(t, adapter.ValidateCreate(m), "at most 1024")
		if _, err := adapter.Initial(m); err != nil {
			t.Fatalf("a channel that is older than the bound must load: %v", err)
		}
	})
	t.Run("first variables", func(t *testing.T) {
		t.Parallel()
		m := meta(`{"graph":` + fmt.Sprintf(threshold, "1") + `,"context_vars":{"n":` + long + `}}`)
		refused(t, adapter.ValidateCreate(m), "at most 1024")
		s, err := adapter.Initial(m)
		if err != nil {
			t.Fatalf("a channel that is older than the bound must load: %v", err)
		}
		after := adapter.Fold(s, &envelope.Envelope{ID: "1", Sender: "a", Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)})
		if turn, ok := adapter.Expected(m, after); ok {
			t.Fatalf("the rule matched and expects %s; it must not match", turn.Agent)
		}
	})
	t.Run("a context set and a packet", func(t *testing.T) {
		t.Parallel()
		m := meta(`{"graph":` + fmt.Sprintf(threshold, "1") + `}`)
		s, err := adapter.Initial(m)
		if err != nil {
			t.Fatal(err)
		}
		post := func(kind, data string) error {
			return adapter.ValidateSend(m, s, &envelope.Envelope{Sender: "a", Type: kind, Data: []byte(data)})
		}
		refused(t, post(envelope.TypeContextSet, `{"set":{"n":[`+long+`]}}`), "context variable 'n' holds a number of 900002 characters; at most 1024")
		refused(t, post(envelope.TypePacket, `{"context_updates":{"set":{"n":`+long+`}}}`), "at most 1024")
		many := make([]string, transitions.MaxVars+1)
		for i := range many {
			many[i] = fmt.Sprintf(`"%d":0`, i)
		}
		refused(t, post(envelope.TypeContextSet, `{"set":{`+strings.Join(many, ",")+`}}`), "at most 16384 context variables")
		if err := post(envelope.TypeContextSet, `{"set":{`+strings.Join(many[1:], ",")+`}}`); err != nil {
			t.Fatal(err)
		}
	})
}

// A lower setting refuses only new input; the fold does not depend on it.
func TestBoundsAreConfigured(t *testing.T) {
	t.Parallel()
	small := workflow.New(workflow.Options{Bounds: transitions.Bounds{Conditions: 2, Values: 2, Vars: 2}})
	rule := func(when string) string {
		return `{"when":` + when + `,"then":{"name":"agent","args":{"agent_id":"b"}}}`
	}
	always, in := rule(`{"name":"always","args":{}}`), `{"name":"context_in","args":{"key":"k","values":[%s]}}`
	for name, row := range map[string]struct{ rules, vars, want string }{
		"two conditions":   {always + "," + always, `{}`, ""},
		"three conditions": {always + "," + always + "," + always, `{}`, "3 conditions, nested ones included; at most 2 (limits.graph_conditions)"},
		"two values":       {rule(fmt.Sprintf(in, "1,2")), `{}`, ""},
		"three values":     {rule(fmt.Sprintf(in, "1,2,3")), `{}`, "context_in lists 3 values; at most 2 (limits.graph_values)"},
		"two variables":    {always, `{"a":1,"b":2}`, ""},
		"three variables":  {always, `{"a":1,"b":2,"c":3}`, "3 context variables; at most 2 (limits.context_vars)"},
	} {
		m := adaptertest.Metadata(small, `{"graph":{"initial_speaker":"a","transitions":[`+row.rules+`]},"context_vars":`+row.vars+`}`, "a", "b")
		switch err := small.ValidateCreate(m); {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
		if err := adapter.ValidateCreate(m); err != nil {
			t.Errorf("%s without the setting: %v", name, err)
		}
		said := &envelope.Envelope{ID: "1", Sender: "a", Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)}
		var states [2][]byte
		for i, a := range []workflow.Adapter{small, adapter} {
			s, err := a.Initial(m)
			if err != nil {
				t.Fatalf("%s: a channel that is older than the setting must load: %v", name, err)
			}
			if states[i], err = a.Codec().Encode(a.Fold(s, said)); err != nil {
				t.Fatal(err)
			}
		}
		if string(states[0]) != string(states[1]) {
			t.Errorf("%s: the setting changes the fold", name)
		}
	}
	m := adaptertest.Metadata(small, `{"graph":{"initial_speaker":"a","transitions":[`+always+`]}}`, "a", "b")
	s, err := small.Initial(m)
	if err != nil {
		t.Fatal(err)
	}
	set := &envelope.Envelope{Sender: "a", Type: envelope.TypeContextSet, Data: []byte(`{"set":{"a":1,"b":2,"c":3}}`)}
	if err := small.ValidateSend(m, s, set); err == nil || !strings.Contains(err.Error(), "limits.context_vars") {
		t.Errorf("three variables at once: %v", err)
	}
}
