package work_test

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

func TestStates(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for s := work.Submitted; s <= work.Canceled; s++ {
		again, ok := work.ParseState(s.String())
		c.True(ok && again == s, "%s reads as %s", s, again)
		c.Equal(s.Terminal(), s >= work.Completed)
	}
	for _, bad := range []string{"", "done", "Working"} {
		_, ok := work.ParseState(bad)
		c.False(ok, "%q is a state", bad)
	}
	c.Equal(work.State(9).String(), "state(9)")
	c.Equal(work.State(-1).String(), "state(-1)")
}

func TestRead(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	m, ok := work.Read(&envelope.Envelope{
		Type: "agh.capability", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{"capability":{"outcome":" o "}}`),
		Ext: []byte(`{"from":"a","to":null,"work_id":"w","ts":12.0,"x":[1]}`),
	})
	c.True(ok, "it is read")
	c.Equal(m, work.Message{Type: "agh.capability", ID: "m", From: "a", Work: "w", TS: 12, Preview: "o"})
	for ts, want := range map[string]int64{"5": 5, "-5": 0, "1e3": 1000, "1e999": 0, `"5"`: 0, "null": 0} {
		m, _ := work.Read(&envelope.Envelope{Type: "agh.say", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{}`), Ext: []byte(`{"from":"a","ts":` + ts + `}`)})
		c.True(m.TS == want, "%s is %d", ts, m.TS)
	}
	for _, bad := range []*envelope.Envelope{
		{Type: "agh.greet", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{}`), Ext: []byte(`{"from":"a"}`)},
		{Type: "agh.say", Data: []byte(`{}`), Ext: []byte(`{"from":"a"}`)},
		{Type: "agh.say", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{`), Ext: []byte(`{"from":"a"}`)},
		{Type: "agh.say", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{}`), Ext: []byte(`{}`)},
		{Type: "agh.say", Origin: envelope.Origin{Dialect: "agh", ID: "m"}, Data: []byte(`{}`)},
	} {
		_, ok := work.Read(bad)
		c.False(ok, "%+v is read", bad)
	}
}

// A message costs the same whether a conversation has little work or much.
// Allocations are counted in the whole process, so nothing else runs beside.
func TestAMessageCostsLittle(t *testing.T) { //nolint:paralleltest // see above
	full := &work.Conversation{}
	for i := range work.DefaultMaxWork {
		full = full.Fold(&work.Message{Type: work.TypeSay, ID: fmt.Sprint(i), From: "a", To: "b", Work: fmt.Sprint("work_", i), TS: int64(i)})
	}
	if full.OpenWork != work.DefaultMaxWork {
		t.Fatalf("%d pieces of work are open", full.OpenWork)
	}
	m := &work.Message{Type: work.TypeTrace, ID: "m", From: "b", To: "a", Work: "work_5000", State: "completed", TS: 5}
	if allocs := testing.AllocsPerRun(100, func() { full.Fold(m) }); allocs > 100 {
		t.Errorf("a message makes %.0f allocations", allocs)
	}
	if full.OpenWork != work.DefaultMaxWork {
		t.Error("a fold changed the state it was given")
	}
}
