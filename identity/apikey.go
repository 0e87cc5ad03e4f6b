package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// SchemeAPIKey is the scheme of tokens looked up by name.
const SchemeAPIKey = "api_key"

// KeyHash is the hash of a token.
type KeyHash [sha256.Size]byte

// HashKey hashes a token. Tokens are long and random, so no salt is needed.
func HashKey(token string) KeyHash { return sha256.Sum256([]byte(token)) }

// Matches reports, in constant time, whether a token is the one hashed.
func (h KeyHash) Matches(token string) bool {
	other := HashKey(token)
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash as hex.
func (h KeyHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *KeyHash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fault.New(fault.Invalid, "a key's hash has %d hex digits, not %d", 2*len(h), len(text))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return fault.Wrap(fault.Invalid, err, "a key's hash is not hex: %v", err)
	}
	return nil
}

// APIKey proves identities by token, looked up by the passport's name. Several
// tokens may be valid for one name, so that one can replace another.
type APIKey struct {
	static  map[string][]KeyHash
	resolve func(ctx context.Context, name string) ([]KeyHash, error)
	verify  func(name, token string) (known, ok bool)
}

// NewAPIKey makes an authenticator from tokens by name, kept as hashes, and a
// resolver for all other names. Either may be nil.
func NewAPIKey(tokens map[string]string, resolve func(ctx context.Context, name string) ([]KeyHash, error)) *APIKey {
	a := &APIKey{static: make(map[string][]KeyHash, len(tokens)), resolve: resolve}
	for name, token := range tokens {
		a.static[name] = []KeyHash{HashKey(token)}
	}
	return a
}

// NewAPIKeyStore makes an authenticator from keys that are stored elsewhere:
// known reports whether a name has any, ok whether the token is one of them.
func NewAPIKeyStore(verify func(name, token string) (known, ok bool)) *APIKey {
	return &APIKey{verify: verify}
}

// Scheme returns api_key.
func (*APIKey) Scheme() string { return SchemeAPIKey }

// Validate checks the claim's token against the keys of the passport's name.
func (a *APIKey) Validate(ctx context.Context, p *Passport, claim []byte) error {
	token, ok := Token(claim)
	if !ok {
		return fault.New(fault.AuthFailed, "api_key claim is missing required string field 'token'").Because(fault.NeedsAPIKey)
	}
	known, matched, err := a.check(ctx, p.Name, token)
	switch {
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "the keys of %q cannot be read: %v", p.Name, err)
	case !known:
		return fault.New(fault.AuthFailed, "no api_key registered for %q; an operator makes one with: parley keys add --agent NAME", p.Name).Because(fault.NeedsAPIKey)
	case !matched:
		return fault.New(fault.AuthFailed, "api_key mismatch for %q", p.Name).Because(fault.NeedsAPIKey)
	}
	return nil
}

func (a *APIKey) check(ctx context.Context, name, token string) (known, matched bool, err error) {
	if a.verify != nil {
		known, matched = a.verify(name, token)
		return known, matched, nil
	}
	keys, ok := a.static[name]
	if !ok && a.resolve != nil {
		if keys, err = a.resolve(ctx, name); err != nil {
			return false, false, err
		}
	}
	for _, key := range keys {
		// Every key is compared, so that the time does not tell which one it
		// was.
		matched = key.Matches(token) || matched
	}
	return len(keys) > 0, matched, nil
}

// Token returns the token of an api_key claim, or "" if it is not a non-empty string.
func Token(claim []byte) (string, bool) {
	var fields struct {
		Token jsontext.Value `json:"token"`
	}
	if len(claim) == 0 || json.Unmarshal(claim, &fields) != nil || fields.Token.Kind() != '"' {
		return "", false
	}
	var token string
	if json.Unmarshal(fields.Token, &token) != nil {
		return "", false
	}
	return token, token != ""
}
