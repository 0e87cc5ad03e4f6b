package access

import (
	"context"
	"encoding/base64"
	"maps"
	"time"

	"github.com/parley-hub/parley/fault"
)

// A code signs a browser in once, soon after it was made: it may be in a URL's
// fragment, where a token must not be.
const (
	codeLasts = 60 * time.Second
	maxCodes  = 1000
)

type code struct {
	key     string
	expires time.Time
}

// SignIn makes a session with the token of a key.
func (s *Sessions) SignIn(ctx context.Context, token, address string) (SignedIn, error) {
	return s.signIn(ctx, address, func() (Key, bool) { return s.keys.Resolve(token) }, "this token belongs to no key; it may have been revoked")
}

// Redeem makes a session with a code, which is invalid from then on.
func (s *Sessions) Redeem(ctx context.Context, text, address string) (SignedIn, error) {
	return s.signIn(ctx, address, func() (Key, bool) { return s.take(text) }, "this code was used, has expired, or never was one; ask for another")
}

func (s *Sessions) signIn(ctx context.Context, address string, prove func() (Key, bool), wrong string) (SignedIn, error) {
	if wait := s.logins.Wait(address); wait > 0 {
		refusal := fault.New(fault.RateLimited, "%d attempts to sign in failed from this address within a minute; wait %s", failuresPerMinute, wait.Round(time.Second))
		refusal.RetryAfter = wait
		return SignedIn{}, refusal
	}
	key, ok := prove()
	if !ok {
		s.logins.Note(address, "session", "")
		s.keys.Failed(address, "session", "")
		return SignedIn{}, fault.New(fault.AuthFailed, "%s", wrong)
	}
	return s.start(ctx, key, address)
}

// Code makes a code that signs in with a key, and returns until when it is valid.
func (s *Sessions) Code(key string) (text string, expires time.Time, err error) {
	if _, ok := s.keys.byIDOf(key); !ok {
		return "", time.Time{}, fault.New(fault.Protocol, "a code signs in with the key of the request, and this request has none; send Authorization: Bearer TOKEN")
	}
	now := s.keys.now()
	text, expires = base64.RawURLEncoding.EncodeToString(random(secretBytes)), now.Add(codeLasts)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.codes, func(_ string, c code) bool { return !c.expires.After(now) })
	if len(s.codes) >= maxCodes {
		return "", time.Time{}, fault.New(fault.Unavailable, "%d sign-in codes are not used yet, which is the limit; try again in a minute", maxCodes)
	}
	s.codes[digest(text)] = code{key, expires}
	return text, expires.UTC(), nil
}

// take invalidates a code and returns its key.
func (s *Sessions) take(text string) (Key, bool) {
	s.mu.Lock()
	c, ok := s.codes[digest(text)]
	delete(s.codes, digest(text))
	s.mu.Unlock()
	if !ok || !c.expires.After(s.keys.now()) {
		return Key{}, false
	}
	return s.keys.byIDOf(c.key)
}
