package thread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#126: title and root come from the first message, and a late message does not lower the last activity", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(message("say", "m5", "a.s1", "", "", 100, `{"text":" Tide table "}`)))
		t.NoError(p.Post(say("m6", "b.s1", "c.s1", "work_1", 150)))
		t.NoError(p.Post(say("m7", "a.s1", "", "", 120))) // late
		c := p.State.(*work.Conversation)
		t.Equal([]any{c.Root, c.Title, c.Opener, c.OpenedAt}, []any{"m5", "Tide table", "a.s1", int64(100)})
		t.Equal([]any{c.Messages, c.Speakers.Len(), c.OpenWork}, []any{3, 2, 1})
		t.Equal(c.Last, work.Mark{TS: 150, ID: "m6"})
		t.Equal(c.Preview, "m6")
		// At one time the greater id is the newer one.
		t.NoError(p.Post(say("m9", "a.s1", "", "", 150)))
		t.NoError(p.Post(say("m8", "a.s1", "", "", 150)))
		t.Equal(p.State.(*work.Conversation).Last.ID, "m9")
	})
	spec.Check(t, "agh-network#133: directed messages are not public", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m1", "a.s1", "", "", 10)))
		t.NoError(p.Post(say("m2", "a.s1", "b.s1", "work_1", 20)))
		t.NoError(p.Post(trace("m3", "b.s1", "", "working")))
		c := p.State.(*work.Conversation)
		t.Equal(c.Public, [4]int{1, 0, 0, 1})
		t.Equal(c.Preview, "")
		t.Equal(c.LastPublic, work.Mark{TS: 20, ID: "m3"})
		t.NoError(p.Post(say("m4", "a.s1", "b.s1", "", 30)))
		c = p.State.(*work.Conversation)
		t.Equal([]any{c.Preview, c.PublicPreview, c.Messages}, []any{"m4", "", 4})
	})
	spec.Check(t, "agh-network#54 seed-001#44: said to all", func(t *spec.T) {
		p := open(t)
		e := say("m1", "b.s1", "", "", 10)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string{"ada", "cyd"})
	})
	spec.Check(t, "agh-network#55 seed-001#106: said to one, read by all", func(t *spec.T) {
		p := open(t)
		e := say("m1", "a.s1", "b.s1", "", 10)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string{"bob"})
		for _, agent := range []string{"ada", "bob", "cyd"} {
			t.True(adapter.Visible(p.Meta, p.State, p.Meta.Members(), e, agent), "%s reads it", agent)
		}
		e.To = "" // a peer that is hosted elsewhere
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string(nil))
	})
	spec.Check(t, "agh-network#59: the sender is told nothing", func(t *spec.T) {
		p := open(t)
		e := say("m1", "a.s1", "a.s1", "", 10)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string(nil))
	})
	spec.Check(t, "seed-001#71 seed-001#72: members read, others do not", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m1", "a.s1", "b.s1", "", 10)))
		for agent, want := range map[string]bool{"ada": true, "bob": true, "cyd": true, "eve": false} {
			t.Equal(adapter.Visible(p.Meta, p.State, p.Meta.Members(), p.Log[0], agent), want)
		}
	})
	spec.Check(t, "seed-001#73: a thread takes any number of speakers", func(t *spec.T) {
		p := open(t)
		for i := range 300 {
			e := message("say", fmt.Sprint("m", i), fmt.Sprintf("peer.%d", i), "", "", int64(i), `{"text":"x"}`)
			e.Sender = fmt.Sprint("remote-", i)
			t.True(adapter.Admits(p.Meta, p.State, p.Meta.Members(), e.Sender), "a remote peer may speak")
			t.NoError(p.Post(e))
		}
		t.Equal(p.State.(*work.Conversation).Speakers.Len(), 300)
	})
	spec.Check(t, "seed-001#109: a place is channel and thread", func(t *spec.T) {
		other := metadata()
		other.Knobs = []byte(`{"workspace_id":"ws","channel":"yard","thread_id":"thread_tide"}`)
		q, err := adaptertest.Open(adapter, other)
		t.NoError(err)
		p := open(t)
		t.NoError(p.Post(say("m1", "a.s1", "", "", 10)))
		t.NoError(q.Post(say("m1", "a.s1", "", "", 10)))
		mine, theirs := adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Index, adapter.OnAccepted(q.Meta, q.State, q.Log[0]).Index
		for i := range mine {
			if !strings.HasPrefix(mine[i].Key, "id/") { // ids count in the workspace
				t.False(mine[i].Key == theirs[i].Key, "%s is of both", mine[i].Key)
			}
		}
	})
	t.Run("index", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		c.NoError(p.Post(say("m1", "a.s1", "", "", 16)))
		keys := func() (put, gone []string) {
			e := adapter.OnAccepted(p.Meta, p.State, p.Log[len(p.Log)-1])
			for _, entry := range e.Index {
				put = append(put, entry.Key)
			}
			return put, e.Unindex
		}
		put, gone := keys()
		c.Equal(put, []string{
			"activity/dock/7fffffffffffffef/thread_tide", "name/dock/thread_tide", "message/dock/thread_tide/0000000000000010/m1\x01a.s1", "id/m1\x01a.s1", "told/dock/-/00000000000000000000000000000001", "speaker/dock/a.s1",
		})
		c.Equal(gone, []string(nil))
		c.NoError(p.Post(say("m2", "a.s1", "b.s1", "work_1", 17)))
		put, gone = keys()
		c.Equal(put, []string{
			"activity/dock/7fffffffffffffee/thread_tide", "name/dock/thread_tide", "message/dock/thread_tide/0000000000000011/m2\x01a.s1", "id/m2\x01a.s1", "told/dock/b.s1/00000000000000000000000000000002", "work/work_1",
		})
		c.Equal(gone, []string{"activity/dock/7fffffffffffffef/thread_tide"})
		c.NoError(p.Post(say("m0", "a.s1", "", "", 3)))
		put, gone = keys()
		c.Equal(put, []string{"activity/dock/7fffffffffffffee/thread_tide", "message/dock/thread_tide/0000000000000003/m0\x01a.s1", "id/m0\x01a.s1", "told/dock/-/00000000000000000000000000000003"})
		c.Equal(gone, []string(nil))
		e := adapter.OnAccepted(p.Meta, p.State, p.Log[2])
		c.Equal(string(e.Index[0].Value), `{"root":"m1","opener":"a.s1","title":"m1","opened_at":16,"preview":"m2",`+
			`"messages":3,"speakers":1,"open_work":1,"public":[2,0,0,0],"last_public_at":16,"last_public_id":"m1","public_preview":"m1"}`)
		c.Equal(string(e.Index[1].Value), "3")
		c.Equal(string(e.Index[2].Value), `{"channel":"dock","id":"thread_tide","ts":3,"seq":3}`)
		c.Equal(string(e.Index[3].Value), `{"seq":3}`)
	})
	t.Run("long texts and ids are cut", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		long := strings.Repeat("é", 5000)
		c.NoError(p.Post(message("say", strings.Repeat("i", 5000), "a.s1", "", "", 1, `{"text":"`+long+`"}`)))
		state := p.State.(*work.Conversation)
		c.True(len(state.Title) <= work.MaxText && strings.HasPrefix(long, state.Title), "%d bytes", len(state.Title))
		for _, entry := range adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Index {
			c.True(len(entry.Key) < 512, "a key has %d bytes", len(entry.Key))
		}
	})
	t.Run("what cannot be opened", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for _, knobs := range []string{``, `{}`, `[]`, `{"workspace_id":"w","channel":"c"}`, `{"workspace_id":"w","thread_id":"t"}`} {
			_, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs))
			c.Equal(fault.CodeOf(err), fault.Invalid)
		}
		c.Equal(adapter.Opening(), channel.AtOnce)
		c.Equal(adapter.Dialect(), "agh")
		c.True(adapter.HomeKeys(), "keys count in a thread only")
		foreign := say("m", "a.s1", "", "", 1)
		foreign.Origin.Dialect = "ag2"
		refused(c, open(c), foreign, fault.Protocol, "")
		_, ok := adapter.Expected(nil, nil)
		c.False(ok, "somebody is expected")
		text, ok := adapter.Render(message("say", "m", "a.s1", "", "", 1, `{"text":" x "}`))
		c.True(ok && text == "x", "%q", text)
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"workspace_id":"w","work":{"work_1":{"state":"working"}},"public":[1,2]}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
