package transcript

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// DefaultCapacity is how many sessions a Memory holds by default.
const DefaultCapacity = 100000

// Memory is a store in memory. It holds JSON, as every other store does.
type Memory struct {
	now      func() time.Time
	capacity int

	mu       sync.Mutex
	sessions map[string]*stored
	created  uint64    // sessions ever
	order    []*stored // as listed
}

type stored struct {
	row       Session // without messages
	rows      [][]byte
	createdAt time.Time
	number    uint64 // of its creation
	lock      string
	lockEnds  time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store for at most capacity sessions, or the
// default.
func NewMemory(now func() time.Time, capacity int) *Memory {
	if capacity < 1 {
		capacity = DefaultCapacity
	}
	return &Memory{now: now, capacity: capacity, sessions: map[string]*stored{}}
}

// Create implements Store.
func (m *Memory) Create(_ context.Context, scope Scope, owner Owner, create Create) (string, error) {
	if err := value.Check(value.Of(create.Metadata), 1); err != nil {
		return "", fmt.Errorf("transcript: metadata must be JSON serializable: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions) >= m.capacity {
		return "", ErrFull
	}
	now := m.now()
	s := &stored{
		row: Session{
			ID:        newUUID(),
			Scope:     scope,
			Owner:     owner,
			AgentSlug: create.AgentSlug,
			Metadata:  create.Metadata.Clone(),
			Context:   create.Context,
			CreatedAt: message.FormatTime(now),
			UpdatedAt: message.FormatTime(now),
		},
		createdAt: now,
		number:    m.created,
	}
	m.created++
	s.row.Cursor = s.cursor()
	s.row.Context = cmp.Or(s.row.Context, DefaultContext)
	m.sessions[s.row.ID] = s
	at, _ := slices.BinarySearchFunc(m.order, s.row.Cursor, before)
	m.order = slices.Insert(m.order, at, s)
	return s.row.ID, nil
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, id string) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[value.Trim(id)]
	if !ok {
		return Session{}, ErrNotFound
	}
	return s.read(true), nil
}

// Update implements Store.
func (m *Memory) Update(_ context.Context, id string, update Update) (bool, error) {
	rows, err := Rows(update.Messages)
	if err != nil {
		return false, err
	}
	if err := value.Check(value.Of(update.Metadata), 1); err != nil {
		return false, fmt.Errorf("transcript: metadata must be JSON serializable: %w", err)
	}
	return m.change(id, func(s *stored) {
		s.rows = rows
		s.row.Metadata = update.Metadata.Clone()
		if update.Provider != "" {
			s.row.Provider = update.Provider
		}
		if update.Model != "" {
			s.row.Model = update.Model
		}
		if update.ProviderResponseID != nil {
			s.row.ProviderResponseID = copied(update.ProviderResponseID)
		}
	}), nil
}

// SetTitle implements Store.
func (m *Memory) SetTitle(_ context.Context, id, title string) (bool, error) {
	return m.change(id, func(s *stored) { s.row.Title = title }), nil
}

func (m *Memory) change(id string, apply func(*stored)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[id]
	if !ok {
		return false
	}
	apply(s)
	s.row.UpdatedAt = message.FormatTime(m.now())
	return true
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[id]; ok {
		delete(m.sessions, id)
		at, _ := slices.BinarySearchFunc(m.order, s.row.Cursor, before)
		m.order = slices.Delete(m.order, at, at+1)
	}
	return true, nil
}

// Rows returns the stored messages of a session, unchanged.
func (m *Memory) Rows(id string) [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[id]; ok {
		return slices.Clone(s.rows)
	}
	return nil
}

// Import puts rows into a session unchanged, as a copy from elsewhere would.
func (m *Memory) Import(id string, rows [][]byte) bool {
	return m.change(id, func(s *stored) { s.rows = slices.Clone(rows) })
}

func (s *stored) read(withMessages bool) Session {
	row := s.row
	row.Metadata = row.Metadata.Clone()
	row.ProviderResponseID = copied(row.ProviderResponseID)
	if withMessages {
		row.Messages = make([]Row, 0, len(s.rows))
		for _, raw := range s.rows {
			row.Messages = append(row.Messages, ReadRow(raw))
		}
	}
	return row
}

// copied copies a text, so that callers cannot change what is stored.
func copied(text *string) *string {
	if text == nil {
		return nil
	}
	own := *text
	return &own
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
