package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func passportOf(name string) hub.Registration {
	return hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}}
}

// adopt adopts an identity with an endpoint within the process.
func (r *rig) adopt(id, name string) *agent {
	r.t.Helper()
	if _, err := r.Adopt(ctx, id, passportOf(name)); err != nil {
		r.t.Fatal(err)
	}
	a := &agent{r: r, id: id, name: name}
	if err := r.Bind(id, a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestTransientIdentities(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 16)
	stored(t, "one is disowned without a write; a registered one stays", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		r.adopt(id, "peer")
		written := r.stored.Stats().Batches
		r.Disown(id)
		r.Disown(a.id)
		r.Disown(strings.Repeat("00", 16))
		if _, err := r.AgentByID(id); fault.CodeOf(err) != fault.NotFound || r.Transient(id) {
			t.Errorf("it is still known: %v", err)
		}
		if _, err := r.AgentByID(a.id); err != nil || r.stored.Stats().Batches != written {
			t.Errorf("alice is touched: %v", err)
		}
		r.adopt(id, "peer")
		if !r.Transient(id) {
			t.Error("it cannot be adopted again")
		}
	})
	stored(t, "one speaks and reads without a write, and is gone with the process", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		written := r.stored.Stats().Batches
		p := r.adopt(id, "peer")
		if n := r.stored.Stats().Batches - written; n != 0 {
			t.Errorf("adopting wrote %d batches", n)
		}
		ch := r.open("board", a, p)
		r.post(p, ch, "board.note", `{"n":1}`, directed(a))
		r.post(a, ch, "board.note", `{"n":2}`, directed(p))
		if len(a.inbox()) != 1 || len(p.inbox()) != 1 {
			t.Errorf("alice was told %v, the peer %v", a.received(), p.received())
		}
		list, err := r.Agents(ctx, hub.AgentQuery{Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.FindAgent("peer"); ok || len(list) != 1 || !r.Transient(id) || r.Transient(a.id) {
			t.Error("it is listed")
		}
		if err := r.SetRule(ctx, id, &identity.Rule{}); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("its rule is set: %v", err)
		}
		if d, err := r.Details(ctx, id); err != nil || d.Resume == nil {
			t.Errorf("details %+v, %v", d, err)
		}
		r.restart()
		if _, err := r.AgentByID(id); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("after a restart: %v", err)
		}
		if _, err := r.tryPost(p, ch, "board.note", `{}`); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("it posts: %v", err)
		}
		p = r.adopt(id, "peer")
		r.post(p, ch, "board.note", `{"n":3}`)
	})
	stored(t, "registering makes it lasting under its id, with its endpoints", withBoard, func(t *testing.T, r *rig) {
		a, p := r.agent("alice"), r.adopt(id, "peer")
		ch := r.open("board", a, p)
		reg := passportOf("peer")
		reg.ID = id
		got, err := r.Register(ctx, reg)
		if err != nil || got.ID() != id || r.Transient(id) {
			t.Fatalf("registered %+v, %v", got, err)
		}
		r.post(a, ch, "board.note", `{}`, directed(p))
		if len(p.inbox()) != 1 {
			t.Errorf("its endpoint was told %v", p.received())
		}
		if _, err := r.Register(ctx, reg); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("registered once more: %v", err)
		}
		r.restart()
		if found, ok := r.FindAgent("peer"); !ok || found != id {
			t.Errorf("found %q after a restart", found)
		}
		if _, err := r.Adopt(ctx, id, passportOf("peer")); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("adopted although registered: %v", err)
		}
	})
	runs(t, "one is never equal to a registered identity", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		if _, err := r.Adopt(ctx, a.id, passportOf("alice")); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("alice's id: %v", err)
		}
		for _, bad := range []string{"", "peer", strings.Repeat("AB", 16), id + "0"} {
			if _, err := r.Adopt(ctx, bad, passportOf("x")); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", bad, err)
			}
		}
		r.adopt(id, "alice") // the registered identity keeps the name
		if found, _ := r.FindAgent("alice"); found != a.id {
			t.Errorf("alice is %s", found)
		}
		reg := passportOf("alice")
		reg.ID = id
		if _, err := r.Register(ctx, reg); fault.CodeOf(err) != fault.Protocol || !r.Transient(id) {
			t.Errorf("registered under a taken name: %v", err)
		}
		reg = passportOf("bob")
		reg.ID = strings.Repeat("cd", 16)
		if _, err := r.Register(ctx, reg); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("registered under an id that nobody has: %v", err)
		}
	})
	runs(t, "their number is bounded", hub.Options{Limits: hub.Limits{Transient: 3}}, func(t *testing.T, r *rig) {
		var ids []string
		for i := range 4 {
			ids = append(ids, fmt.Sprintf("%032x", i+1))
			_, err := r.Adopt(ctx, ids[i], passportOf("x"))
			if i < 3 && err != nil || i == 3 && (fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.transient")) {
				t.Errorf("number %d: %v", i+1, err)
			}
		}
		if _, err := r.Adopt(ctx, ids[0], passportOf("x")); err != nil {
			t.Errorf("adopted again: %v", err)
		}
		if err := r.Unregister(ctx, ids[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Adopt(ctx, ids[3], passportOf("x")); err != nil {
			t.Errorf("in the place of one that is gone: %v", err)
		}
		if got := r.audit(); len(got) != 0 {
			t.Errorf("audited %v", got)
		}
	})
}

// Identities that a dialect knows by name are found, and stay once a channel
// invites them.
func TestOutside(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 16)
	r := newRig(t, byHand)
	a := r.agent("alice")
	r.Outside("far/", func(name string) (string, bool) {
		if name != "far/peer" {
			return "", false
		}
		_, err := r.Adopt(ctx, id, passportOf(name))
		return id, err == nil
	})
	if found, ok := r.FindAgent("far/peer"); !ok || found != id {
		t.Fatalf("found %q, %v", found, ok)
	}
	if _, ok := r.FindAgent("far/nobody"); ok {
		t.Error("somebody unknown is found")
	}
	if _, err := r.Register(ctx, passportOf("far/other")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("another registers such a name: %v", err)
	}
	refused := hub.Opening{Creator: a.id, Type: "conversation", Participants: []string{id, a.id, r.agent("carl").id}}
	if _, err := r.Open(ctx, refused); err == nil || !r.Transient(id) {
		t.Errorf("an opening that is refused (%v) makes it lasting", err)
	}
	o, err := r.WithIDs(hub.Opening{Creator: "alice", Type: "conversation", Participants: []string{"far/peer"}})
	if err != nil {
		t.Fatal(err)
	}
	acks := 0
	o.RequiredAcks = &acks
	if _, err := r.Open(ctx, o); err != nil {
		t.Fatal(err)
	}
	if found, ok := r.FindAgent("far/peer"); !ok || found != id || r.Transient(id) {
		t.Errorf("who is invited is not there to stay: %q, %v", found, ok)
	}
}
