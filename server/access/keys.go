package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

const (
	tokenPrefix  = "parley_"
	idBytes      = 6
	secretBytes  = 32
	saltBytes    = 16
	maxAgentName = 256
	maxKeys      = 10_000
	leastGiven   = 24 // characters of a token that was made elsewhere
	mostGiven    = 512
)

// Key is an access key without its secret.
type Key struct {
	ID      string    `json:"id"`
	Role    Role      `json:"role"`
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
}

// stored is a key as it is stored: its token can be verified, not read.
type stored struct {
	Key
	Order int    `json:"order,omitempty"` // grows with each key that is made
	Salt  string `json:"salt"`
	Hash  string `json:"hash"`
	// Given says that the token was made elsewhere and does not hold the key's
	// id. All such keys have one salt, so that a token is hashed once to find its
	// key.
	Given bool `json:"given,omitempty"`
}

// Keys are the access keys of one hub. They are kept hashed: a token has 256
// random bits, so one round of SHA-256 with a salt is enough.
type Keys struct {
	store Store // nil: they last as long as the process
	now   func() time.Time

	giving  sync.Mutex // held while a token is given
	writing sync.Mutex // held while they change
	mu      sync.RWMutex
	claimed bool
	list    []stored // oldest first
	byID    map[string]stored
	given   map[string]stored // tokens that were made elsewhere, by hash
	salt    []byte            // of those
	agents  map[string]bool   // that a key was ever made for
	changed []func()

	failures *Failures         // nil: failures are not reported
	count    func(door string) // nil: failures are not counted
	sessions atomic.Pointer[Sessions]
	lasting  lasting
}

// NewKeys returns keys without any. They last as long as the process, unless Load
// gives them a store.
func NewKeys() *Keys { return &Keys{now: time.Now} }

// OnFailure sets the function that is called with failed authentications, a
// bounded number of them. It is set before the keys are used.
func (k *Keys) OnFailure(tell func(Failure)) { k.failures = NewFailures(tell) }

// CountFailures sets the function that is called with the door of every failed
// authentication. It is set before the keys are used.
func (k *Keys) CountFailures(count func(door string)) { k.count = count }

// Failed notes that a client at a remote address showed no valid key at a door,
// and the name that it claimed, if any.
func (k *Keys) Failed(remote, door, name string) {
	if k.count != nil {
		k.count(door)
	}
	if k.failures != nil {
		k.failures.Note(remote, door, name)
	}
}

// OnChange sets a function that is called after each change of the keys,
// before the request that changed them is answered. Long-lived connections
// then check their callers again.
func (k *Keys) OnChange(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = append(k.changed, fn)
}

func (k *Keys) tell() {
	k.recheck()
	k.mu.RLock()
	told := slices.Clone(k.changed)
	k.mu.RUnlock()
	for _, fn := range told {
		fn()
	}
}

// Add makes a key for a role, or for the named agent, and returns its token.
// The token is returned once and never stored. By is who asked for it.
func (k *Keys) Add(ctx context.Context, role Role, agent string, by *hub.Caller) (token string, key Key, err error) {
	if err := checkGrant(role, agent); err != nil {
		return "", Key{}, err
	}
	id, secret, salt := random(idBytes), random(secretBytes), random(saltBytes)
	key = Key{ID: hex.EncodeToString(id), Role: role, Agent: agent, Created: k.now().UTC().Truncate(time.Second)}
	token = tokenPrefix + key.ID + "_" + base64.RawURLEncoding.EncodeToString(secret)
	entry := stored{Key: key, Salt: hex.EncodeToString(salt), Hash: hash(salt, token)}
	if err := k.add(ctx, entry, by); err != nil {
		return "", Key{}, err
	}
	k.tell()
	return token, key, nil
}

// Give makes a key from a token that an agent has already, so that its clients
// need not change. The token must be too long to guess.
func (k *Keys) Give(ctx context.Context, agent, token string, by *hub.Caller) (Key, error) {
	if err := checkGrant(Agent, agent); err != nil {
		return Key{}, err
	}
	switch {
	case strings.HasPrefix(token, tokenPrefix):
		return Key{}, fault.New(fault.Invalid, "a token that begins with %q is made by a hub and cannot be given to another; leave the token out to get a new one", tokenPrefix)
	case len(token) < leastGiven || len(token) > mostGiven:
		return Key{}, fault.New(fault.Invalid, "the token has %d characters; it must have %d to %d", len(token), leastGiven, mostGiven)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Key{}, fault.New(fault.Invalid, "the token has spaces or characters beyond ASCII, which HTTP clients cannot send")
	}
	key := Key{ID: hex.EncodeToString(random(idBytes)), Role: Agent, Agent: agent, Created: k.now().UTC().Truncate(time.Second)}
	if err := k.give(ctx, key, token, by); err != nil {
		return Key{}, err
	}
	k.tell()
	return key, nil
}

func (k *Keys) give(ctx context.Context, key Key, token string, by *hub.Caller) error {
	k.giving.Lock() // two requests with the same token must not both find it new
	defer k.giving.Unlock()
	if _, taken := k.resolveGiven(token); taken {
		return fault.New(fault.Conflict, "the token is in use by another key; revoke that one, or give another token")
	}
	k.mu.RLock()
	salt := k.salt
	k.mu.RUnlock()
	if salt == nil {
		salt = random(saltBytes)
	}
	return k.add(ctx, stored{Key: key, Salt: hex.EncodeToString(salt), Hash: hash(salt, token), Given: true}, by)
}

