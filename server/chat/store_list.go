package chat

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// List returns an owner's sessions, the newest first.
func (s *Store) List(ctx context.Context, scope transcript.Scope, owner transcript.Owner, query transcript.Query) ([]transcript.Session, error) {
	sessions := []transcript.Session{}
	skip, limit := max(0, query.Offset), query.EffectiveLimit()
	err := s.newest(ctx, scope, owner, query.After, func(channelID string, l adapter.Listed) (bool, error) {
		if query.AgentSlug != "" && l.Agent != query.AgentSlug || query.Context != "" && l.Context != query.Context {
			return true, nil
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		session, err := s.read(ctx, channelID, query.IncludeMessages)
		if errors.Is(err, transcript.ErrNotFound) {
			return true, nil
		}
		sessions = append(sessions, session)
		return len(sessions) < limit, err
	})
	return sessions, err
}

// newest calls each with an owner's sessions, the newest first, until it returns
// false.
func (s *Store) newest(ctx context.Context, scope transcript.Scope, owner transcript.Owner, after string, each func(channelID string, l adapter.Listed) (bool, error)) error {
	home, err := s.hub.FindHome(ctx, adapter.Dialect, homeName(scope, owner))
	if err != nil {
		return fault.IgnoreNotFound(err)
	}
	for {
		page, err := s.hub.Entries(ctx, hub.EntryQuery{Type: adapter.Type, Home: home.ID, Prefix: adapter.IndexListed, Before: after, Reverse: true, Limit: 100})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			var l adapter.Listed
			if err := json.Unmarshal(e.Value, &l); err != nil {
				return fault.Wrap(fault.Internal, err, "the list of sessions cannot be read: %v", err)
			}
			if more, err := each(e.Channel, l); err != nil || !more {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// RecentPending checks only the newest matching session.
func (s *Store) RecentPending(ctx context.Context, scope transcript.Scope, owner transcript.Owner, query transcript.PendingQuery) (transcript.Session, error) {
	window, wanted := cmp.Or(query.Window, transcript.DefaultWindow), cmp.Or(query.Context, transcript.DefaultContext)
	found := transcript.Session{}
	err := s.newest(ctx, scope, owner, "", func(channelID string, l adapter.Listed) (bool, error) {
		if l.Context != wanted || s.hub.Clock().Sub(l.Created) > window {
			return true, nil
		}
		session, err := s.read(ctx, channelID, true)
		if errors.Is(err, transcript.ErrNotFound) {
			return true, nil
		}
		if err != nil || query.TokenID != "" && value.Text(session.Metadata.At("token_id")) != query.TokenID {
			return err == nil, err
		}
		state, err := s.state(ctx, channelID)
		if err != nil {
			return false, missing(err)
		}
		if len(session.Messages) == 0 || s.locked(state) {
			found = session
		}
		return false, nil
	})
	if err == nil && found.ID == "" {
		err = transcript.ErrNotFound
	}
	return found, err
}
