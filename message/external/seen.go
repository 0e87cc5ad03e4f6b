package external

import (
	"crypto/md5" //nolint:gosec // a key that must match other hosts', not a secret
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/message/value"
)

const seenPrefix = "wp_agent_message_seen_"

// Key returns the key under which a provider's message is remembered. There is
// none for an empty provider or id.
func Key(provider, messageID string) (string, bool) {
	provider, messageID = fold(provider), value.Trim(messageID)
	if provider == "" || messageID == "" {
		return "", false
	}
	return seenPrefix + digest(provider+":"+messageID), true
}

func digest(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// Seen remembers which inbound messages were accepted, so that a redelivery is
// recognized. Mark after a message was accepted, and keep the mark for as long
// as the provider redelivers: days, not minutes.
type Seen struct {
	now   func() time.Time
	limit int

	mu      sync.Mutex
	expires map[string]time.Time
}

// DefaultSeenLimit is how many marks a Seen holds by default.
const DefaultSeenLimit = 1 << 20

// NewSeen returns an empty memory for at most limit marks, or the default; now
// is called for every decision.
func NewSeen(now func() time.Time, limit int) *Seen {
	if limit < 1 {
		limit = DefaultSeenLimit
	}
	return &Seen{now: now, limit: limit, expires: map[string]time.Time{}}
}

// Has reports whether the message is marked.
func (s *Seen) Has(provider, messageID string) bool {
	key, ok := Key(provider, messageID)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live(key)
}

// Mark remembers a message for ttlSeconds. Without a key, or for less than a
// second, nothing is stored.
func (s *Seen) Mark(provider, messageID string, ttlSeconds int64) {
	s.mark(provider, messageID, ttlSeconds, true)
}

// MarkIfUnseen marks a message and reports whether it was not marked before,
// in one step: of several concurrent callers, one gets true. Without a key all
// do, because nothing can be remembered.
func (s *Seen) MarkIfUnseen(provider, messageID string, ttlSeconds int64) bool {
	return s.mark(provider, messageID, ttlSeconds, false)
}

// Forget removes a mark.
func (s *Seen) Forget(provider, messageID string) {
	if key, ok := Key(provider, messageID); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.expires, key)
	}
}

func (s *Seen) mark(provider, messageID string, ttlSeconds int64, again bool) bool {
	key, ok := Key(provider, messageID)
	if !ok {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen := !s.live(key)
	if ttlSeconds >= 1 && (unseen || again) {
		s.makeRoom()
		s.expires[key] = s.now().Add(time.Duration(min(ttlSeconds, int64(maxTTL/time.Second))) * time.Second)
	}
	return unseen
}

// maxTTL keeps a lifetime within the range of a duration.
const maxTTL = 100 * 365 * 24 * time.Hour

func (s *Seen) live(key string) bool {
	expires, ok := s.expires[key]
	return ok && s.now().Before(expires)
}

// makeRoom keeps the memory within its limit: expired marks go, and if that is
// not enough, the tenth of all marks that would expire first.
func (s *Seen) makeRoom() {
	if len(s.expires) < s.limit {
		return
	}
	now := s.now()
	maps.DeleteFunc(s.expires, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	if len(s.expires) < s.limit {
		return
	}
	keys := slices.SortedFunc(maps.Keys(s.expires), func(a, b string) int { return s.expires[a].Compare(s.expires[b]) })
	for _, key := range keys[:s.limit/10+1] {
		delete(s.expires, key)
	}
}
