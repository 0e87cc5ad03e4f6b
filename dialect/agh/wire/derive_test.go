package wire_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

func TestDirect(t *testing.T) {
	t.Parallel()
	id := func(t *spec.T, workspace, channel, a, b string) string {
		got, err := wire.DirectID(workspace, channel, a, b)
		t.NoError(err)
		return got
	}
	spec.Check(t, "agh-network#49 seed-001#79: another workspace, channel or pair has another direct_id", func(t *spec.T) {
		seen := map[string]bool{}
		for _, c := range [][4]string{
			{"w", "c", "a", "b"}, {"v", "c", "a", "b"}, {"w", "d", "a", "b"}, {"w", "c", "a", "bb"}, {"w", "c", "aa", "b"}, {"w", "ca", "b", "c"},
		} {
			seen[id(t, c[0], c[1], c[2], c[3])] = true
		}
		t.Equal(len(seen), 6)
	})
	spec.Check(t, "seed-001#77: the order of the peers does not change the direct_id", func(t *spec.T) {
		t.Equal(id(t, "w", "c", "a", "b"), id(t, "w", "c", "b", "a"))
		t.Equal(id(t, " w ", "c", " a", "b\n"), id(t, "w", "c", "a", "b"))
	})
	spec.Check(t, "agh-network#50: a room with oneself, or with an invalid name, is an error", func(t *spec.T) {
		for _, c := range [][4]string{
			{"w", "c", "a", "a"}, {"w", "c", "a", " a"}, {"w", "c", "A", "b"}, {"w", "c", "a", ""}, {"w", "C", "a", "b"}, {"w", "", "a", "b"}, {"", "c", "a", "b"}, {"w.x", "c", "a", "b"},
		} {
			_, err := wire.DirectID(c[0], c[1], c[2], c[3])
			t.Equal(fault.CodeOf(err), fault.Invalid)
		}
	})
	spec.Check(t, "agh-network#51: a stored room that belongs to another pair is a collision", func(t *spec.T) {
		room := id(t, "w", "c", "a", "b")
		t.NoError(wire.CheckDirect(room, "w", "c", "b", "a"))
		err := wire.CheckDirect(room, "w", "c", "a", "x")
		t.ErrorContains(err, "direct_room_collision")
		t.Equal(fault.CodeOf(err), fault.Conflict)
		e := &wire.Envelope{Workspace: "w", Channel: "c", From: "a", Surface: wire.Direct, Direct: room}
		t.True(e.Counterpart("b"), "b is the other member")
		t.False(e.Counterpart("x"), "x is none")
		t.False(e.Counterpart("a"), "the sender is its own counterpart")
	})
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#118: a subject that does not fit its envelope does not carry it", func(t *spec.T) {
		e, err := wire.Decode(with(say, "to", `"tug.s02"`), lax)
		t.NoError(err)
		subject, err := e.Subject()
		t.NoError(err)
		t.Equal(subject, "agh.network.v0.ws_harbor.dock.peer.f517bf6ab72761a29c2494efbfaffc06")
		s, ok := wire.ParseSubject(subject)
		t.True(ok, "it is read back")
		t.True(s.Carries(e), "it carries its own")
		for _, change := range []func(*wire.Envelope){
			func(e *wire.Envelope) { e.Workspace = "other" },
			func(e *wire.Envelope) { e.Channel = "other" },
			func(e *wire.Envelope) { e.To = "crane.s02" },
			func(e *wire.Envelope) { e.To = "" },
			func(e *wire.Envelope) { e.Protocol = wire.ProtocolV1 },
		} {
			other := *e
			change(&other)
			t.False(s.Carries(&other), "it carries %+v", other)
		}
		broadcast, ok := wire.ParseSubject("agh.network.v0.ws_harbor.dock.broadcast")
		t.True(ok, "a broadcast subject")
		t.False(broadcast.Carries(e), "a broadcast subject carries what is directed")
	})
	t.Run("what is no subject", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		for _, bad := range []string{
			"", "agh.network.v0", "agh.network.v0.w.c", "agh.network.v0.w.c.peer", "agh.network.v0.w.c.peer.x", "agh.network.v2.w.c.broadcast",
			"agh.network.v0.w.C.broadcast", "agh.network.v0..c.broadcast", "agh.network.v0.w.c.broadcast.x", "other.w.c.broadcast",
		} {
			_, ok := wire.ParseSubject(bad)
			c.False(ok, "%q is a subject", bad)
		}
		s, ok := wire.ParseSubject("agh.network.v1.w.c.broadcast")
		c.True(ok && s.Version == 1, "v1 has its own prefix")
		for _, bad := range [][2]string{{"a.b", "c"}, {"w", "C"}} {
			_, err := wire.BroadcastSubject(0, bad[0], bad[1])
			c.True(err != nil, "%v", bad)
			_, err = wire.PeerSubject(0, bad[0], bad[1], "a")
			c.True(err != nil, "%v", bad)
		}
		_, err := wire.PeerSubject(0, "w", "c", "A")
		c.True(err != nil, "no peer")
	})
	spec.Check(t, "seed-001#24: two workspaces never share a subject", func(t *spec.T) {
		rapid.Check(t.T, func(r *rapid.T) {
			name := rapid.StringMatching(`[a-zA-Z0-9_é-]{1,6}`)
			channel := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,3}`)
			one, other := name.Draw(r, "one"), name.Draw(r, "other")
			c := channel.Draw(r, "channel")
			a, errA := wire.BroadcastSubject(0, one, c)
			b, errB := wire.BroadcastSubject(0, other, channel.Draw(r, "other channel"))
			if errA != nil || errB != nil || (a == b && one != other) || !strings.Contains(a, "."+one+".") {
				r.Fatalf("%s and %s", a, b)
			}
		})
		t.True(true, "no two workspaces share a subject")
	})
}

func TestPeerID(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for name, want := range map[string]string{
		"mason": "mason.sess-1", "Big Mason": "big-mason.sess-1", "..-_x": "x.sess-1", "É1": "1.sess-1", "a/b@c": "a-b-c.sess-1",
		repeat("a", 200): repeat("a", 100) + ".sess-1",
	} {
		got, err := wire.PeerID(name, "sess-1")
		c.NoError(err)
		c.Equal(got, want)
		c.True(wire.ValidPeer(got), "%s", got)
	}
	for _, bad := range []string{"", "---", "éé", " "} {
		_, err := wire.PeerID(bad, "sess-1")
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	session := wire.NewSessionID()
	raw, err := hex.DecodeString(strings.TrimPrefix(session, "sess-"))
	c.NoError(err)
	c.Equal(len(raw), 8)
	spec.Check(t, "seed-001#21: generated ids are UUIDs and unique", func(t *spec.T) {
		seen := map[string]bool{}
		for range 1000 {
			id := wire.NewID()
			t.True(len(id) == 36 && id[14] == '4' && strings.ContainsRune("89ab", rune(id[19])) && id[8] == '-', "%s is a UUID", id)
			seen[id] = true
		}
		t.Equal(len(seen), 1000)
	})
}
