package hpd

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"sync"
)

// locks are one lock for each branch that something is done to now.
type locks struct {
	mu   sync.Mutex
	held map[string]*heldLock
}

type heldLock struct {
	mu   sync.Mutex
	uses int
}

// lock waits for a branch's lock. The caller calls unlock.
func (l *locks) lock(channelID string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*heldLock{}
	}
	h := l.held[channelID]
	if h == nil {
		h = &heldLock{}
		l.held[channelID] = h
	}
	h.uses++
	l.mu.Unlock()
	h.mu.Lock()
	return func() {
		h.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.uses--; h.uses == 0 {
			delete(l.held, channelID)
		}
	}
}

// mintedID is what newID makes.
var mintedID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// newID makes an id of 32 hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newSpan makes the id of a span.
func newSpan() string { return newID()[:16] }
