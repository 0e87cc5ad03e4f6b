package hpd

import (
	"context"
	"net/http"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// drop cancels the run of a branch that is closed or deleted. It notifies a remote
// producer, because no end of the run is written that the producer could see.
func (s *Server) drop(channelID, reason string) {
	if x := s.runs.get(channelID); x != nil {
		s.runs.drop(channelID)
		s.notify(x, "interrupt", wire.WorkInterrupt{RuntimeRunID: x.id, Reason: reason})
		s.release(x)
	}
}

// cancel cancels the run of a branch that is about to be deleted: its producer is
// told, and its end is written, so that its readers see it before their streams end.
func (s *Server) cancel(ctx context.Context, channelID, reason string) {
	x := s.runs.get(channelID)
	if x == nil {
		return
	}
	s.notify(x, "interrupt", wire.WorkInterrupt{RuntimeRunID: x.id, Reason: reason})
	if _, err := s.complete(ctx, x, outcome{cancelled: true}); err != nil {
		s.runs.drop(channelID)
		s.release(x)
	}
}

// lockBranches blocks inputs for branches that are being deleted. The caller holds
// the lock of the session's tree, so no other caller waits for several of these
// locks.
func (s *Server) lockBranches(list []adapter.Summary) (unlock func()) {
	unlocks := make([]func(), len(list))
	for i, b := range list {
		unlocks[i] = s.locks.lock(b.Channel)
	}
	return func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
}

// subtree divides the branches of a session into those that are deleted with
// one, in the order of their deletion, and the rest.
func subtree(all []adapter.Summary, id string) (gone, rest []adapter.Summary) {
	places := map[string]int{}
	for i, id := range branch.Subtree(nodes(all), id) {
		places[id] = i
	}
	gone = make([]adapter.Summary, len(places))
	for _, b := range all {
		if i, goes := places[b.Branch]; goes {
			gone[i] = b
		} else {
			rest = append(rest, b)
		}
	}
	return gone, rest
}

// deleteSession ends a session's streams, cancels its runs and removes it.
func (s *Server) deleteSession(c *call) error {
	x, err := s.session(c)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Context())
	by, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	unlock := s.locks.lock("tree/" + x.home)
	defer unlock()
	all, err := s.summaries(ctx, x)
	if err != nil {
		return err
	}
	defer s.lockBranches(all)()
	for _, b := range all {
		s.cancel(ctx, b.Channel, "The session was deleted.")
	}
	if err := s.hub.DeleteHome(ctx, x.home, caller(c.who, by)); err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// deleteBranch checks in the order that the protocol requires.
func (s *Server) deleteBranch(c *call) error {
	if c.branch == wire.MainBranch {
		return c.refuse(http.StatusBadRequest, wire.ProtectedBranch, "Branch 'main' cannot be deleted; delete the session.")
	}
	at, err := s.scope(c)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Context())
	unlock := s.locks.lock("tree/" + at.session.home)
	defer unlock()
	all, err := s.summaries(ctx, at.session)
	if err != nil {
		return err
	}
	places := branch.Places(nodes(all))
	recursive := c.URL.Query().Get("recursive") == "true"
	switch {
	case len(places[at.branch].ChildBranches) > 0 && !recursive:
		return c.refuse(s.cfg.ChildrenStatus, wire.HasChildren, "Branch '"+at.branch+"' has forks; delete them first, or all together with ?recursive=true.")
	case recursive && !s.cfg.RecursiveDelete:
		return c.refuse(http.StatusBadRequest, wire.RecursiveDeleteDisabled, "Recursive deletion is switched off (hpd.recursive_delete).")
	}
	gone, rest := subtree(all, at.branch)
	by, err := s.actor(ctx, c.who)
	if err != nil {
		return err
	}
	defer s.lockBranches(gone)()
	for _, b := range gone {
		if b.Run != "" || s.runs.get(b.Channel) != nil {
			return c.refuse(http.StatusConflict, wire.DeleteBranchError, "Branch '"+b.Branch+"' has an active run; interrupt it first.")
		}
	}
	for _, b := range gone {
		if err := s.hub.Delete(ctx, b.Channel, caller(c.who, by)); err != nil && !hub.Deleted(err) {
			return err
		}
	}
	if err := s.tellTree(ctx, at.session, rest); err != nil {
		return err
	}
	s.touch(ctx, at.session)
	return c.empty(http.StatusNoContent)
}
