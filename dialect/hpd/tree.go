package hpd

import (
	"context"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// untold are the branches whose place in the tree is another one than they were
// last told.
func untold(all []adapter.Summary) (list []adapter.Summary, places map[string]branch.Place) {
	places = branch.Places(nodes(all))
	for _, b := range all {
		if place := places[b.Branch]; place.Sum() != b.Told {
			list = append(list, b)
		}
	}
	return list, places
}

// tellTree tells every branch of a session whose place has changed. The
// session's tree is locked. What a failure leaves untold is told when the
// session is next touched.
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

// tellRest tells what another process left untold.
func (s *Server) tellRest(ctx context.Context, x session, all []adapter.Summary) error {
	if list, _ := untold(all); len(list) == 0 {
		return nil
	}
	unlock := s.locks.lock("tree/" + x.home)
	defer unlock()
	all, err := s.summaries(ctx, x) // as it is now that nothing changes it
	if err != nil {
		return err
	}
	return s.tellTree(ctx, x, all)
}
