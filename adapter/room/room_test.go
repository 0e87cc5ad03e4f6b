package room_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var adapter = room.New(room.Options{MaxPeers: 5})

func metadata() *channel.Metadata {
	return adaptertest.Metadata(adapter, `{"workspace_id":"ws","channel":"dock"}`)
}

func open(t *spec.T) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, metadata())
	t.NoError(err)
	return p
}

// ours is an envelope of AGH's dialect.
func ours(agent, eventType, data string) *envelope.Envelope {
	e := adaptertest.Envelope(agent, eventType, data)
	e.Origin.Dialect = "agh"
	return e
}

func join(agent, peer string) *envelope.Envelope {
	return ours(agent, room.TypeJoin, fmt.Sprintf(`{"peer_id":%q,"session_id":"sess-%s"}`, peer, peer))
}

func leave(agent, peer string) *envelope.Envelope {
	return ours(agent, room.TypeLeave, fmt.Sprintf(`{"peer_id":%q}`, peer))
}

func draw(r *rapid.T) *envelope.Envelope {
	agent, peer := rapid.SampledFrom([]string{"ada", "bob"}).Draw(r, "agent"), rapid.SampledFrom([]string{"p1", "p2", "p3", ""}).Draw(r, "peer")
	e := rapid.SampledFrom([]*envelope.Envelope{join(agent, peer), leave(agent, peer), ours(agent, room.TypePurpose, `{"purpose":"`+peer+`"}`)}).Draw(r, "event")
	e.CreatedAt = adaptertest.Epoch
	return e
}

func in(p *adaptertest.Play) channel.Members { return adapter.Members(p.Meta, p.State) }

func list(m channel.Members) []string {
	all := []string{}
	m.Each(func(agent string) bool { all = append(all, agent); return true })
	return all
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.ExerciseFolds(t, adaptertest.Folder{Adapter: adapter, Metadata: metadata, Draw: draw})
	t.Run("members are who is joined by some peer", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			p, err := adaptertest.Open(adapter, metadata())
			if err != nil {
				r.Fatal(err)
			}
			for range rapid.IntRange(0, 30).Draw(r, "events") {
				p.State = adapter.Fold(p.State, draw(r))
			}
			want := []string{}
			for _, peer := range p.State.(*room.State).Peers.All() {
				if !slices.Contains(want, peer.Agent) {
					want = append(want, peer.Agent)
				}
			}
			slices.Sort(want)
			members := in(p)
			if got := list(members); !slices.Equal(got, want) || members.Count() != len(want) {
				r.Fatalf("%v, want %v", got, want)
			}
		})
	})
}

func TestRoom(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	c.Equal(list(in(p)), []string{})
	c.True(adapter.Admits(p.Meta, p.State, in(p), "ada"), "who is no member yet may join")
	c.NoError(p.Post(join("ada", "a.s1")))
	c.NoError(p.Post(join("ada", "a.s2"))) // an identity by two peers
	c.NoError(p.Post(join("bob", "b.s1")))
	c.Equal(list(in(p)), []string{"ada", "bob"})
	c.Equal(in(p).Count(), 2)

	err := p.Post(join("cyd", "a.s1"))
	c.Equal([]any{fault.CodeOf(err), fault.ReasonOf(err)}, []any{fault.Conflict, fault.PeerJoined})
	err = p.Post(leave("ada", "c.s1"))
	c.Equal([]any{fault.CodeOf(err), fault.ReasonOf(err)}, []any{fault.NotFound, fault.PeerAbsent})
	c.Equal(fault.CodeOf(p.Post(leave("bob", "a.s1"))), fault.AccessDenied)

	c.NoError(p.Post(leave("ada", "a.s1")))
	c.True(in(p).Has("ada"), "she has another peer")
	e := adapter.OnAccepted(p.Meta, p.State, p.Log[3])
	c.Equal(e.Unindex, []string{"peer/dock/a.s1", "session/sess-a.s1"})
	c.Equal(e.Release, []string{"session/sess-a.s1"})
	c.NoError(p.Post(leave("ada", "a.s2")))
	c.False(in(p).Has("ada"), "she has none left")
	for agent, want := range map[string]bool{"bob": true, "ada": false} {
		c.Equal(adapter.Visible(p.Meta, p.State, in(p), p.Log[0], agent), want)
	}
	c.Equal(adapter.Recipients(p.Meta, p.State, in(p), p.Log[0]), []string(nil))

	c.NoError(p.Post(ours("bob", room.TypePurpose, `{"purpose":"Berths"}`)))
	e = adapter.OnAccepted(p.Meta, p.State, p.Log[5])
	c.Equal(len(e.Index), 1)
	c.Equal(e.Index[0].Key, "room/dock")
	c.Contains(string(e.Index[0].Value), `"purpose":"Berths"`, `"created_by":"ada"`, `"peers":1`)

	for i := range 4 {
		c.NoError(p.Post(join("cyd", fmt.Sprint("c.s", i))))
	}
	err = p.Post(join("cyd", "c.s9"))
	c.Equal(fault.CodeOf(err), fault.TooLarge)
	c.ErrorContains(err, "agh.limits.peers")
	e = adapter.OnAccepted(p.Meta, p.State, p.Log[len(p.Log)-1])
	c.Equal(e.Claims, []string{"session/sess-c.s3"})
	c.Equal([]string{e.Index[1].Key, e.Index[2].Key}, []string{"peer/dock/c.s3", "session/sess-c.s3"})
	c.Equal(string(e.Index[2].Value), `{"channel":"dock","peer_id":"c.s3"}`)

	for _, bad := range []*envelope.Envelope{
		ours("bob", room.TypeJoin, `{"peer_id":"x"}`), ours("bob", room.TypeJoin, `{`), ours("bob", room.TypeLeave, `{}`),
		ours("bob", room.TypePurpose, `{}`), ours("bob", room.TypePurpose, `{"purpose":"`+strings.Repeat("x", room.MaxPurpose+1)+`"}`),
	} {
		c.Equal(fault.CodeOf(p.Post(bad)), fault.Invalid)
	}
	c.Equal(fault.CodeOf(p.Post(adaptertest.Envelope("bob", room.TypePurpose, `{"purpose":"of another dialect"}`))), fault.Protocol)
	for _, knobs := range []string{``, `{}`, `{"workspace_id":"w"}`} {
		_, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs))
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	c.Equal(adapter.Opening(), channel.AtOnce)
	c.Equal(adapter.Dialect(), "agh")
	c.Equal(list(adapter.Members(p.Meta, nil)), []string{})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"workspace_id":"w","channel":"c","peers":{"p":{"agent_id":"a"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
