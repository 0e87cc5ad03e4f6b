package document

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Edit writes or removes a document.
type Edit struct {
	Kind, Name string
	Data       []byte
	Remove     bool
	Expect     *uint64 // the version that the document must have; 0: it must not exist; nil: any
}

// Edit makes edits of up to 64 documents and their audit records durable as one
// batch, all or none. It returns the new version of the written documents.
func (s *Store) Edit(ctx context.Context, edits []Edit, audit []journal.Record) (uint64, error) {
	if len(edits) == 0 || len(edits) > maxEdits {
		return 0, fault.New(fault.Invalid, "an edit is of 1 to %d documents, not of %d", maxEdits, len(edits))
	}
	seen := map[[2]string]bool{}
	for i := range edits {
		e := &edits[i]
		if err := s.checkEdit(e); err != nil {
			return 0, err
		}
		name := [2]string{e.Kind, e.Name}
		if seen[name] {
			return 0, fault.New(fault.Invalid, "%s document %.100q is given twice in one edit; give it once", e.Kind, e.Name)
		}
		seen[name] = true
	}
	for {
		ticket, err := s.order(ctx, edits, audit)
		if pending, ok := errors.AsType[*pendingValueError](err); ok {
			_ = pending.ticket.Wait(ctx) // whether or not it succeeds, the edit is checked again
			if ctx.Err() == nil {
				continue
			}
			return 0, fault.Wrap(fault.Unavailable, context.Cause(ctx), "gave up waiting for another edit: %v", context.Cause(ctx))
		}
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err != nil {
			return 0, ledger.Unavailable(err)
		}
		s.Ledger.Stored(audit...)
		return ticket.Offset(), nil
	}
}

// pendingValueError reports that a value is being written. A result computed from
// the value has to wait for that write.
type pendingValueError struct{ ticket *journal.Ticket }

func (e *pendingValueError) Error() string { return "the value is being written" }

// order orders the batch of an edit.
func (s *Store) order(ctx context.Context, edits []Edit, records []journal.Record) (*journal.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commit := journal.Batch{}
	if len(records) > 0 {
		commit.Appends = []journal.Append{{Log: s.Ledger.Tenant.Audit(), Records: records}}
	}
	added := map[string]int{}
	for i := range edits {
		e := &edits[i]
		key := s.Ledger.Tenant.Document(e.Kind, e.Name)
		version, err := s.settledVersion(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := e.checkVersion(version); err != nil {
			return nil, err
		}
		switch {
		case e.Remove:
			added[e.Kind]--
		case version == 0:
			added[e.Kind]++
		}
		commit.Values = append(commit.Values, journal.ValueWrite{Key: key, Data: e.Data, Delete: e.Remove, Expect: journal.Exactly(version)})
	}
	for kind, n := range added {
		if n == 0 {
			continue
		}
		count, err := s.count(ctx, kind, n)
		if err != nil {
			return nil, err
		}
		commit.Values = append(commit.Values, count)
	}
	ticket, err := s.Ledger.Journal.Append(ctx, commit)
	if conflict, ok := errors.AsType[*journal.ConflictError](err); ok { // another process of a cluster wrote it
		return nil, &pendingValueError{conflict.LostTo}
	}
	return ticket, err
}

// checkVersion returns an error if the document does not have the expected version.
func (e *Edit) checkVersion(version uint64) error {
	switch {
	case e.Expect != nil && *e.Expect != version:
		return fault.New(fault.Conflict, "%s document %.100q has version %d, not %d: read it and decide again", e.Kind, e.Name, version, *e.Expect)
	case e.Remove && version == 0:
		return errNone(e.Kind, e.Name)
	}
	return nil
}

// count adds n to the number of documents of a kind, or returns an error above the
// limit.
func (s *Store) count(ctx context.Context, kind string, n int) (journal.ValueWrite, error) {
	key := s.Ledger.Tenant.DocumentCount(kind)
	state, err := s.Ledger.Journal.Value(ctx, key)
	if err != nil {
		return journal.ValueWrite{}, err
	}
	count := int(schema.DecodeUint(state.Ordered.Data)) + n
	if limit := s.Count; n > 0 && count > limit {
		if state.Pending != nil {
			return journal.ValueWrite{}, &pendingValueError{state.Pending}
		}
		return journal.ValueWrite{}, fault.New(fault.TooLarge, "there are %d %s documents, at most %d are kept (limits.documents); remove one first", count-n, kind, limit)
	}
	return journal.ValueWrite{Key: key, Data: schema.EncodeUint(uint64(max(count, 0))), Expect: journal.Exactly(state.Ordered.Version)}, nil
}

// settledVersion returns the version of a value that is not being written.
func (s *Store) settledVersion(ctx context.Context, key journal.ValueKey) (uint64, error) {
	state, err := s.Ledger.Journal.Value(ctx, key)
	if err == nil && state.Pending != nil {
		err = &pendingValueError{state.Pending}
	}
	return state.Durable.Version, err
}
