package work_test

import (
	"fmt"
	"reflect"
	"strings"
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

// Rows are in data folders: those of earlier versions hold what the key says too, zeros,
// and the beginnings of long texts.
func TestParseRow(t *testing.T) {
	t.Parallel()
	const key = "activity/dock/7fffffffffffffee/thread_tide"
	long := strings.Repeat("tide ", 12) + "high" // 64 bytes
	for name, test := range map[string]struct {
		value string
		want  work.Row
	}{
		"now": {
			`{"root":"m1","opener":"a.s1","opened_at":16,"preview":"ebb","messages":3,"speakers":1,"open_work":1,"long":1}`,
			work.Row{
				Channel: "dock", ID: "thread_tide", LastAt: 17, Root: "m1", Opener: "a.s1", OpenedAt: 16, Preview: "ebb",
				Messages: 3, Speakers: 1, OpenWork: 1, Long: work.Title,
			},
		},
		"before": {
			`{"channel":"dock","id":"thread_tide","root":"m1","title":"` + long + `","opener":"a.s1","opened_at":16,"last_at":17,"preview":"ebb",` +
				`"messages":3,"speakers":1,"open_work":0,"public":[2,0,0,0],"last_public_at":16,"last_public_id":"m1","public_preview":"` + long + `"}`,
			work.Row{
				Channel: "dock", ID: "thread_tide", LastAt: 17, Root: "m1", Opener: "a.s1", OpenedAt: 16, Preview: "ebb",
				Messages: 3, Speakers: 1, Public: []int{2, 0, 0, 0}, LastPublicAt: 16, LastPublicID: "m1", Long: work.Title | work.PublicPreview,
			},
		},
	} {
		c := &spec.T{T: t}
		row, err := work.ParseRow(key, []byte(test.value))
		c.NoError(err)
		c.True(reflect.DeepEqual(row, test.want), "%s: got %+v, want %+v", name, row, test.want)
	}
	for _, bad := range [][2]string{{"activity/dock/thread_tide", "{}"}, {"activity/dock/tide/thread_tide", "{}"}, {key, "[]"}} {
		if _, err := work.ParseRow(bad[0], []byte(bad[1])); err == nil {
			t.Errorf("the row %q is read", bad)
		}
	}
}