func (k *Keys) add(ctx context.Context, entry stored, by *hub.Caller) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	if len(k.list) >= maxKeys {
		return fault.New(fault.TooLarge, "there are %d keys, which is the limit; revoke one first", maxKeys)
	}
	if entry.Role == Agent && !k.agents[entry.Agent] && len(k.agents) >= maxKeys {
		return fault.New(fault.TooLarge, "keys were made for %d agents, which is the limit; use a name that has had a key", maxKeys)
	}
	entry.Order = 1
	if n := len(k.list); n > 0 {
		entry.Order = k.list[n-1].Order + 1
	}
	if err := k.storeKey(ctx, entry, by); err != nil {
		return err
	}
	k.adopt(append(slices.Clone(k.list), entry), k.agents)
	return nil
}

// adopt makes keys valid, with names that had keys before.
func (k *Keys) adopt(list []stored, known map[string]bool) {
	agents := maps.Clone(known)
	if agents == nil {
		agents = map[string]bool{}
	}
	byID := make(map[string]stored, len(list))
	given, salt := map[string]stored{}, []byte(nil)
	for _, entry := range list {
		byID[entry.ID] = entry
		if entry.Given {
			given[entry.Hash] = entry
			salt, _ = hex.DecodeString(entry.Salt) // written by add
		}
		if entry.Role == Agent {
			agents[entry.Agent] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.claimed, k.list, k.byID, k.agents, k.given, k.salt = true, list, byID, agents, given, salt
}

func checkGrant(role Role, agent string) error {
	switch role {
	case Operator, Reader:
		if agent != "" {
			return fault.New(fault.Invalid, "a key is for a role or for an agent, not for both")
		}
	case Agent:
		bad := func(r rune) bool { return unicode.IsControl(r) }
		if agent == "" || len(agent) > maxAgentName || !utf8.ValidString(agent) || strings.ContainsFunc(agent, bad) {
			return fault.New(fault.Invalid, "%q is not an agent's name: it has 1 to %d bytes of printable text", agent, maxAgentName)
		}
	default:
		return fault.New(fault.Invalid, "%q is not a role: it is %s or %s", string(role), Operator, Reader)
	}
	return nil
}

// List returns the keys, oldest first.
func (k *Keys) List() []Key {
	k.mu.RLock()
	defer k.mu.RUnlock()
	keys := make([]Key, 0, len(k.list))
	for _, entry := range k.list {
		keys = append(keys, entry.Key)
	}
	return keys
}

// Revoke removes a key; its token is invalid from then on. By is who asked for
// it.
func (k *Keys) Revoke(ctx context.Context, id string, by *hub.Caller) (Key, error) {
	key, err := k.remove(ctx, id, by)
	if err == nil {
		k.tell()
	}
	return key, err
}

func (k *Keys) remove(ctx context.Context, id string, by *hub.Caller) (Key, error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	entry, ok := k.byID[id]
	if !ok {
		return Key{}, fault.New(fault.NotFound, "there is no key %q; parley keys list shows those that exist", id)
	}
	if err := k.removeKey(ctx, entry.Key, by); err != nil {
		return Key{}, err
	}
	k.adopt(slices.DeleteFunc(slices.Clone(k.list), func(s stored) bool { return s.ID == id }), k.agents)
	return entry.Key, nil
}

// Resolve finds the key that a token belongs to.
func (k *Keys) Resolve(token string) (Key, bool) {
	id, _, ok := strings.Cut(strings.TrimPrefix(token, tokenPrefix), "_")
	if !ok || !strings.HasPrefix(token, tokenPrefix) {
		return k.resolveGiven(token)
	}
	k.mu.RLock()
	entry, ok := k.byID[id]
	k.mu.RUnlock()
	if !ok {
		return Key{}, false
	}
	salt, err := hex.DecodeString(entry.Salt)
	if err != nil || subtle.ConstantTimeCompare([]byte(hash(salt, token)), []byte(entry.Hash)) != 1 {
		return Key{}, false
	}
	return entry.Key, true
}

// resolveGiven finds the key of a token that was made elsewhere.
func (k *Keys) resolveGiven(token string) (Key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if len(k.given) == 0 || len(token) < leastGiven || len(token) > mostGiven {
		return Key{}, false
	}
	entry, ok := k.given[hash(k.salt, token)]
	return entry.Key, ok
}

// VerifyAgent reports whether the token is one of the named agent's. AG2's
// api_key scheme calls it.
func (k *Keys) VerifyAgent(name, token string) bool {
	key, ok := k.Resolve(token)
	return ok && key.Role == Agent && key.Agent == name
}

// HasAgent reports whether a key was ever made for the named agent: after it is
// revoked, the name still cannot be used without a key.
func (k *Keys) HasAgent(name string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.agents[name]
}

// Len returns how many keys there are.
func (k *Keys) Len() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.list)
}

// Claimed reports whether a first key was ever made. Until then loopback is operator;
// revoking the last key does not restore that.
func (k *Keys) Claimed() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.claimed
}

// byIDOf returns the key of an id.
func (k *Keys) byIDOf(id string) (Key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	entry, ok := k.byID[id]
	return entry.Key, ok
}

// Stands reports whether a principal is still valid: its key is not revoked
// and its session has not ended, or, if it has no key, no first key was made
// since. Long-lived connections check this again.
func (k *Keys) Stands(p Principal) bool {
	if p.Role == Anonymous {
		return true
	}
	if p.Session != "" {
		if s := k.sessions.Load(); s == nil || !s.stands(p.Session) {
			return false
		}
	}
	if p.Key == "" {
		return !k.Claimed()
	}
	_, ok := k.byIDOf(p.Key)
	return ok
}

func hash(salt []byte, token string) string {
	sum := sha256.Sum256(append(slices.Clone(salt), token...))
	return hex.EncodeToString(sum[:])
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
