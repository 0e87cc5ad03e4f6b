package hpd

import (
	"context"
	"net/http"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// untold returns the branches whose place in the tree differs from their log.
func untold(all []adapter.Summary) (list []adapter.Summary, places map[string]branch.Place) {
	places = branch.Places(nodes(all))
	for _, b := range all {
		if place := places[b.Branch]; place.Sum() != b.Told {
			list = append(list, b)
		}
	}
	return list, places
}

// tellTree writes the new place to the log of each branch of a session whose place
// has changed. The caller holds the lock of the session's tree. After an error, the
// missing updates are written when the session is next used.
func (s *Server) tellTree(ctx context.Context, x session, all []adapter.Summary) error {
	list, places := untold(all)
	if len(list) == 0 {
		return nil
	}
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	for _, b := range list {
		if err := s.append(ctx, b.Channel, sender, wire.TreeUpdated(places[b.Branch])); err != nil && !hub.Deleted(err) {
			s.settled.remove(x.home)
			return err
		}
	}
	return nil
}

// tellRest writes the updates that an earlier process left out.
func (s *Server) tellRest(ctx context.Context, x session, all []adapter.Summary) error {
	if list, _ := untold(all); len(list) == 0 {
		return nil
	}
	unlock := s.locks.lock("tree/" + x.home)
	defer unlock()
	all, err := s.summaries(ctx, x) // read again now that nothing changes it
	if err != nil {
		return err
	}
	return s.tellTree(ctx, x, all)
}

// siblings writes a branch's sibling group, in the order of its index.
func (s *Server) siblings(c *call, x *scope) error {
	all, list, err := s.list(c.Context(), x.session, nil)
	if err != nil {
		return err
	}
	byID := map[string]wire.Branch{}
	for _, b := range list {
		byID[b.ID] = b
	}
	group := []wire.Branch{}
	for _, id := range branch.Places(nodes(all))[x.branch].Siblings {
		group = append(group, byID[id])
	}
	return c.write(http.StatusOK, group)
}

// threadGraph writes the newer form of the tree, which only the thread surface has.
func (s *Server) threadGraph(c *call) error {
	c.surface = wire.Threads
	x, err := s.session(c)
	if err != nil {
		return err
	}
	all, list, err := s.list(c.Context(), x, nil)
	if err != nil {
		return err
	}
	graph := wire.ThreadGraph{ForkGroups: []wire.ForkGroup{}, RuntimeChildren: []wire.RuntimeChild{}}
	groups := map[branch.ForkPoint]int{}
	for _, b := range all {
		if parent := parentOf(b.Fields.Metadata); parent != nil && parent.Session == x.id {
			graph.RuntimeChildren = append(graph.RuntimeChildren, wire.RuntimeChild{ThreadID: b.Branch, ParentThreadID: parent.Branch})
		}
		if b.Fork.Source == "" {
			continue
		}
		at, ok := groups[b.Fork]
		if !ok {
			at = len(graph.ForkGroups)
			groups[b.Fork] = at
			graph.ForkGroups = append(graph.ForkGroups, wire.ForkGroup{SourceThreadID: b.Fork.Source, FromMessageID: b.Fork.MessageID})
		}
		graph.ForkGroups[at].ThreadIDs = append(graph.ForkGroups[at].ThreadIDs, b.Branch)
	}
	threads, err := marshal(list)
	if err != nil {
		return err
	}
	// Nested members are renamed here; write renames only a body's own.
	return c.write(http.StatusOK, struct {
		Threads wire.Raw `json:"threads"`
		wire.ThreadGraph
	}{wire.Threads.Body(threads), graph})
}
