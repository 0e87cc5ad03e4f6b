package hpd

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// sessionQuery selects and orders a list of sessions.
type sessionQuery struct {
	byCreation bool
	ascending  bool
	offset     int
	limit      int
	foreign    bool // include channels of other dialects
	count      bool // return the number of sessions
}

// page returns the requested part of a list. Without a limit it is as much as one
// answer may hold.
func (c *call) page(most int) (offset, limit int, err error) {
	limit = most
	for name, into := range map[string]*int{"limit": &limit, "offset": &offset} {
		text := c.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, 0, fault.New(fault.Invalid, "`%s` is %.40q; it is a number from 0", name, text)
		}
		*into = n
	}
	return offset, min(limit, most), nil
}

func parseSessionQuery(c *call, most int) (q sessionQuery, err error) {
	if q.offset, q.limit, err = c.page(most); err != nil {
		return q, err
	}
	values := c.URL.Query()
	switch by := values.Get("sortBy"); {
	case by == "" || strings.EqualFold(by, "lastActivity"):
	case strings.EqualFold(by, "createdAt"):
		q.byCreation = true
	default:
		return q, fault.New(fault.Invalid, "`sortBy` is %.40q; it is createdAt or lastActivity", by)
	}
	for name, into := range map[string]*bool{"foreign": &q.foreign, "count": &q.count} {
		switch text := values.Get(name); text {
		case "", "false":
		case "true":
			*into = true
		default:
			return q, fault.New(fault.Invalid, "`%s` is %.40q; it is true or false", name, text)
		}
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

// answerSessions writes the sessions that the caller may see and that have the
// wanted metadata.
func (s *Server) answerSessions(c *call, q sessionQuery, want map[string]wire.Raw) error {
	all, err := s.sessions(c.Context())
	if err != nil {
		return err
	}
	others := map[string]bool{} // channels that were looked up as the caller
	if q.foreign {
		list, err := s.foreignSessions(c.Context(), c.who)
		if err != nil {
			return err
		}
		for _, x := range list {
			others[x.Channel] = true
		}
		all = append(all, list...)
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
	total := hub.Total{Exact: true}
	for _, x := range all {
		full := len(bodies) == q.limit
		if full && (!q.count || !total.Exact) {
			break
		}
		body, err := sessionBody(x)
		if err != nil {
			return err
		}
		if !wire.MatchesMetadata(body.Metadata, want) {
			continue
		}
		seen := others[x.Channel]
		if !seen {
			seen, err = s.seesSession(c.Context(), c.who, session{id: x.Session, home: hub.HomeOf(x.Channel), main: x.Channel})
		}
		if err != nil {
			return err
		}
		if !seen {
			continue
		}
		if total.Exact = total.Add(); full {
			continue
		}
		if q.offset > 0 {
			q.offset--
			continue
		}
		bodies = append(bodies, body)
	}
	if q.count {
		c.w.Header().Set(hub.HeaderTotal, total.String())
	}
	return c.write(http.StatusOK, bodies)
}
