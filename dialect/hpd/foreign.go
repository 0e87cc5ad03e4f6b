package hpd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// foreign is a channel of another dialect as one caller sees it: a session under
// the channel's id, with the branch main. The caller can watch and answer it.
type foreign struct {
	server *Server
	meta   *channel.Metadata
	as     string // the identity whose view it is; empty sees everything
}

// foreignRoutes returns the routes that work for a channel of another dialect.
func (s *Server) foreignRoutes() map[string]func(*foreign, *call) error {
	return map[string]func(*foreign, *call) error{
		"GET /sessions/{}":                  (*foreign).getSession,
		"GET /sessions/{}/branches":         (*foreign).listBranches,
		"GET " + branchPath:                 (*foreign).getBranch,
		"GET " + branchPath + "/events":     (*foreign).getEvents,
		"GET " + livePath:                   (*foreign).live,
		"POST " + agentPath + "/inputs":     (*foreign).postInput,
		"GET " + agentPath + "/runs":        (*foreign).listRuns,
		"GET " + agentPath + "/runs/active": (*foreign).activeRun,
		"GET " + agentPath + "/requests":    (*foreign).listRequests,
		"POST " + agentPath + "/responses":  (*foreign).postResponse,
		"GET " + agentPath + "/ws":          (*foreign).websocket,
	}
}

// serveForeign serves a route for a channel of another dialect if no session has
// the id. It returns missing if no channel has the id either.
func (s *Server) serveForeign(c *call, found *route, missing error) error {
	f, err := s.foreign(c)
	if err != nil || f == nil {
		if err == nil {
			err = missing
		}
		return err
	}
	if c.path.branch != "" && c.path.branch != wire.MainBranch {
		return errNoBranch(c.path.branch, f.meta.ID)
	}
	serve, ok := s.foreignRoutes()[found.method+" "+found.path]
	if !ok {
		return c.refuse(http.StatusConflict, c.code, fmt.Sprintf("Session '%s' is a %s of another dialect; here it can be read, watched and answered: GET …/events, GET …/events/live, GET …/ws, POST …/inputs, POST …/responses.",
			f.meta.ID, f.meta.Manifest.Type))
	}
	return serve(f, c)
}

// foreign returns the channel of another dialect that a path names and the caller
// may see, or nil if there is none.
func (s *Server) foreign(c *call) (*foreign, error) {
	if !channel.ValidID(c.path.session) {
		return nil, nil
	}
	m, err := s.hub.As(s.callerOf(c.who)).Channel(c.Context(), c.path.session)
	if code := fault.CodeOf(err); err != nil && (code == fault.AccessDenied || code == fault.NotFound) {
		return nil, nil
	}
	if err != nil || m.Manifest.Type == adapter.Type {
		return nil, err
	}
	f := &foreign{server: s, meta: m}
	if c.who.Role == Agent {
		f.as, _ = s.hub.FindAgent(c.who.Agent)
	}
	return f, nil
}

// callerOf returns the hub's caller, which decides what may be seen.
func (s *Server) callerOf(who Who) *hub.Caller {
	switch who.Role {
	case Operator:
		return &hub.Caller{Key: who.Key, Role: hub.RoleOperator}
	case Reader:
		return &hub.Caller{Key: who.Key, Role: hub.RoleReader}
	}
	by := &hub.Caller{Key: who.Key}
	if id, ok := s.hub.FindAgent(who.Agent); ok && who.Role == Agent {
		by.Agents = []string{id}
	}
	return by
}

func (f *foreign) name(id string) string { return f.server.hub.Name(id) }

// foreignSummary returns a channel as an entry of a list of sessions.
func (s *Server) foreignSummary(m *channel.Metadata) (adapter.SessionSummary, error) {
	names := make([]string, len(m.Participants))
	for i, p := range m.Participants {
		names[i] = s.hub.Name(p.Agent)
	}
	metadata, err := marshal(map[string]any{
		"parley.foreign": true, "parley.type": m.Manifest.Type, "parley.state": m.State.String(), "parley.participants": names,
	})
	active := m.CreatedAt
	if m.ClosedAt.After(active) {
		active = m.ClosedAt
	}
	return adapter.SessionSummary{Session: m.ID, Channel: m.ID, Created: m.CreatedAt, SessionInfo: adapter.SessionInfo{Active: active, Metadata: metadata}}, err
}

