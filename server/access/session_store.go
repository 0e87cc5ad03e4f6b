package access

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-hub/parley/hub"
)

// kindSession is the kind of the documents that hold sessions, by id.
const kindSession = "console-session"

// Load reads the sessions of a store and keeps them there from now on.
// Sessions whose key is gone are skipped; the next change removes them.
func (s *Sessions) Load(ctx context.Context, store Store) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	all, err := documents(ctx, store, kindSession)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, data := range all {
		var entry storedSession
		if err := json.Unmarshal(data, &entry); err != nil {
			return fmt.Errorf("sessions: session %s cannot be read: %w", id, err)
		}
		s.byID[id] = entry
	}
	s.store = store
	return nil
}

// endOrphans ends the sessions whose key is gone. They are invalid in any
// case: find and Keys.Stands look for the key.
func (s *Sessions) endOrphans() {
	s.writing.Lock()
	defer s.writing.Unlock()
	for {
		gone := s.orphans()
		if len(gone) == 0 {
			return
		}
		// A session that stays in the store because of an error has no key
		// either.
		_ = s.edit(context.Background(), removals(gone))
		s.mu.Lock()
		for _, session := range gone {
			delete(s.byID, session.ID)
		}
		s.mu.Unlock()
	}
}

// orphans returns some of the sessions whose key is gone.
func (s *Sessions) orphans() (list []Session) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, entry := range s.byID {
		if _, ok := s.keys.byIDOf(entry.Key); !ok && len(list) < sessionEdits {
			list = append(list, entry.Session)
		}
	}
	return list
}

func removals(gone []Session) []hub.DocumentEdit {
	edits := make([]hub.DocumentEdit, 0, len(gone)+1)
	for _, session := range gone {
		edits = append(edits, hub.DocumentEdit{Kind: kindSession, Name: session.ID, Remove: true})
	}
	return edits
}

func (s *Sessions) edit(ctx context.Context, edits []hub.DocumentEdit, notes ...hub.AuditNote) error {
	if s.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	_, err := s.store.EditDocuments(ctx, edits, notes...)
	return err
}
