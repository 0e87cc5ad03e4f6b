package hpd

import (
	"cmp"
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

func marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot be written: %v", err)
	}
	return data, nil
}

// sessionBody returns the JSON body of a session.
func sessionBody(x adapter.SessionSummary) (wire.Session, error) {
	out := wire.Session{ID: x.Session, CreatedAt: x.Created.UTC(), LastActivity: x.Active.UTC(), Metadata: map[string]wire.Raw{}}
	if len(x.Metadata) > 0 {
		if err := json.Unmarshal(x.Metadata, &out.Metadata); err != nil {
			return out, fault.Wrap(fault.Internal, err, "the metadata of session %q cannot be read: %v", x.Session, err)
		}
	}
	if out.Metadata == nil {
		out.Metadata = map[string]wire.Raw{}
	}
	return out, nil
}

// describe reads a session's body from its main branch.
func (s *Server) describe(ctx context.Context, x session) (wire.Session, error) {
	m, err := s.hub.Channel(ctx, x.main)
	if err != nil {
		return wire.Session{}, err
	}
	state, err := s.state(ctx, x.main)
	if err != nil {
		return wire.Session{}, err
	}
	return sessionBody(adapter.SummarizeSession(m, state))
}

func (s *Server) createSession(c *call) error {
	var in wire.CreateSession
	if err := c.read(&in); err != nil {
		return err
	}
	id := givenID(in.SessionID)
	if id == "" {
		id = newID()
	} else if err := checkSessionID(id); err != nil {
		return err
	}
	ctx := c.Context()
	creator, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	metadata, err := s.checkMetadata(in.Metadata)
	if err != nil {
		return err
	}
	home, err := s.hub.Home(ctx, homeKind, id)
	if err != nil {
		return err
	}
	x := session{id: id, home: home.ID}
	name := wire.MainBranch
	x.main, err = s.openBranch(c, x, creator, name, branch.Fields{Name: &name}, metadata)
	if fault.CodeOf(err) == fault.Conflict {
		return c.refuse(http.StatusConflict, wire.CreateSessionError, "Session '"+id+"' exists.")
	}
	if err != nil {
		return err
	}
	body, err := s.describe(ctx, x)
	if err != nil {
		return err
	}
	s.location(c, "sessions", id)
	return c.write(http.StatusCreated, body)
}

// checkMetadata returns an error if a session's metadata is too large. It drops
// keys that are null.
func (s *Server) checkMetadata(metadata map[string]wire.Raw) (wire.Raw, error) {
	data, err := marshal(wire.MergeMetadata(nil, metadata))
	if limit := s.cfg.Limits.Record; err == nil && len(data) > limit-256 {
		err = fault.New(fault.TooLarge, "the session's metadata has %d bytes; at most %d are kept (limits.record)", len(data), limit-256)
	}
	return data, err
}

func (s *Server) getSession(c *call) error {
	x, err := s.session(c)
	if err != nil {
		return err
	}
	body, err := s.describe(c.Context(), x)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, body)
}

func (s *Server) updateSession(c *call) error {
	var in wire.UpdateSession
	if err := c.read(&in); err != nil {
		return err
	}
	x, err := s.session(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	sender, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	unlock := s.locks.lock(x.main)
	defer unlock()
	if in.Metadata != nil {
		now, err := s.describe(ctx, x)
		if err != nil {
			return err
		}
		metadata, err := s.checkMetadata(wire.MergeMetadata(now.Metadata, in.Metadata))
		if err != nil {
			return err
		}
		if err := s.tell(ctx, x, sender, adapter.SessionInfo{Metadata: metadata, Active: s.now()}); err != nil {
			return err
		}
	}
	body, err := s.describe(ctx, x)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, body)
}

func deref(s *string) string { return *cmp.Or(s, new(string)) }
