package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func passport(name, scheme string) *identity.Passport {
	return &identity.Passport{Name: name, Auth: identity.Auth{Scheme: scheme}, Version: 1}
}

func TestNone(t *testing.T) {
	t.Parallel()
	registry := identity.NewAuthRegistry()
	for _, claim := range []string{"", "{}", `{"token":1}`, `{"a":[1]}`} {
		spec.Check(t, "ag2-hub#5: scheme none accepts any claim, "+claim, func(t *spec.T) {
			t.Equal(registry.Verify(t.Context(), passport("quill", "none"), "none", []byte(claim)), nil)
			t.Equal(registry.Schemes(), []string{"none"})
		})
	}
	t.Run("not from where it is not allowed", func(t *testing.T) {
		t.Parallel()
		loopback := identity.NewAuthRegistry(identity.None{Allow: func(ctx context.Context) bool { return identity.PeerOf(ctx).Loopback }})
		inside := identity.WithPeer(t.Context(), identity.Peer{Loopback: true})
		if err := loopback.Verify(inside, passport("quill", "none"), "none", nil); err != nil {
			t.Errorf("loopback is refused: %v", err)
		}
		if err := loopback.Verify(t.Context(), passport("quill", "none"), "none", nil); fault.CodeOf(err) != fault.AuthFailed {
			t.Errorf("another peer: got %v, want auth_failed", err)
		}
	})
}

// A name that a key was made for is proved by that key alone.
func TestNoneOfAKeyedName(t *testing.T) {
	t.Parallel()
	registry := identity.NewAuthRegistry(
		identity.None{Keyed: func(name string) bool { return name == "quill" }},
		identity.NewAPIKey(map[string]string{"quill": "tok-7"}, nil),
	)
	tests := []struct {
		what, name, registered, scheme, claim string
		fragment                              string // of the refusal; empty: accepted
	}{
		{"none", "quill", "none", "none", `{}`, "use scheme api_key"},
		{"none with the token", "quill", "none", "none", `{"token":"tok-7"}`, "use scheme api_key"},
		{"the key of one that was registered without", "quill", "none", "api_key", `{"token":"tok-7"}`, ""},
		{"a wrong key of one that was registered without", "quill", "none", "api_key", `{"token":"tok-8"}`, "mismatch"},
		{"the key", "quill", "api_key", "api_key", `{"token":"tok-7"}`, ""},
		{"another name", "ink", "none", "none", `{}`, ""},
		{"another name's key", "ink", "none", "api_key", `{"token":"tok-7"}`, "no api_key registered"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			err := registry.Verify(t.Context(), passport(tt.name, tt.registered), tt.scheme, []byte(tt.claim))
			if tt.fragment == "" && err != nil || tt.fragment != "" && (fault.CodeOf(err) != fault.AuthFailed || !contains(err, tt.fragment)) {
				t.Fatalf("got %v, want %q", err, tt.fragment)
			}
		})
	}
}

