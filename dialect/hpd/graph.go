package hpd

import (
	"net/http"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// siblings answers with a branch's sibling group, in the order of its index.
func (s *Server) siblings(c *call) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
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

// threadGraph is the newer form of the tree, on the thread surface alone.
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
	// The members of members are renamed by hand: a body's own are by write.
	return c.write(http.StatusOK, struct {
		Threads wire.Raw `json:"threads"`
		wire.ThreadGraph
	}{wire.Threads.Body(threads), graph})
}
