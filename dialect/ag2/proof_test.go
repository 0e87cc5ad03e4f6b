package ag2_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// tokens is a set of keys that changes while connections last.
type tokens struct {
	mu    sync.Mutex
	good  map[string]string // name by token
	keyed map[string]bool
}

func (k *tokens) set(token, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.good[token], k.keyed[name] = name, true
}

func (k *tokens) revoke(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.good, token)
}

func (k *tokens) opens(token, name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good[token] == name
}

func (k *tokens) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keyed[name]
}

func (k *tokens) prove(*http.Request) ag2.Prove {
	return func(name, scheme string, claim []byte) (func() bool, error) {
		if scheme == identity.SchemeNone {
			return func() bool { return !k.has(name) }, nil
		}
		token, _ := identity.Token(claim)
		return func() bool { return k.opens(token, name) }, nil
	}
}

func keyedRig(t *testing.T) (*rig, *tokens) {
	keys := &tokens{good: map[string]string{}, keyed: map[string]bool{}}
	return newRig(t, options{
		config: ag2.Config{Prove: keys.prove},
		hub: hub.Options{Auth: identity.NewAuthRegistry(
			identity.None{Keyed: keys.has},
			identity.NewAPIKeyStore(func(name, token string) (known, ok bool) { return keys.has(name), keys.opens(token, name) }),
		)},
	}), keys
}

// ended waits until the hub has closed a connection, and returns how.
func (p *peer) ended() error {
	p.t.Helper()
	for {
		select {
		case <-p.frames:
		case <-p.over:
			return p.err
		case <-p.t.Context().Done():
			p.t.Fatal("the connection did not end")
		}
	}
}

// Revoking a key closes the connections on which it proved an identity, at once and
// before another of their frames is handled; others stay.
func TestRevokedKeyEndsItsConnections(t *testing.T) {
	t.Parallel()
	r, keys := keyedRig(t)
	keys.set("tok-1", "quill")
	keys.set("tok-2", "quill")
	first, second, other := r.dial(), r.dial(), r.dial()
	api := func(token string) object { return object{"scheme": "api_key", "claim": object{"token": token}} }
	var passport map[string]any
	first.call("register", object{"passport": object{"name": "quill", "auth": api("tok-1")}, "resume": object{}}, &passport)
	id := passport["agent_id"].(string)
	second.send(`{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{"token":"tok-2"}}`)
	if got := second.recv(); !strings.HasPrefix(got, `{"kind":"welcome"`) {
		t.Fatal(got)
	}
	other.call("register", object{"passport": object{"name": "ink"}, "resume": object{}}, nil)

	keys.revoke("tok-1")
	first.request("set_skill", object{"agent_id": id, "skill_md": "late"}) // even before Recheck
	if err := first.ended(); err == nil || !strings.Contains(err.Error(), "1008") {
		t.Errorf("ended with %v", err)
	}
	if profile, err := r.hub.Details(t.Context(), id); err != nil || profile.Skill != nil {
		t.Errorf("a revoked key still acts: %v, %v", profile.Skill, err)
	}
	r.server.Recheck()
	second.call("set_skill", object{"agent_id": id, "skill_md": "mine"}, nil)
	other.call("list_agents", object{}, nil)
	if got := r.server.Stats().Expelled; got != 1 {
		t.Errorf("%d connections were expelled, want 1", got)
	}
}

// Making a key for a name closes the connections that act for it without one. After
// the key is revoked, no client can connect without one again.
func TestNewKeyEndsSquatters(t *testing.T) {
	t.Parallel()
	r, keys := keyedRig(t)
	squatter := r.dial()
	var passport map[string]any
	squatter.call("register", object{"passport": object{"name": "quill"}, "resume": object{}}, &passport)
	keys.set("tok-1", "quill")
	r.server.Recheck()
	if err := squatter.ended(); err == nil || !strings.Contains(err.Error(), "1008") {
		t.Errorf("ended with %v", err)
	}
	if _, bound := r.hub.Bound(passport["agent_id"].(string)); bound {
		t.Error("the squatter is still told what is for quill")
	}
	for _, revoked := range []bool{false, true} {
		if revoked {
			keys.revoke("tok-1")
		}
		if f := r.dial().refused(`{"kind":"hello","name":"quill"}`); f.Code != "auth_failed" {
			t.Errorf("revoked %v: %+v", revoked, f)
		}
	}
}

// The directory is hidden from strangers, unless they may connect without a
// proof.
func TestDirectoryOfStrangers(t *testing.T) {
	t.Parallel()
	look := map[string]object{
		"list_agents": {"limit": 1 << 40}, "get_agent": {"name_or_id": "quill"}, "get_resume": {"agent_id": "x"}, "get_skill": {"agent_id": "x"},
		"get_rule": {"agent_id": "x"}, "find_agent_id": {"name": "quill"}, "names_for": {"agent_ids": []string{"x"}},
	}
	denied := func(p *peer, op string) bool {
		_, err := p.try(op, look[op])
		var f *failure
		return errors.As(err, &f) && f.Code == "access_denied"
	}
	for _, near := range []bool{false, true} {
		r := newRig(t, options{config: ag2.Config{Strangers: func(identity.Peer) bool { return near }}})
		if _, err := r.hub.Register(context.Background(), hub.Registration{
			Passport: &identity.Passport{Name: "quill", Auth: identity.Auth{Scheme: identity.SchemeNone}},
		}); err != nil {
			t.Fatal(err)
		}
		p := r.dial()
		for op := range look {
			if denied(p, op) == near {
				t.Errorf("near %v, stranger: %s", near, op)
			}
		}
		p.call("register", object{"passport": object{"name": "ink"}, "resume": object{}}, nil)
		for op := range look {
			if denied(p, op) {
				t.Errorf("near %v, proved: %s is denied", near, op)
			}
		}
	}
}
