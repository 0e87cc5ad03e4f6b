package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
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
