package ag2_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// Once a key is made for a name, only clients with that key can act for it, however
// the name was registered.
func TestNameWithAKey(t *testing.T) {
	t.Parallel()
	var made atomic.Bool // the key of quill
	r := newRig(t, options{hub: hub.Options{Auth: identity.NewAuthRegistry(
		identity.None{Keyed: func(name string) bool { return name == "ink" || name == "quill" && made.Load() }},
		identity.NewAPIKeyStore(func(name, token string) (known, ok bool) {
			known = name == "ink" || name == "quill" && made.Load()
			return known, known && token == "tok-"+name
		}),
	)}})
	registered, err := r.hub.Register(t.Context(), hub.Registration{
		Passport: &identity.Passport{Name: "quill", Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if err != nil {
		t.Fatal(err)
	}
	quill := registered.ID() // not bound
	made.Store(true)

	thief := r.dial()
	refused := func(what string, err error, code string) {
		t.Helper()
		var f *failure
		if !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s: got %v, want %s", what, err, code)
		}
	}
	for what, passport := range map[string]object{
		"none":          {"name": "ink"},
		"a person":      {"name": "ink", "kind": "human"},
		"another hub's": {"name": "ink", "kind": "remote_agent", "auth": object{"scheme": "far"}},
		"a wrong token": {"name": "ink", "auth": object{"scheme": "api_key", "claim": object{"token": "tok-quill"}}},
		"without token": {"name": "ink", "auth": object{"scheme": "api_key"}},
	} {
		_, err := thief.try("register", object{"passport": passport, "resume": object{}})
		refused("register as "+what, err, "auth_failed")
	}
	for what, frame := range map[string]string{
		"none":          `{"kind":"hello","name":"quill"}`,
		"a wrong token": `{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{"token":"tok-ink"}}`,
	} {
		if f := thief.refused(frame); f.Code != "auth_failed" {
			t.Errorf("hello with %s: %+v", what, f)
		}
	}
	_, err = thief.try("unregister", object{"agent_id": quill})
	refused("unregister", err, "access_denied")
	_, err = thief.try("set_skill", object{"agent_id": quill, "skill_md": "mine"})
	refused("set_skill", err, "access_denied")

	back := r.dial()
	back.send(`{"kind":"hello","name":"quill","auth_scheme":"api_key","auth_claim":{"token":"tok-quill"}}`)
	if got := back.recv(); !strings.HasPrefix(got, `{"kind":"welcome"`) {
		t.Fatalf("the owner is refused: %s", got)
	}
	back.call("set_skill", object{"agent_id": quill, "skill_md": "mine"}, nil)
	back.call("unregister", object{"agent_id": quill}, nil)
}
