package external

import (
	"slices"
	"strings"
	"sync"
)

const sessionPrefix = "wp_agent_channel_session_"

// SessionKey returns the key under which an external conversation's session is
// kept. The conversation's id is used as it is.
func SessionKey(connectorID, conversationID, agent string) string {
	return sessionPrefix + digest(strings.Join([]string{fold(connectorID), conversationID, fold(agent)}, ":"))
}

// DefaultSessionLimit is how many conversations a Sessions holds by default.
const DefaultSessionLimit = 1 << 20

// Sessions maps external conversations to sessions. Past its limit the
// conversations that were set longest ago are forgotten.
type Sessions struct {
	limit int

	mu    sync.Mutex
	ids   map[string]string
	order []string // keys in the order in which they were first set
}

// NewSessions returns an empty map for at most limit conversations, or the
// default.
func NewSessions(limit int) *Sessions {
	if limit < 1 {
		limit = DefaultSessionLimit
	}
	return &Sessions{limit: limit, ids: map[string]string{}}
}

// Get returns the session of a conversation, or "".
func (s *Sessions) Get(connectorID, conversationID, agent string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[SessionKey(connectorID, conversationID, agent)]
}

// Set remembers the session of a conversation.
func (s *Sessions) Set(connectorID, conversationID, agent, sessionID string) {
	key := SessionKey(connectorID, conversationID, agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ids[key]; !known {
		if len(s.order) >= s.limit {
			delete(s.ids, s.order[0])
			s.order = s.order[1:]
		}
		s.order = append(s.order, key)
	}
	s.ids[key] = sessionID
}

// Delete removes the session of a conversation.
func (s *Sessions) Delete(connectorID, conversationID, agent string) {
	key := SessionKey(connectorID, conversationID, agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ids[key]; known {
		delete(s.ids, key)
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	}
}
