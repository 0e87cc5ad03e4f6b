package hpd

import (
	"context"
	"maps"
	"strings"

	"github.com/go-json-experiment/json"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// State returns the branch's middleware state, as it was last committed.
func (r *Run) State(ctx context.Context) (map[string]string, error) {
	state, err := r.server.state(ctx, r.run.scope.channel)
	if err != nil || state.StateSeq == 0 {
		return nil, err
	}
	data, err := r.server.dataAt(ctx, r.run.scope.channel, state.StateSeq)
	if err != nil {
		return nil, err
	}
	var committed wire.BranchMiddlewareStateCommitted
	if err := json.Unmarshal(data, &committed); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the state of branch %q cannot be read: %v", r.run.scope.branch, err)
	}
	return committed.State, nil
}

// CommitState replaces the branch's middleware state. A fork gets a copy of it.
func (r *Run) CommitState(ctx context.Context, state map[string]string) error {
	if state == nil {
		state = map[string]string{}
	}
	return r.server.commit(ctx, r.run, wire.BranchMiddlewareStateCommitted{State: state}, noExt)
}

// SessionState returns the middleware state that all branches of the session share.
func (r *Run) SessionState(ctx context.Context) (map[string]string, error) {
	state, err := r.server.state(ctx, r.run.scope.session.main)
	if err != nil {
		return nil, err
	}
	return maps.Clone(state.SessionState), nil
}

// CommitSessionState replaces the middleware state that all branches of the session
// share. The state may have at most limits.record bytes.
func (r *Run) CommitSessionState(ctx context.Context, state map[string]string) error {
	if state == nil {
		state = map[string]string{}
	}
	sender, err := r.server.user(ctx)
	if err != nil {
		return err
	}
	return r.server.note(ctx, r.run.scope.session.main, sender, adapter.TypeSessionState, state, noExt)
}

// Compaction replaces messages of a branch by fewer.
type Compaction struct {
	MessageIDs   []string           // no longer shown to the model
	Replacements []wire.ChatMessage // inserted in place of the first of them
	Strategy     string             // such as Summarize
	Boundary     string
	Summary      *string
	// Hard removes the messages from the branch's messages permanently; their
	// events stay in the history. Without it the branch does not change.
	Hard bool
}

// Compact writes BRANCH_HISTORY_COMPACTED if messages are removed permanently. A
// compaction that removes nothing durable writes nothing.
func (r *Run) Compact(ctx context.Context, c Compaction) error {
	removed := []string{}
	for _, id := range c.MessageIDs {
		if strings.TrimSpace(id) != "" {
			removed = append(removed, id)
		}
	}
	if !c.Hard || len(removed) == 0 {
		return nil
	}
	event := wire.BranchHistoryCompacted{
		CompactionID: newID(), ModelCompactedMessageIDs: removed, DurableCompactedMessageIDs: removed, ReplacementMessages: c.Replacements,
		StrategyKind: c.Strategy, RetentionKind: "Hard", BoundaryKind: c.Boundary, SummaryContent: c.Summary, CompactedAt: r.server.now(),
	}
	if event.ReplacementMessages == nil {
		event.ReplacementMessages = []wire.ChatMessage{}
	}
	count, err := r.server.countAfter(ctx, r.run, event)
	if err != nil {
		return err
	}
	return r.server.commit(ctx, r.run, event, branch.Ext{Messages: &count})
}

// countAfter returns how many messages a branch has after an event, which its fold
// cannot know.
func (s *Server) countAfter(ctx context.Context, x *run, p wire.Payload) (int64, error) {
	var history branch.History
	for e, err := range s.hub.Log(ctx, x.scope.channel, 0, 0) {
		if err != nil {
			return 0, err
		}
		if event, ok := branch.FromEnvelope(e); ok {
			history.Apply(event)
		}
	}
	next, err := made(x.scope.channel, "", "", p, noExt)
	if err != nil {
		return 0, err
	}
	if event, ok := branch.FromEnvelope(next); ok {
		history.Apply(event)
	}
	return int64(history.Count()), nil
}

// commit stores an event that only the server may write, for the producer of an
// active run.
func (s *Server) commit(ctx context.Context, x *run, p wire.Payload, ext branch.Ext) error {
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	e, err := made(x.scope.channel, sender, x.turn, p, ext)
	if err != nil {
		return err
	}
	if limit := s.cfg.Limits.Event; len(e.Data) > limit {
		return fault.New(fault.TooLarge, "%s has %d bytes; an event takes at most %d (limits.event)", p.EventType(), len(e.Data), limit)
	}
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return errRunOver(x.id)
	}
	s.notes.put(e, &wire.Base{TraceID: x.trace, Metadata: branch.RootAgent(x.agentID, x.name)})
	pending := s.hub.AdmitAll(ctx, []*envelope.Envelope{e}, trusted)
	x.mu.Unlock()
	_, err = pending.Wait(ctx)
	return err
}
