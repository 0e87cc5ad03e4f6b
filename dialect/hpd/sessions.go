package hpd

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

func marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot be written: %v", err)
	}
	return data, nil
}

// sessionBody is a session as routes answer it.
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
	id := strings.TrimSpace(deref(in.SessionID))
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

// checkMetadata bounds a session's metadata before anything is made of it. Keys
// that are null are not kept.
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

// sessionQuery is how sessions are listed.
type sessionQuery struct {
	byCreation bool
	ascending  bool
	offset     int
	limit      int
}

func parseSessionQuery(c *call, most int) (q sessionQuery, err error) {
	q.limit = most
	values := c.URL.Query()
	number := func(name string, into *int) error {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fault.New(fault.Invalid, "`%s` is %.40q; it is a number from 0", name, text)
		}
		*into = n
		return nil
	}
	if err := number("limit", &q.limit); err != nil {
		return q, err
	}
	if err := number("offset", &q.offset); err != nil {
		return q, err
	}
	q.limit = min(q.limit, most)
	switch by := values.Get("sortBy"); {
	case by == "" || strings.EqualFold(by, "lastActivity"):
	case strings.EqualFold(by, "createdAt"):
		q.byCreation = true
	default:
		return q, fault.New(fault.Invalid, "`sortBy` is %.40q; it is createdAt or lastActivity", by)
	}
	switch way := values.Get("sortDirection"); {
	case way == "" || strings.EqualFold(way, "desc"):
	case strings.EqualFold(way, "asc"):
		q.ascending = true
	default:
		return q, fault.New(fault.Invalid, "`sortDirection` is %.40q; it is asc or desc", way)
	}
	return q, nil
}

func (s *Server) listSessions(c *call) error {
	q, err := parseSessionQuery(c, s.cfg.Limits.Sessions)
	if err != nil {
		return err
	}
	return s.answerSessions(c, q, nil)
}

func (s *Server) searchSessions(c *call) error {
	var in wire.SearchSessions
	if err := c.read(&in); err != nil {
		return err
	}
	q := sessionQuery{limit: wire.DefaultSearchLimit}
	for _, field := range []struct {
		name string
		from *int64
		to   *int
	}{{"limit", in.Limit, &q.limit}, {"offset", in.Offset, &q.offset}} {
		if field.from == nil {
			continue
		}
		if *field.from < 0 {
			return fault.New(fault.Invalid, "`%s` is %d; it is a number from 0", field.name, *field.from)
		}
		*field.to = int(min(*field.from, int64(1<<31)))
	}
	q.limit = min(q.limit, s.cfg.Limits.Sessions)
	return s.answerSessions(c, q, in.Metadata)
}

// answerSessions answers with the sessions that the caller may see and that
// have the wanted metadata.
func (s *Server) answerSessions(c *call, q sessionQuery, want map[string]wire.Raw) error {
	all, err := s.sessions(c.Context())
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b adapter.SessionSummary) int {
		order := a.Active.Compare(b.Active)
		if q.byCreation {
			order = a.Created.Compare(b.Created)
		}
		order = cmp.Or(order, cmp.Compare(a.Channel, b.Channel))
		if !q.ascending {
			order = -order
		}
		return order
	})
	bodies := []wire.Session{}
	for _, x := range all {
		if len(bodies) == q.limit {
			break
		}
		body, err := sessionBody(x)
		if err != nil {
			return err
		}
		if !wire.MatchesMetadata(body.Metadata, want) {
			continue
		}
		seen, err := s.seesSession(c.Context(), c.who, session{id: x.Session, home: hub.HomeOf(x.Channel), main: x.Channel})
		if err != nil {
			return err
		}
		if !seen {
			continue
		}
		if q.offset > 0 {
			q.offset--
			continue
		}
		bodies = append(bodies, body)
	}
	return c.write(http.StatusOK, bodies)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
