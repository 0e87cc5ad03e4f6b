package direct_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var adapter = direct.New(direct.Options{})

const place = `{"workspace_id":"ws","channel":"dock","direct_id":"direct_1","peers":["a.s1","b.s1"]}`

func metadata() *channel.Metadata { return adaptertest.Metadata(adapter, place, "ada", "bob") }

func open(t *spec.T) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, metadata())
	t.NoError(err)
	return p
}

var agents = map[string]string{"a.s1": "ada", "b.s1": "bob", "c.s1": "cyd", "": ""}

func message(kind, id, from, to, workID string, ts int64, body string) *envelope.Envelope {
	ext := fmt.Sprintf(`{"from":%q,"ts":%d`, from, ts)
	if to != "" {
		ext += fmt.Sprintf(`,"to":%q`, to)
	}
	if workID != "" {
		ext += fmt.Sprintf(`,"work_id":%q`, workID)
	}
	e := adaptertest.Envelope(agents[from], "agh."+kind, body)
	e.Key, e.To, e.Ext = from+"/"+id, agents[to], []byte(ext+"}")
	e.Origin = envelope.Origin{Dialect: "agh", ID: id}
	return e
}

func say(id, from, to, workID string, ts int64) *envelope.Envelope {
	return message("say", id, from, to, workID, ts, `{"text":"`+id+`"}`)
}

