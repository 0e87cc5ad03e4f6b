package hpdbench

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	dialect "github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
)

// messages is how many messages a long branch has, whatever its deltas.
const messages = 10

// long compares a branch of many deltas with one of few that has as many
// messages: to open it, to list its session, to fork it.
func long(ctx context.Context, o Options, s *site) (figures []bench.Figure, err error) {
	few := max(o.Deltas/100, messages)
	scopes := map[int]wire.Scope{}
	for _, n := range []int{o.Deltas, few} {
		run, err := s.run(ctx)
		if err != nil {
			return nil, err
		}
		if err := fill(ctx, run, n); err != nil {
			return nil, err
		}
		scopes[n] = run.Scope()
	}
	side := func(n int, cold bool, op func(ctx context.Context, at wire.Scope) error) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return streams.Timed(d, func() (time.Duration, error) {
				if cold {
					s.hub.Evict()
				}
				start := time.Now()
				err := op(ctx, scopes[n])
				return time.Since(start), err
			})
		}
	}
	get := func(ctx context.Context, at wire.Scope) error {
		_, _, err := s.client.Branch(ctx, at)
		return err
	}
	list := func(ctx context.Context, at wire.Scope) error {
		_, _, err := s.client.Branches(ctx, at.Session)
		return err
	}
	last := fmt.Sprint("m-", messages-1)
	fork := func(ctx context.Context, at wire.Scope) error {
		made, _, err := s.client.Fork(ctx, at, wire.ForkBranch{FromMessageID: &last})
		if err != nil {
			return err
		}
		return s.client.DeleteBranch(ctx, wire.Scope{Session: at.Session, Branch: made.ID}, false)
	}
	read := func(ctx context.Context, at wire.Scope) error {
		return s.client.History(ctx, at, "", func(jsontext.Value) error { return nil })
	}
	for _, c := range []bench.Contest{
		{Name: fmt.Sprintf("first touch of a branch of %d deltas, against %d", o.Deltas, few), Target: new(3.0), Ours: side(o.Deltas, true, get), Floor: side(few, true, get)},
		{Name: "list of its session's branches, against the short one's", Target: new(3.0), Ours: side(o.Deltas, false, list), Floor: side(few, false, list)},
		{Name: "fork of it and deletion, against reading it", Target: new(0.75), Ours: side(o.Deltas, false, fork), Floor: side(o.Deltas, false, read)},
		{Name: "fork of it and deletion, against the short one's", Target: new(6.0), Ours: side(o.Deltas, false, fork), Floor: side(few, false, fork)},
	} {
		c.Unit, c.Better = "µs", bench.Lower
		f, err := c.Run(ctx, o.Plan)
		figures = append(figures, f)
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// fill writes messages of n deltas altogether.
func fill(ctx context.Context, run *dialect.Run, n int) error {
	for m := range messages {
		id := fmt.Sprint("m-", m)
		events := []wire.Payload{wire.TextMessageStart{MessageID: id, Role: "assistant"}}
		for range n / messages {
			events = append(events, wire.TextDelta{MessageID: id, Text: delta.Text})
		}
		events = append(events, wire.TextMessageEnd{MessageID: id})
		for len(events) > 0 {
			k := min(len(events), 512)
			if err := run.Publish(ctx, events[:k]...); err != nil {
				return err
			}
			events = events[k:]
		}
	}
	return nil
}
