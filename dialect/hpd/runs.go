package hpd

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// runEvents returns the indexed events of a branch's runs, or of the run with an
// id, in order.
func (s *Server) runEvents(ctx context.Context, x *scope, id string) ([]adapter.RunEvent, error) {
	q := hub.EntryQuery{Home: x.session.home, Prefix: adapter.RunEventsPrefix(x.channel, id)}
	events, err := gather(entries(ctx, s.hub, q, adapter.ParseRunEvent))
	slices.SortFunc(events, func(a, b adapter.RunEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	return events, err
}

// runsOf returns the runs of a branch, or the run with an id, in the order of their
// start.
func (s *Server) runsOf(ctx context.Context, x *scope, id string) ([]wire.Run, error) {
	events, err := s.runEvents(ctx, x, id)
	if err != nil {
		return nil, err
	}
	return s.project(ctx, x, events)
}

func (s *Server) project(ctx context.Context, x *scope, events []adapter.RunEvent) ([]wire.Run, error) {
	projection := wire.Runs{Scope: x.wire()}
	for _, e := range events {
		if e.Data == nil {
			var err error
			if e.Data, err = s.dataAt(ctx, x.channel, e.Seq); err != nil {
				return nil, err
			}
		}
		projection.Apply(branch.Event{Type: e.Type, Seq: e.Seq, Time: e.Time, Data: e.Data})
	}
	all := projection.All()
	for i := range all {
		if all[i].Status == wire.RunActive {
			return all, s.markLost(ctx, x, &all[i])
		}
	}
	return all, nil
}

// markLost marks an active run as lost if its branch was closed: its end could
// not be written.
func (s *Server) markLost(ctx context.Context, x *scope, run *wire.Run) error {
	m, err := s.hub.Channel(ctx, x.channel)
	if err != nil || !m.State.Terminal() {
		return err
	}
	run.Status, run.CompletedAt = wire.RunFailed, m.ClosedAt
	run.Error = &wire.RunError{Type: new(wire.RuntimeLost), Message: new("The branch was closed while the run was active.")}
	return nil
}

// dataAt reads the payload of one event.
func (s *Server) dataAt(ctx context.Context, channelID string, seq uint64) ([]byte, error) {
	e, err := s.eventAt(ctx, channelID, seq)
	if err != nil {
		return nil, err
	}
	return e.Data, nil
}

func (s *Server) eventAt(ctx context.Context, channelID string, seq uint64) (*envelope.Envelope, error) {
	for e, err := range s.hub.Log(ctx, channelID, seq, seq) {
		return e, err
	}
	return nil, fault.New(fault.Internal, "event %d of channel '%s' is missing", seq, channelID)
}

// runOf returns the run with an id, or nil if the branch has none.
func (s *Server) runOf(ctx context.Context, x *scope, id string) (*wire.Run, error) {
	if !mintedID.MatchString(id) {
		return nil, nil
	}
	all, err := s.runsOf(ctx, x, id)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func errNoRunOf(id, branchID string) error {
	return fault.New(fault.NotFound, "Run '%.100s' was not found on branch '%s'.", id, branchID)
}

func (s *Server) listRuns(c *call) error {
	offset, limit, err := c.page(s.cfg.Limits.Runs)
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	ids, err := s.runsBy(c.Context(), x, c.agent)
	if err != nil {
		return err
	}
	list := []wire.Run{}
	for _, id := range ids[min(offset, len(ids)):min(offset+limit, len(ids))] {
		run, err := s.runOf(c.Context(), x, id)
		if err != nil {
			return err
		}
		if run != nil {
			list = append(list, *run)
		}
	}
	return c.write(http.StatusOK, list)
}

// runsBy returns the ids of an agent's runs on a branch, in the order of their
// start. The rest of a run is read only if it is shown.
func (s *Server) runsBy(ctx context.Context, x *scope, agentID string) ([]string, error) {
	type start struct {
		seq uint64
		id  string
	}
	var all []start
	q := hub.EntryQuery{Home: x.session.home, Prefix: adapter.RunEventsPrefix(x.channel, "")}
	for e, err := range entries(ctx, s.hub, q, adapter.ParseRunEvent) {
		if err != nil {
			return nil, err
		}
		if e.Type != branch.BranchRunStarted {
			continue
		}
		if e.Data == nil {
			var err error
			if e.Data, err = s.dataAt(ctx, x.channel, e.Seq); err != nil {
				return nil, err
			}
		}
		var started wire.BranchRunStarted
		if json.Unmarshal(e.Data, &started) == nil && started.AgentID == agentID {
			all = append(all, start{e.Seq, started.RuntimeRunID})
		}
	}
	slices.SortFunc(all, func(a, b start) int { return cmp.Compare(a.seq, b.seq) })
	ids := make([]string, len(all))
	for i, one := range all {
		ids[i] = one.id
	}
	return ids, nil
}

func (s *Server) activeRun(c *call, x *scope) error {
	var run *wire.Run
	if x.state.Run != nil {
		var err error
		if run, err = s.runOf(c.Context(), x, x.state.Run.ID); err != nil {
			return err
		}
	}
	if run == nil || run.Status != wire.RunActive {
		return c.writeRaw(http.StatusOK, []byte("null"))
	}
	return c.write(http.StatusOK, run)
}

func (s *Server) getRun(c *call, x *scope) error {
	run, err := s.runOf(c.Context(), x, c.item)
	if err == nil && run == nil {
		err = errNoRunOf(c.item, x.branch)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, run)
}