// An identity of another hub proves nothing, so it is admitted like one
// without a proof.
func TestVerifyRemote(t *testing.T) {
	t.Parallel()
	outside := identity.NewAuthRegistry(identity.None{Allow: func(context.Context) bool { return false }})
	keyed := identity.NewAuthRegistry(identity.None{Keyed: func(name string) bool { return name == "quill" }})
	strict := identity.NewAuthRegistry(identity.NewAPIKey(nil, nil))
	for what, tt := range map[string]struct {
		registry *identity.AuthRegistry
		name     string
		want     fault.Code
	}{
		"where none is accepted":     {keyed, "ink", ""},
		"where none is not accepted": {outside, "ink", fault.AuthFailed},
		"under a name with a key":    {keyed, "quill", fault.AuthFailed},
		"where none is unknown":      {strict, "ink", ""},
	} {
		if err := tt.registry.VerifyRemote(t.Context(), passport(tt.name, "far")); fault.CodeOf(err) != tt.want {
			t.Errorf("%s: got %v, want code %q", what, err, tt.want)
		}
	}
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	asked := []string{}
	resolver := func(_ context.Context, name string) ([]identity.KeyHash, error) {
		asked = append(asked, name)
		if name == "ink" {
			return []identity.KeyHash{identity.HashKey("old"), identity.HashKey("tok-9")}, nil
		}
		return nil, nil
	}
	registry := identity.NewAuthRegistry(identity.None{}, identity.NewAPIKey(map[string]string{"quill": "tok-7"}, resolver))
	verify := func(name, claim string) error {
		return registry.Verify(t.Context(), passport(name, "api_key"), "api_key", []byte(claim))
	}
	for what, claim := range map[string]string{
		"missing": `{}`, "empty": `{"token":""}`, "number": `{"token":7}`, "null": `{"token":null}`,
		"no claim": ``, "no object": `[]`, "wrong case": `{"Token":"tok-7"}`,
	} {
		spec.Check(t, "ag2-hub#6: token "+what, func(t *spec.T) {
			err := verify("quill", claim)
			t.Equal(fault.CodeOf(err), fault.AuthFailed)
			t.ErrorContains(err, "missing required string field 'token'")
		})
	}
	spec.Check(t, "ag2-hub#6: unknown name", func(t *spec.T) {
		err := verify("nobody", `{"token":"tok-7"}`)
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		t.ErrorContains(err, "no api_key registered")
	})
	spec.Check(t, "ag2-hub#7: static keys win over the resolver", func(t *spec.T) {
		asked = asked[:0]
		t.Equal(verify("quill", `{"token":"tok-7"}`), nil)
		err := verify("quill", `{"token":"tok-8"}`)
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		t.ErrorContains(err, "mismatch")
		t.Equal(asked, []string{})
	})
	spec.Check(t, "ag2-hub#7: the resolver is called with the name", func(t *spec.T) {
		asked = asked[:0]
		t.Equal(verify("ink", `{"token":"tok-9"}`), nil)
		t.Equal(verify("ink", `{"token":"old"}`), nil)
		t.ErrorContains(verify("ink", `{"token":"tok-7"}`), "mismatch")
		t.Equal(asked, []string{"ink", "ink", "ink"})
	})
	spec.Check(t, "ag2-hub#7: no keys at all rejects everyone", func(t *spec.T) {
		empty := identity.NewAuthRegistry(identity.NewAPIKey(nil, nil))
		err := empty.Verify(t.Context(), passport("quill", "api_key"), "api_key", []byte(`{"token":"tok-7"}`))
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		t.ErrorContains(err, "no api_key registered")
	})
}

func TestVerify(t *testing.T) {
	t.Parallel()
	boom := errors.New("disk gone")
	registry := identity.NewAuthRegistry(
		identity.None{},
		identity.NewAPIKey(nil, func(context.Context, string) ([]identity.KeyHash, error) { return nil, boom }),
		custom{},
	)
	tests := []struct {
		name, registered, scheme, claim string
		code                            fault.Code
		fragment                        string
	}{
		{"unknown scheme first", "api_key", "vip", `{}`, fault.AuthFailed, "unknown auth scheme"},
		{"none does not unlock custom", "custom", "none", `{}`, fault.AuthFailed, "does not match"},
		{"api_key does not unlock custom", "custom", "api_key", `{}`, fault.AuthFailed, "does not match"},
		{"none does not unlock api_key", "api_key", "none", `{}`, fault.AuthFailed, "does not match"},
		{"resolver fails", "api_key", "api_key", `{"token":"x"}`, fault.Unavailable, "disk gone"},
		{"custom refuses", "custom", "custom", `{}`, fault.AuthFailed, "not today"},
		{"custom accepts", "custom", "custom", `{"ok":true}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := registry.Verify(t.Context(), passport("quill", tt.registered), tt.scheme, []byte(tt.claim))
			if fault.CodeOf(err) != tt.code {
				t.Fatalf("got %v, want code %q", err, tt.code)
			}
			if tt.fragment != "" && !contains(err, tt.fragment) {
				t.Fatalf("%v lacks %q", err, tt.fragment)
			}
		})
	}
}

type custom struct{}

func (custom) Scheme() string { return "custom" }

func (custom) Validate(_ context.Context, _ *identity.Passport, claim []byte) error {
	if string(claim) != `{"ok":true}` {
		return errors.New("not today")
	}
	return nil
}

func TestKeyHashText(t *testing.T) {
	t.Parallel()
	want := identity.HashKey("tok-7")
	text, err := want.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var got identity.KeyHash
	if err := got.UnmarshalText(text); err != nil || got != want {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "zz", string(text[:62]), string(text[:62]) + "zz"} {
		if err := got.UnmarshalText([]byte(bad)); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: got %v, want an invalid refusal", bad, err)
		}
	}
}
