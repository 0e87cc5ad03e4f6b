package transcript

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/message/value"
)

// cursor returns a key that sorts as sessions are listed: the latest moment
// first, and within one moment the latest creation.
func (s *stored) cursor() string {
	return fmt.Sprintf("%016x-%016x", math.MaxUint64-uint64(s.createdAt.UnixNano()), math.MaxUint64-s.number)
}

func before(s *stored, cursor string) int { return strings.Compare(s.row.Cursor, cursor) }

// List implements Store.
func (m *Memory) List(_ context.Context, scope Scope, owner Owner, query Query) ([]Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := 0
	if query.After != "" {
		found := false
		if start, found = slices.BinarySearchFunc(m.order, query.After, before); found {
			start++
		}
	}
	limit, skip := query.EffectiveLimit(), max(0, query.Offset)
	page := []Session{}
	for _, s := range m.order[start:] {
		if !s.matches(scope, owner, query.AgentSlug, query.Context) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if page = append(page, s.read(query.IncludeMessages)); len(page) == limit {
			break
		}
	}
	return page, nil
}

// RecentPending implements Store.
func (m *Memory) RecentPending(_ context.Context, scope Scope, owner Owner, query PendingQuery) (Session, error) {
	window, wanted := query.Window, query.Context
	window = cmp.Or(window, DefaultWindow)
	wanted = cmp.Or(wanted, DefaultContext)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, s := range m.order {
		if !s.matches(scope, owner, "", wanted) || now.Sub(s.createdAt) > window {
			continue
		}
		if query.TokenID != "" && value.Text(s.row.Metadata.At("token_id")) != query.TokenID {
			continue
		}
		if len(s.rows) == 0 || s.locked(now) {
			return s.read(true), nil
		}
		return Session{}, ErrNotFound
	}
	return Session{}, ErrNotFound
}

func (s *stored) matches(scope Scope, owner Owner, agent, context string) bool {
	return s.row.Scope == scope && s.row.Owner == owner &&
		(agent == "" || s.row.AgentSlug == agent) &&
		(context == "" || s.row.Context == context)
}

func (s *stored) locked(now time.Time) bool { return s.lock != "" && now.Before(s.lockEnds) }

// Acquire implements Locker.
func (m *Memory) Acquire(_ context.Context, id string, ttl time.Duration) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[id]
	now := m.now()
	if !ok || s.locked(now) {
		return "", nil
	}
	s.lock = rand.Text()
	s.lockEnds = now.Add(LockTTL(ttl))
	return s.lock, nil
}

// Release implements Locker.
func (m *Memory) Release(_ context.Context, id, token string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[id]
	if !ok || token == "" || s.lock != token {
		return false, nil
	}
	s.lock = ""
	return true, nil
}