func draw(r *rapid.T) *envelope.Envelope {
	peers := []string{"a.s1", "b.s1", "a.s1", "b.s1", "c.s1", ""}
	return message(rapid.SampledFrom([]string{"say", "capability", "receipt", "trace"}).Draw(r, "kind"), rapid.StringMatching(`m[0-9]`).Draw(r, "id"),
		rapid.SampledFrom(peers).Draw(r, "from"), rapid.SampledFrom(peers).Draw(r, "to"), rapid.SampledFrom([]string{"", "work_1"}).Draw(r, "work"),
		rapid.Int64Range(0, 40).Draw(r, "ts"), rapid.SampledFrom([]string{`{"text":"x"}`, `{"state":"completed"}`, `{"status":"rejected"}`, `[]`}).Draw(r, "body"))
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.ExerciseFolds(t, adaptertest.Folder{Adapter: adapter, Metadata: metadata, Draw: draw})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-001#74 seed-001#133: two peers, and nobody else", func(t *spec.T) {
		p := open(t)
		for _, e := range []*envelope.Envelope{say("m1", "a.s1", "b.s1", "", 10), say("m2", "b.s1", "a.s1", "", 11)} {
			t.NoError(p.Post(e))
			other := map[string]string{"ada": "bob", "bob": "ada"}[e.Sender]
			t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string{other})
			for agent, want := range map[string]bool{"ada": true, "bob": true, "cyd": false} {
				t.Equal(adapter.Visible(p.Meta, p.State, p.Meta.Members(), e, agent), want)
			}
		}
	})
	t.Run("who has a peer's name now speaks, and only the dialect says who that is", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		e := say("m1", "a.s1", "b.s1", "", 10)
		e.Sender = "cyd"
		c.True(adapter.Admits(p.Meta, p.State, p.Meta.Members(), "cyd"), "the hub turns it away")
		c.NoError(adapter.ValidateSend(p.Meta, p.State, e))
		e.Origin, e.Ext = envelope.Origin{Dialect: "messages"}, []byte(`{"id":"m1","from":"a.s1","to":"b.s1","ts":10}`)
		c.Equal(fault.CodeOf(adapter.ValidateSend(p.Meta, p.State, e)), fault.AccessDenied)
		e.Sender = "ada"
		c.NoError(adapter.ValidateSend(p.Meta, p.State, e))
	})
	spec.Check(t, "agh-network#57: dropped before the lifecycle, binding no work", func(t *spec.T) {
		p := open(t)
		for _, e := range []*envelope.Envelope{
			say("m1", "c.s1", "a.s1", "work_1", 10), say("m1", "a.s1", "c.s1", "work_1", 10), say("m1", "c.s1", "", "work_1", 10), say("m1", "a.s1", "a.s1", "work_1", 10),
		} {
			before := p.State
			t.Equal(fault.CodeOf(p.Post(e)), fault.AccessDenied)
			t.True(p.State == before, "a message from outside changed the room")
			t.True(adapter.Fold(p.State, e) == before, "a fold takes a message from outside")
		}
		t.NoError(p.Post(say("m1", "a.s1", "b.s1", "work_1", 10)))
	})
	spec.Check(t, "agh-network#58: said to the room, told to the other", func(t *spec.T) {
		p := open(t)
		e := say("m1", "a.s1", "", "", 10)
		t.NoError(p.Post(e))
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string{"bob"})
		e = message("trace", "m2", "a.s1", "", "work_1", 10, `{"state":"working"}`)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string(nil))
	})
	spec.Check(t, "agh-network#133: a direct room has no public speakers", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m1", "a.s1", "", "", 10)))
		for _, entry := range adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Index {
			t.False(len(entry.Key) > 8 && entry.Key[:8] == "speaker/", "%s is public", entry.Key)
		}
	})
	t.Run("work", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		c.NoError(p.Post(say("m1", "a.s1", "b.s1", "work_1", 10)))
		c.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Claims, []string{"work/work_1"})
		c.NoError(p.Post(message("trace", "m2", "b.s1", "a.s1", "work_1", 12, `{"state":"completed"}`)))
		err := p.Post(say("m3", "a.s1", "b.s1", "work_1", 13))
		c.Equal(fault.ReasonOf(err), fault.WorkClosed)
		w, _ := p.State.(*direct.State).Works.Get("work_1")
		c.Equal(w.TerminalAt, int64(12))
	})
	t.Run("index", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		c.NoError(p.Post(say("m1", "a.s1", "b.s1", "", 16)))
		c.NoError(p.Post(say("m2", "b.s1", "a.s1", "", 17)))
		e := adapter.OnAccepted(p.Meta, p.State, p.Log[1])
		var put []string
		for _, entry := range e.Index {
			put = append(put, entry.Key)
		}
		c.Equal(put, []string{
			"activity/dock/7fffffffffffffee/direct_1", "name/dock/direct_1", "peer/dock/a.s1/7fffffffffffffee/direct_1", "peer/dock/b.s1/7fffffffffffffee/direct_1",
			"message/dock/direct_1/0000000000000011/m2\x01b.s1", "id/m2\x01b.s1", "told/dock/a.s1/00000000000000000000000000000002",
		})
		c.Equal(e.Unindex, []string{
			"activity/dock/7fffffffffffffef/direct_1", "peer/dock/a.s1/7fffffffffffffef/direct_1", "peer/dock/b.s1/7fffffffffffffef/direct_1",
		})
		c.Contains(string(e.Index[0].Value), `"peers":["a.s1","b.s1"]`, `"messages":2`)
	})
	spec.Check(t, "agh-network#127: a resolved room has no messages, and resolving again changes nothing", func(t *spec.T) {
		resolve := func() *envelope.Envelope {
			e := adaptertest.Envelope("ada", direct.TypeResolve, "{}")
			e.Origin.Dialect = "agh"
			return e
		}
		p := open(t)
		t.NoError(p.Post(resolve()))
		at := p.Log[0].CreatedAt.Unix()
		state := p.State.(*direct.State)
		t.Equal([]int64{state.OpenedAt, state.Last.TS, int64(state.Messages)}, []int64{at, at, 0})
		e := adapter.OnAccepted(p.Meta, p.State, p.Log[0])
		row, err := work.ParseRow(e.Index[0].Key, e.Index[0].Value)
		t.NoError(err)
		t.Equal([]int64{row.OpenedAt, row.LastAt, int64(row.Messages)}, []int64{at, at, 0})
		t.Equal(fault.CodeOf(p.Post(resolve())), fault.Conflict)
		stranger := resolve()
		stranger.Origin.Dialect = ""
		t.Equal(fault.CodeOf(p.Post(stranger)), fault.Protocol)
		t.Equal(fault.ReasonOf(p.Post(message("trace", "m0", "a.s1", "b.s1", "work_1", 1, `{"state":"working"}`))), fault.WorkUnknown)
		t.NoError(p.Post(message("say", "m1", "a.s1", "b.s1", "", at+5, `{"text":"first"}`)))
		state = p.State.(*direct.State)
		t.Equal([]int64{state.OpenedAt, state.Last.TS, int64(state.Messages)}, []int64{at, at + 5, 1})
		t.Equal([]string{state.Root, state.Preview}, []string{"m1", "first"})
		e = adapter.OnAccepted(p.Meta, p.State, p.Log[1])
		t.Equal(len(e.Unindex), 3)
		t.Equal(fault.CodeOf(p.Post(resolve())), fault.Conflict)
	})
	t.Run("what cannot be opened", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for _, test := range []struct {
			knobs        string
			participants []string
		}{
			{`{"workspace_id":"ws","channel":"dock","peers":["a","b"]}`, []string{"ada", "bob"}},
			{`{"workspace_id":"ws","channel":"dock","direct_id":"d","peers":["a"]}`, []string{"ada", "bob"}},
			{`{"workspace_id":"ws","channel":"dock","direct_id":"d","peers":["b","a"]}`, []string{"ada", "bob"}},
			{`{"workspace_id":"ws","channel":"dock","direct_id":"d","peers":["a","a"]}`, []string{"ada", "bob"}},
			{`{"channel":"dock","direct_id":"d","peers":["a","b"]}`, []string{"ada", "bob"}},
			{place, nil},
			{place, []string{"ada", "bob", "cyd"}},
		} {
			_, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, test.knobs, test.participants...))
			c.True(fault.CodeOf(err) == fault.Invalid, "%+v: %v", test, err)
		}
		c.Equal(adapter.Opening(), channel.AtOnce)
		c.Equal(adapter.Dialect(), "agh")
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"peers":["a","b"],"conversation":{"workspace_id":"w"}}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