// foreignSessions returns the channels of other dialects that a caller may see, the
// newest first, and at most as many as one answer may hold.
func (s *Server) foreignSessions(ctx context.Context, who Who) (list []adapter.SessionSummary, err error) {
	o := hub.ListOptions{Newest: true, Limit: s.cfg.Limits.Sessions}
	for {
		found, next, err := s.hub.As(s.callerOf(who)).Channels(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if m.Manifest.Type == adapter.Type {
				continue
			}
			summary, err := s.foreignSummary(m)
			if err != nil {
				return nil, err
			}
			list = append(list, summary)
		}
		if next == "" || len(list) >= s.cfg.Limits.Sessions {
			return list, nil
		}
		o.After = next
	}
}

func (f *foreign) getSession(c *call) error {
	summary, err := f.server.foreignSummary(f.meta)
	if err != nil {
		return err
	}
	body, err := sessionBody(summary)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, body)
}

func (f *foreign) branch(ctx context.Context) (wire.Branch, error) {
	summary, err := f.server.foreignSummary(f.meta)
	if err != nil {
		return wire.Branch{}, err
	}
	length, err := f.server.hub.Length(ctx, f.meta.ID)
	if err != nil {
		return wire.Branch{}, err
	}
	out := wire.Branch{
		ID: wire.MainBranch, SessionID: f.meta.ID, Name: f.meta.Manifest.Type, CreatedAt: summary.Created.UTC(), LastActivity: summary.Active.UTC(),
		MessageCount: int64(length),
	}
	if err := json.Unmarshal(summary.Metadata, &out.Metadata); err != nil {
		return out, fault.Wrap(fault.Internal, err, "%v", err)
	}
	out.SetPlace(branch.Places([]branch.Node{{ID: wire.MainBranch}})[wire.MainBranch])
	return out, nil
}

func (f *foreign) listBranches(c *call) error {
	body, err := f.branch(c.Context())
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, []wire.Branch{body})
}

func (f *foreign) getBranch(c *call) error {
	body, err := f.branch(c.Context())
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, body)
}

// foreignRun is a run that is shown and not stored. It begins with an input that
// came over HPD and ends with the next message of another identity, or with the
// channel.
type foreignRun struct {
	id, sender string
	started    time.Time
}

// lookBack is how many envelopes are read to see whether a run is active.
const lookBack = 256

// after returns the active run after an envelope.
func (r *foreignRun) after(e *envelope.Envelope, items []channel.Item) *foreignRun {
	for i := range items {
		switch items[i].Kind {
		case channel.ItemMessage:
			if r != nil && e.Sender != r.sender {
				r = nil
			}
			if hub.CameFrom(e, dialectName) && r == nil {
				r = &foreignRun{id: e.ID, sender: e.Sender, started: e.CreatedAt}
			}
		case channel.ItemEnd:
			r = nil
		}
	}
	return r
}

// active returns the run that is active after a sequence, or nil if there is none.
func (f *foreign) active(ctx context.Context, seq uint64) (*foreignRun, error) {
	if seq == 0 {
		return nil, nil
	}
	reader, err := f.reader(ctx)
	if err != nil {
		return nil, err
	}
	var run *foreignRun
	for e, err := range f.server.hub.Log(ctx, f.meta.ID, max(seq, lookBack)-lookBack+1, seq) {
		if err != nil {
			return nil, err
		}
		run = run.after(e, reader.Read(nil, e))
	}
	return run, nil
}

// reader returns a reader of the channel's envelopes as items.
func (f *foreign) reader(ctx context.Context) (channel.ItemReader, error) {
	a, err := f.server.hub.Adapter(ctx, f.meta.ID)
	if err != nil {
		return nil, err
	}
	return channel.ReaderOf(a, f.meta), nil
}

func (f *foreign) listRuns(c *call) error { return c.writeRaw(http.StatusOK, []byte("[]")) }

func (f *foreign) activeRun(c *call) error {
	length, err := f.server.hub.Length(c.Context(), f.meta.ID)
	if err != nil {
		return err
	}
	run, err := f.active(c.Context(), length)
	if err != nil {
		return err
	}
	if run == nil {
		return c.writeRaw(http.StatusOK, []byte("null"))
	}
	return c.write(http.StatusOK, wire.Run{
		RuntimeRunID: run.id, AgentID: c.agent, SessionID: f.meta.ID, BranchID: wire.MainBranch, Status: wire.RunActive,
		StartedAt: run.started.UTC(), BackgroundTasks: []wire.BackgroundTask{},
	})
}
