package identity

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/fault"
)

// SchemeNone is the scheme that requires no proof.
const SchemeNone = "none"

// Authenticator proves identities under one scheme. An error without a code of
// the catalogue counts as a failed proof.
type Authenticator interface {
	Scheme() string
	Validate(ctx context.Context, p *Passport, claim []byte) error
}

// AuthRegistry holds one authenticator for each scheme. It does not change
// once made.
type AuthRegistry struct {
	schemes map[string]Authenticator
}

// NewAuthRegistry returns a registry. If several authenticators have one scheme,
// the last one is used. Without any, the registry knows only the scheme none.
func NewAuthRegistry(authenticators ...Authenticator) *AuthRegistry {
	if len(authenticators) == 0 {
		authenticators = []Authenticator{None{}}
	}
	r := &AuthRegistry{schemes: map[string]Authenticator{}}
	for _, a := range authenticators {
		r.schemes[a.Scheme()] = a
	}
	return r
}

// Schemes lists the known schemes, sorted.
func (r *AuthRegistry) Schemes() []string { return slices.Sorted(maps.Keys(r.schemes)) }

// Verify checks a claim under a scheme for an identity. The scheme must be the
// one the identity was registered with: otherwise the scheme none would prove
// every identity. An identity that was registered with none may present a
// stronger proof.
func (r *AuthRegistry) Verify(ctx context.Context, p *Passport, scheme string, claim []byte) error {
	a, ok := r.schemes[scheme]
	if !ok {
		return fault.New(fault.AuthFailed, "unknown auth scheme %.100q; known: %s", scheme, strings.Join(r.Schemes(), ", "))
	}
	if scheme != p.Auth.Scheme && p.Auth.Scheme != SchemeNone {
		return fault.New(fault.AuthFailed, "auth scheme %q does not match the one that %q was registered with", scheme, p.Name)
	}
	if err := a.Validate(ctx, p, claim); err != nil {
		if fault.CodeOf(err) == fault.Internal {
			return fault.Wrap(fault.AuthFailed, err, "%v", err)
		}
		return err
	}
	return nil
}

// VerifyRemote checks whether an identity of another hub may be registered
// here. It proves nothing to this hub, so its peer must be accepted by the
// scheme none, if that scheme is registered.
func (r *AuthRegistry) VerifyRemote(ctx context.Context, p *Passport) error {
	none, ok := r.schemes[SchemeNone]
	if !ok {
		return nil
	}
	return none.Validate(ctx, p, nil)
}

// None accepts any claim from a peer that Allow accepts, for a name that is
// not Keyed: an identity with a key must show it. A nil Allow accepts every
// peer, and without Keyed no name has a key.
type None struct {
	Allow func(ctx context.Context) bool
	Keyed func(name string) bool
}

// Scheme returns none.
func (None) Scheme() string { return SchemeNone }

// Validate accepts any claim.
func (n None) Validate(ctx context.Context, p *Passport, _ []byte) error {
	if n.Allow != nil && !n.Allow(ctx) {
		return fault.New(fault.AuthFailed, "auth scheme none is not accepted from here; register with scheme api_key and a token").Because(fault.NeedsAPIKey)
	}
	if n.Keyed != nil && n.Keyed(p.Name) {
		return fault.New(fault.AuthFailed, "a key was made for %q, so auth scheme none does not prove it; use scheme api_key and its token", p.Name).Because(fault.NeedsAPIKey)
	}
	return nil
}

// Peer is what an authenticator may know of the connection that asks.
type Peer struct {
	Address  string
	Loopback bool
}

type peerKey struct{}

// WithPeer puts the peer into a context.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns the peer of a context; without one it is neither named nor
// loopback.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}
