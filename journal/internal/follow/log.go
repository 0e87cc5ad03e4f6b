package follow

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/journal"
)

// Source is what a follower needs of its engine.
type Source interface {
	Place(ctx context.Context, shard int) (journal.Place, error)
	Head(ctx context.Context, log journal.LogName) (journal.Heads, error)
	Read(ctx context.Context, log journal.LogName, opts journal.ReadOptions) (journal.Page, error)
	// Commits returns at most a page of durable commits after an offset.
	Commits(ctx context.Context, shard int, after uint64) ([]journal.Commit, error)
}

// Log returns a follower of one log.
func Log(src Source, bell *Bell, shard int, log journal.LogName, after journal.Position) journal.Follower {
	return &logFollower{src: src, bell: bell, shard: shard, log: log, at: after, closed: make(chan struct{})}
}

type logFollower struct {
	src   Source
	bell  *Bell
	shard int
	log   journal.LogName

	mu  sync.Mutex // of at
	at  journal.Position
	err error // final

	closeOnce sync.Once
	closed    chan struct{}
}

func (f *logFollower) Position() journal.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *logFollower) Close() { f.closeOnce.Do(func() { close(f.closed) }) }

func (f *logFollower) Next(ctx context.Context) (journal.Page, error) {
	if f.err != nil {
		return journal.Page{}, f.err
	}
	for {
		page, wait, err := f.try(ctx)
		if err != nil {
			if ctx.Err() == nil {
				f.err = err
			}
			return journal.Page{}, err
		}
		if wait == nil {
			return page, nil
		}
		err = wait(ctx)
		if err != nil {
			return journal.Page{}, err
		}
	}
}

// try reads the next entries. If there are none yet, it returns a function that waits
// for the log to move.
func (f *logFollower) try(ctx context.Context) (journal.Page, func(context.Context) error, error) {
	select {
	case <-f.closed:
		return journal.Page{}, nil, journal.ErrClosed
	default:
	}
	// The watch begins before the read, so that no entry is missed between them.
	rung, end := f.bell.watchLog(f.log)
	page, err := f.read(ctx)
	if err != nil || len(page.Entries) > 0 {
		end()
		return page, nil, err
	}
	if err := f.bell.Err(); err != nil {
		end()
		return page, nil, err
	}
	return page, func(ctx context.Context) error {
		defer end()
		return await(ctx, rung, f.closed)
	}, nil
}

func (f *logFollower) read(ctx context.Context) (journal.Page, error) {
	heads, err := f.src.Head(ctx, f.log)
	if err != nil {
		return journal.Page{}, err
	}
	at := f.Position()
	if gap := f.gap(at, heads); gap != nil {
		return journal.Page{}, gap
	}
	if heads.Durable.Seq <= at.Seq {
		return journal.Page{}, nil
	}
	page, err := f.src.Read(ctx, f.log, journal.ReadOptions{From: at.Seq + 1, Incarnation: at.Incarnation})
	if err != nil || len(page.Entries) == 0 {
		return page, err
	}
	f.mu.Lock()
	f.at = page.Head.Position()
	f.at.Seq = page.Entries[len(page.Entries)-1].Seq
	f.mu.Unlock()
	return page, nil
}

// gap returns an error if a position does not exist. A position that is ordered and
// not yet durable does not exist: it may be aborted, and its number given to another
// record. The head of a log that did not exist is before the log's first record.
func (f *logFollower) gap(at journal.Position, heads journal.Heads) error {
	if at.IsZero() {
		return nil
	}
	gap := &journal.GapError{Log: f.log, Shard: f.shard, Want: at}
	if heads.Durable.Exists() {
		gap.Head = heads.Durable.Position()
	}
	switch {
	case at.Epoch != heads.Durable.Epoch:
		gap.Reason = journal.EpochChanged
	case at.Incarnation == 0 && at.Seq == 0:
		return nil
	case at.Incarnation == heads.Durable.Incarnation && at.Seq <= heads.Durable.Seq:
		return nil
	case at.Incarnation == heads.Durable.Incarnation || at.Incarnation == heads.Ordered.Incarnation:
		gap.Reason = journal.NeverWritten
	default:
		gap.Reason = journal.LogDropped
	}
	return gap
}

func await(ctx context.Context, rung, closed <-chan struct{}) error {
	select {
	case <-rung:
		return nil
	case <-closed:
		return journal.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
