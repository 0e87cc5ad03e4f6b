package hub

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// DocumentEdit writes or removes a document.
type DocumentEdit struct {
	Kind, Name string
	Data       []byte
	Remove     bool
	Expect     *uint64 // the version that the document must have; 0: there is none; nil: any
}

// AuditNote is an audit record that is stored with what it tells of.
type AuditNote struct {
	Kind   string
	Fields map[string]any
	By     *Caller // who acted
}

// documents orders edits one after another; they become durable together.
type documents struct{ mu sync.Mutex }

// EditDocuments makes edits of up to 64 documents and their audit records
// durable as one batch, all or none. It returns the version that the written
// documents have from then on.
func (h *Hub) EditDocuments(ctx context.Context, edits []DocumentEdit, notes ...AuditNote) (uint64, error) {
	if len(edits) == 0 || len(edits) > maxDocumentEdits {
		return 0, fault.New(fault.Invalid, "an edit is of 1 to %d documents, not of %d", maxDocumentEdits, len(edits))
	}
	seen := map[[2]string]bool{}
	for i := range edits {
		e := &edits[i]
		if err := h.checkEdit(e); err != nil {
			return 0, err
		}
		name := [2]string{e.Kind, e.Name}
		if seen[name] {
			return 0, fault.New(fault.Invalid, "%s document %.100q is given twice in one edit; give it once", e.Kind, e.Name)
		}
		seen[name] = true
	}
	records := make([]journal.Record, len(notes))
	for i, note := range notes {
		f := make(fields, len(note.Fields)+1)
		maps.Copy(f, note.Fields)
		note.By.describe(f)
		var err error
		if records[i], err = h.auditRecord(note.Kind, f); err != nil {
			return 0, err
		}
	}
	for {
		ticket, err := h.orderEdits(ctx, edits, records)
		var pending *pendingValueError
		if errors.As(err, &pending) {
			_ = pending.ticket.Wait(ctx) // whatever becomes of it, the edit is then judged again
			if ctx.Err() == nil {
				continue
			}
			return 0, fault.Wrap(fault.Unavailable, context.Cause(ctx), "gave up waiting for another edit: %v", context.Cause(ctx))
		}
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err != nil {
			return 0, unavailable(err)
		}
		h.stored(records...)
		return ticket.Offset(), nil
	}
}

// pendingValueError says that a value is being written: an answer computed from
// it waits until that has ended.
type pendingValueError struct{ ticket *journal.Ticket }

func (e *pendingValueError) Error() string { return "the value is being written" }

// orderEdits orders the batch of an edit.
func (h *Hub) orderEdits(ctx context.Context, edits []DocumentEdit, records []journal.Record) (*journal.Ticket, error) {
	h.documents.mu.Lock()
	defer h.documents.mu.Unlock()
	commit := journal.Batch{}
	if len(records) > 0 {
		commit.Appends = []journal.Append{{Log: h.tenant.Audit(), Records: records}}
	}
	added := map[string]int{}
	for i := range edits {
		e := &edits[i]
		key := h.tenant.Document(e.Kind, e.Name)
		version, err := h.settledVersion(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := e.fits(version); err != nil {
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
		count, err := h.countDocuments(ctx, kind, n)
		if err != nil {
			return nil, err
		}
		commit.Values = append(commit.Values, count)
	}
	ticket, err := h.journal.Append(ctx, commit)
	var conflict *journal.ConflictError
	if errors.As(err, &conflict) { // written by another process of a cluster
		return nil, &pendingValueError{conflict.LostTo}
	}
	return ticket, err
}

// fits refuses an edit of a document that has another version than expected.
func (e *DocumentEdit) fits(version uint64) error {
	switch {
	case e.Expect != nil && *e.Expect != version:
		return fault.New(fault.Conflict, "%s document %.100q has version %d, not %d: read it and decide again", e.Kind, e.Name, version, *e.Expect)
	case e.Remove && version == 0:
		return errNoDocument(e.Kind, e.Name)
	}
	return nil
}

// countDocuments counts n more documents of a kind, within the limit.
func (h *Hub) countDocuments(ctx context.Context, kind string, n int) (journal.ValueWrite, error) {
	key := h.tenant.DocumentCount(kind)
	state, err := h.journal.Value(ctx, key)
	if err != nil {
		return journal.ValueWrite{}, err
	}
	count := int(schema.DecodeUint(state.Ordered.Data)) + n
	if limit := h.opts.Limits.Documents; n > 0 && count > limit {
		if state.Pending != nil {
			return journal.ValueWrite{}, &pendingValueError{state.Pending}
		}
		return journal.ValueWrite{}, fault.New(fault.TooLarge, "there are %d %s documents, at most %d are kept (limits.documents); remove one first", count-n, kind, limit)
	}
	return journal.ValueWrite{Key: key, Data: schema.EncodeUint(uint64(max(count, 0))), Expect: journal.Exactly(state.Ordered.Version)}, nil
}

// settledVersion returns the version of a value that nobody is writing.
func (h *Hub) settledVersion(ctx context.Context, key journal.ValueKey) (uint64, error) {
	state, err := h.journal.Value(ctx, key)
	if err == nil && state.Pending != nil {
		err = &pendingValueError{state.Pending}
	}
	return state.Durable.Version, err
}
