package hpd

import (
	"cmp"
	"context"
	"iter"
	"slices"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// entries reads index entries of branches, page by page.
func entries[T any](ctx context.Context, h Hub, q hub.EntryQuery, parse func([]byte) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		q.Type, q.Limit = adapter.Type, 1000
		for {
			page, err := h.Entries(ctx, q)
			if err != nil {
				yield(none, err)
				return
			}
			for _, entry := range page.Entries {
				value, err := parse(entry.Value)
				if err != nil {
					err = fault.Wrap(fault.Internal, err, "index entry %q cannot be read: %v", entry.Key, err)
				}
				if !yield(value, err) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

func gather[T any](all iter.Seq2[T, error]) (list []T, err error) {
	for value, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// summaries returns the branches of a session in the order of their creation.
func (s *Server) summaries(ctx context.Context, x session) ([]adapter.Summary, error) {
	q := hub.EntryQuery{Home: x.home, Prefix: adapter.BranchEntry}
	all, err := gather(entries(ctx, s.hub, q, adapter.ParseSummary))
	slices.SortFunc(all, func(a, b adapter.Summary) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Channel, b.Channel))
	})
	return all, err
}

// sessions returns all sessions in the order of their creation.
func (s *Server) sessions(ctx context.Context) ([]adapter.SessionSummary, error) {
	return gather(entries(ctx, s.hub, hub.EntryQuery{Kind: homeKind, Prefix: adapter.SessionEntry}, adapter.ParseSessionSummary))
}

// activeRuns returns the branches of all sessions that have an active run.
func (s *Server) activeRuns(ctx context.Context) ([]adapter.Summary, error) {
	return gather(entries(ctx, s.hub, hub.EntryQuery{Kind: homeKind, Prefix: adapter.RunEntry}, adapter.ParseSummary))
}
