package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/parley-hub/parley/client/v1/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/task"
)

// summaryFor is how long a summary is reused.
const summaryFor = time.Second

// summaries makes one summary for all callers of a second.
type summaries struct {
	mu   sync.Mutex
	at   time.Time
	last wire.Summary
}

// summary returns a summary that is at most a second old.
func (a *API) summary(ctx context.Context) (wire.Summary, error) {
	a.summaries.mu.Lock()
	defer a.summaries.mu.Unlock()
	now := time.Now()
	if now.Sub(a.summaries.at) < summaryFor && !a.summaries.at.IsZero() {
		return a.summaries.last, nil
	}
	if err := a.watches.refresh(ctx); err != nil {
		return wire.Summary{}, err
	}
	found, err := a.hub.Summary(ctx)
	if err != nil {
		return wire.Summary{}, err
	}
	position, err := a.hub.Now(ctx)
	if err != nil {
		return wire.Summary{}, err
	}
	tasks, err := a.hub.CountOpenTasks(ctx)
	if err != nil {
		return wire.Summary{}, err
	}
	s := wire.Summary{At: a.hub.Clock(), Position: position.String()}
	s.Channels.Pending, s.Channels.Active, s.Channels.Overdue = found.Pending, found.Active, found.Overdue
	s.Channels.WaitingForPeople, s.Channels.Quarantined, s.Channels.ByType = found.WaitingForPeople, found.Quarantined, found.ByType
	s.Agents.Registered, s.Agents.Online, s.Agents.People = found.Registered, found.Online, found.People
	s.Tasks.Created, s.Tasks.Running = tasks[task.Created], tasks[task.Running]
	s.Requests.Open, s.Requests.DueWithin5m, s.Requests.Overdue = found.Requests, found.RequestsSoon, found.RequestsOverdue
	s.Admitted, s.Refused = a.cfg.Stats.Grew("admitted", time.Minute), a.cfg.Stats.Grew("refused", time.Minute)
	s.SlowCut = a.cfg.Stats.Grew("slow_cut", 10*time.Minute)
	s.TurnsFailed = found.TurnsFailed
	a.summaries.last, a.summaries.at = s, now
	return s, nil
}

// maxAgentSummary bounds how many entries are counted for one agent.
const maxAgentSummary = 1000

// summaryFor returns the summary of everything or, for an agent, of what it may see.
func (a *API) summaryFor(ctx context.Context, who caller) (s wire.Summary, err error) {
	if who.seesAll() {
		return a.summary(ctx)
	}
	id, err := who.itself("")
	if err != nil {
		return s, err
	}
	position, err := a.hub.Now(ctx)
	if err != nil {
		return s, err
	}
	s.At, s.Position, s.Channels.ByType = a.hub.Clock(), position.String(), map[string]int{}
	if s.Channels.Active, err = a.hub.OpenChannelsOf(ctx, id, maxAgentSummary); err != nil {
		return s, err
	}
	if err := a.watches.refresh(ctx); err != nil {
		return s, err
	}
	turns := a.hub.WaitingTurns(id)
	s.Channels.Overdue = turns.Overdue
	if a.person(id).Kind == string(identity.Human) {
		s.Channels.WaitingForPeople = turns.Waiting
	}
	open, err := a.hub.Requests(ctx, hub.RequestQuery{State: request.Open, As: id, Limit: maxAgentSummary})
	if err != nil {
		return s, err
	}
	s.Requests.Open = len(open.Requests)
	for _, r := range open.Requests {
		switch {
		case r.DueAt.IsZero():
		case r.DueAt.Before(s.At):
			s.Requests.Overdue++
		case r.DueAt.Before(s.At.Add(5 * time.Minute)):
			s.Requests.DueWithin5m++
		}
	}
	return s, nil
}

// showSummary answers with the counts of everything or, for an agent, of what it may
// see.
func (a *API) showSummary(c *call) error {
	s, err := a.summaryFor(c.Context(), c.who)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, s)
}
