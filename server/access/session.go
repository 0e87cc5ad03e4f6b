package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// SessionLimits bound the sessions of browsers.
type SessionLimits struct {
	Lasts time.Duration // console.session; 0: 12 h
	Most  int           // console.sessions; 0: 1,000
}

// Session is a browser that signed in with a key, without its secrets.
type Session struct {
	ID        string    `json:"id"`
	Key       string    `json:"key"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Address   string    `json:"address"` // from where it signed in
}

// storedSession is a session as it is stored: its halves can be verified, not
// read.
type storedSession struct {
	Session
	Cookie string `json:"cookie_hash"`
	Proof  string `json:"proof_hash"`
}

// SignedIn is a new session with its two halves, which are returned once.
type SignedIn struct {
	Session
	Cookie string
	Proof  string
}

// Sessions are the browsers that are signed in. Each has two secrets of 256
// random bits: one in a cookie, and one that a page keeps and sends in a header.
// A session has the rights of its key and ends with it.
type Sessions struct {
	keys   *Keys
	store  Store // nil: they last as long as the process
	limits SessionLimits
	logins *Failures // bounds failed attempts for each address

	writing sync.Mutex // held while they change
	mu      sync.RWMutex
	byID    map[string]storedSession
	codes   map[string]code // by hash
}

// NewSessions returns the sessions of a hub's keys, without any.
func NewSessions(keys *Keys, limits SessionLimits) *Sessions {
	s := &Sessions{
		keys: keys, limits: SessionLimits{Lasts: cmp.Or(limits.Lasts, 12*time.Hour), Most: cmp.Or(limits.Most, 1000)},
		logins: NewFailures(func(Failure) {}), byID: map[string]storedSession{}, codes: map[string]code{},
	}
	keys.sessions.Store(s)
	keys.OnChange(s.endOrphans)
	return s
}

// start makes a session for a key.
func (s *Sessions) start(ctx context.Context, key Key, address string) (SignedIn, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	now := s.keys.now().UTC()
	gone, err := s.makeRoom(key.ID, now)
	if err != nil {
		return SignedIn{}, err
	}
	id := hex.EncodeToString(random(idBytes))
	made := SignedIn{
		Session: Session{
			ID: id, Key: key.ID, CreatedAt: now.Truncate(time.Second), ExpiresAt: now.Add(s.limits.Lasts).Truncate(time.Second), Address: networkOf(address),
		},
		Cookie: id + "_" + base64.RawURLEncoding.EncodeToString(random(secretBytes)),
		Proof:  base64.RawURLEncoding.EncodeToString(random(secretBytes)),
	}
	entry := storedSession{Session: made.Session, Cookie: digest(made.Cookie), Proof: digest(made.Proof)}
	note := hub.AuditNote{Kind: "session_started", Fields: map[string]any{"session": id, "key": key.ID, "address": made.Address}}
	put := documentOf(kindSession, id, entry)
	err = s.edit(ctx, append(removals(gone), put), note)
	if len(gone) > 0 && fault.CodeOf(err) == fault.NotFound { // an earlier removal whose answer was lost
		err = s.edit(ctx, []hub.DocumentEdit{put}, note)
	}
	if err != nil {
		return SignedIn{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range gone {
		delete(s.byID, old.ID)
	}
	s.byID[id] = entry
	return made, nil
}

// sessionEdits is how many sessions are removed with one edit, besides a new one.
const sessionEdits = 60

// makeRoom returns the sessions that a new one of a key replaces: some that have
// expired, and at the limit, the key's oldest.
func (s *Sessions) makeRoom(key string, now time.Time) (gone []Session, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var oldest *storedSession
	for _, entry := range s.byID {
		if !entry.ExpiresAt.After(now) && len(gone) < sessionEdits {
			gone = append(gone, entry.Session)
		}
		if entry.Key == key && (oldest == nil || entry.CreatedAt.Before(oldest.CreatedAt)) {
			oldest = &entry
		}
	}
	switch {
	case len(s.byID)-len(gone) < s.limits.Most:
		return gone, nil
	case oldest == nil:
		return nil, fault.New(fault.Unavailable, "%d sessions are open, which is the limit (console.sessions); end one, or wait until one expires", len(s.byID))
	}
	return append(gone, oldest.Session), nil
}

// find returns the session of a cookie and its proof, with its key. One half
// without the other finds nothing.
func (s *Sessions) find(cookie, proof string) (Session, Key, bool) {
	id, _, ok := strings.Cut(cookie, "_")
	if !ok || proof == "" {
		return Session{}, Key{}, false
	}
	s.mu.RLock()
	entry, ok := s.byID[id]
	s.mu.RUnlock()
	if !ok || !entry.ExpiresAt.After(s.keys.now()) || !equalSecrets(digest(cookie), entry.Cookie) || !equalSecrets(digest(proof), entry.Proof) {
		return Session{}, Key{}, false
	}
	key, ok := s.keys.byIDOf(entry.Key)
	return entry.Session, key, ok
}

// stands reports whether a session is still valid.
func (s *Sessions) stands(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	entry, ok := s.byID[id]
	return ok && entry.ExpiresAt.After(s.keys.now())
}

// Session returns a valid session.
func (s *Sessions) Session(id string) (Session, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	entry, ok := s.byID[id]
	return entry.Session, ok && entry.ExpiresAt.After(s.keys.now())
}

// List returns the valid sessions, the oldest first; of one key unless it is
// empty.
func (s *Sessions) List(key string) []Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list, now := []Session{}, s.keys.now()
	for _, entry := range s.byID {
		if entry.ExpiresAt.After(now) && (key == "" || key == entry.Key) {
			list = append(list, entry.Session)
		}
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID)) })
	return list
}

// End ends a session and its open requests. By is who asked for it.
func (s *Sessions) End(ctx context.Context, id string, by *hub.Caller) error {
	if err := s.end(ctx, id, by); err != nil {
		return err
	}
	s.keys.tell()
	return nil
}

func (s *Sessions) end(ctx context.Context, id string, by *hub.Caller) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.RLock()
	entry, ok := s.byID[id]
	s.mu.RUnlock()
	if !ok {
		return fault.New(fault.NotFound, "there is no session %.40q", id)
	}
	note := hub.AuditNote{Kind: "session_ended", Fields: map[string]any{"session": id, "key": entry.Key}, By: by}
	if err := s.edit(ctx, removals([]Session{entry.Session}), note); err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	return nil
}

// digest hashes a secret. It has 256 random bits, so that neither salt nor rounds
// are needed.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
