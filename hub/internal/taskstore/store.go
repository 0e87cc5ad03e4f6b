// Package taskstore finds tasks: where each is stored, its last stored version, and
// lists of them. The hub decides who may change a task, and serializes the changes.
package taskstore

import (
	"context"
	"slices"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// Store reads tasks and claims their ids.
type Store struct {
	*ledger.Ledger
	// ChannelGone reports whether a channel no longer exists.
	ChannelGone func(ctx context.Context, channelID string) (bool, error)
}

// NotFound returns the error for an id that no task has.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "task not found: '%s'", id).Because(fault.NoTask)
}

// Read reads the durable version of a task.
func (s *Store) Read(ctx context.Context, id string, log journal.LogName) (*schema.StoredTask, error) {
	page, err := s.Journal.Read(ctx, log, journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 2, Bytes: journal.MaxPageBytes}})
	if err != nil {
		return nil, ledger.Unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, NotFound(id)
	}
	return schema.ReadTask(id, page.Entries)
}

// Task returns a task.
func (s *Store) Task(ctx context.Context, id string) (*task.Task, error) {
	found, ok, err := s.place(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, NotFound(id)
	}
	t, err := s.Read(ctx, id, found.Log)
	if err != nil {
		return nil, err
	}
	return &t.Task, nil
}

// Query selects tasks; its zero fields select everything.
type Query struct {
	Owner   string
	Open    bool // only tasks of Owner that have not ended
	Channel string
	State   task.State
	States  []task.State // only in one of these; none: any
	Newest  bool         // the newest first
	After   string       // next of the page before
	Limit   int          // 0: 50
}

// Listed is a task with its position in a list.
type Listed struct {
	*task.Task
	Place string
}

// List returns the tasks that sees accepts, in the order in which they were first
// observed; a nil sees accepts all. It reads a bounded number of tasks, so a page
// of a narrow selection may be short, or empty. Next is the After of the next page,
// and is empty at the end.
func (s *Store) List(ctx context.Context, q Query, sees func(*task.Task) bool) (list []Listed, next string, err error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	last, ended, err := s.each(ctx, q, func(t *task.Task, place string) bool {
		if !q.selects(t) || sees != nil && !sees(t) {
			return true
		}
		if len(list) == q.Limit {
			return false
		}
		list = append(list, Listed{t, place})
		return true
	})
	switch {
	case err != nil:
		return nil, "", err
	case ended:
		return list, "", nil
	}
	return list, last, nil
}

// Total counts the tasks that List would return. It reads a bounded number of
// tasks.
func (s *Store) Total(ctx context.Context, q Query, sees func(*task.Task) bool) (t schema.Total, err error) {
	q.After = ""
	_, t.Exact, err = s.each(ctx, q, func(found *task.Task, _ string) bool {
		return !q.selects(found) || sees != nil && !sees(found) || t.Add()
	})
	return t, err
}

// each calls visit for the tasks of a part of the index until visit returns false
// or schema.MaxScanned entries were read. Last is the position of the last entry
// that was processed; ended is true if there are no more.
func (s *Store) each(ctx context.Context, q Query, visit func(t *task.Task, place string) bool) (last string, ended bool, err error) {
	if q.State != "" {
		if _, err := task.ParseState(string(q.State)); err != nil {
			return "", false, err
		}
	}
	scanned := 0
	for entry, err := range journal.IndexAll(ctx, s.Journal, schema.ListScan(q.prefix(), q.After, q.Newest)) {
		if err != nil {
			return "", false, ledger.Unavailable(err)
		}
		if scanned++; scanned > schema.MaxScanned {
			return last, false, nil
		}
		place := schema.LastPart(entry.Key)
		t, err := s.Task(ctx, string(entry.Value))
		switch {
		case fault.CodeOf(err) == fault.NotFound: // removed with its channel in the meantime
		case err != nil:
			return "", false, err
		case !visit(t, place):
			return last, false, nil
		}
		last = place
	}
	return last, true, nil
}

func (q *Query) selects(t *task.Task) bool {
	return (q.Owner == "" || t.Owner == q.Owner) && (q.State == "" || t.State == q.State) &&
		(q.States == nil || slices.Contains(q.States, t.State))
}

func (q *Query) prefix() []byte {
	switch {
	case q.Channel != "":
		return schema.Key(schema.IndexTaskChannel, schema.Digest(q.Channel), "")
	case q.Owner != "" && q.Open:
		return schema.Key(schema.IndexTaskOpen, schema.Digest(q.Owner), "")
	case q.Owner != "":
		return schema.Key(schema.IndexTaskOwner, schema.Digest(q.Owner), "")
	}
	return []byte(schema.IndexTask)
}

// CountOf returns how many tasks of an owner have not ended.
func (s *Store) CountOf(ctx context.Context, owner string) (n int64, err error) {
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexTaskOpen, schema.Digest(owner), "")}
	for _, err := range journal.IndexAll(ctx, s.Journal, scan) {
		if err != nil {
			return 0, ledger.Unavailable(err)
		}
		n++
	}
	return n, nil
}
