package hpdbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/client/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/streams"
	"github.com/parley-hub/parley/journal"
)

// runs compares many runs in process, each waiting for every delta, with as
// many writers of the journal itself.
func runs(ctx context.Context, o Options, s *site) ([]bench.Figure, error) {
	list, err := s.several(ctx, o.Runs)
	if err != nil {
		return nil, err
	}
	f, err := bench.Contest{
		Name: fmt.Sprintf("%d runs in process, each delta waited for", o.Runs), Unit: "deltas/s", Better: bench.Higher, Target: new(0.5),
		Ours:  together(o.Runs, 1, func(ctx context.Context, i int) error { return list[i].Publish(ctx, delta) }),
		Floor: s.appends(o.Runs),
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// record is as large as a stored delta.
var record = make([]byte, 200)

// appends is the floor: writers that wait for each record, in a partition of
// their own.
func (s *site) appends(writers int) bench.Side { return together(writers, 1, s.appendOp()) }

func (s *site) appendOp() func(ctx context.Context, i int) error {
	return func(ctx context.Context, i int) error {
		log := journal.PartitionName{Tenant: "bench", Partition: fmt.Sprint(i)}.In("history", "-")
		ticket, err := s.engine.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: log, Records: []journal.Record{{Data: record}}}}})
		if err != nil {
			return err
		}
		return ticket.Wait(ctx)
	}
}

// together runs an operation in many goroutines until the time is over and counts how
// often. Each goroutine has several operations in flight.
func together(n, each int, op func(ctx context.Context, i int) error) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		var took []time.Duration
		var failed error
		start := time.Now()
		end := start.Add(d)
		for i := range n {
			wg.Go(func() {
				var mine []time.Duration
				var err error
				for at := time.Now(); err == nil && (len(mine) == 0 || at.Before(end)); {
					err = op(ctx, i)
					now := time.Now()
					mine = append(mine, now.Sub(at))
					at = now
				}
				mu.Lock()
				defer mu.Unlock()
				took, failed = append(took, mine...), errors.Join(failed, err)
			})
		}
		wg.Wait()
		p50, p99 := bench.Latencies(took)
		return bench.Sample{Value: float64(len(took)*each) / time.Since(start).Seconds(), P50: p50, P99: p99}, failed
	}
}

// posts reports the same for producers in other processes, with one delta and with 64
// in each call, beside the journal's own appends.
func posts(ctx context.Context, o Options, s *site) (figures []bench.Figure, err error) {
	producing, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := make(chan *hpd.Run)
	ready := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- s.client.Produce(producing, hpd.Producer{Agent: "far", Ready: func() { ready <- struct{}{} }, Do: func(ctx context.Context, run *hpd.Run) error {
			begun <- run
			<-ctx.Done()
			return ctx.Err()
		}})
	}()
	select {
	case <-ready:
	case err := <-ended:
		return nil, errors.Join(errors.New("no producer"), err)
	}
	urls := make([]string, o.Runs)
	for i := range urls {
		at, err := s.scope(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := s.client.Input(ctx, "far", at, "go"); err != nil {
			return nil, err
		}
		run := <-begun
		urls[i] = s.http.URL + "/hpd/agents/far/sessions/" + run.Work.SessionID + "/branches/main/events?runtimeRunId=" + run.Work.RuntimeRunID
	}
	for _, each := range []int{1, 64} {
		body, err := bodyOf(each)
		if err != nil {
			return figures, err
		}
		f, err := bench.Contest{
			Name: fmt.Sprintf("%d runs over POST, %d in each call", o.Runs, each), Unit: "deltas/s", Better: bench.Higher,
			Ours: together(o.Runs, each, func(ctx context.Context, i int) error {
				return streams.Post(ctx, urls[i], body, http.StatusAccepted)
			}),
			Floor: s.appends(o.Runs),
		}.Run(ctx, o.Plan)
		figures = append(figures, f)
		if err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// bodyOf returns a call with n deltas.
func bodyOf(n int) (jsontext.Value, error) {
	list := jsontext.Value("[")
	for i := range n {
		if i > 0 {
			list = append(list, ',')
		}
		var err error
		if list, err = (&wire.Event{Payload: delta}).Append(list, wire.Branches); err != nil {
			return nil, err
		}
	}
	return append(list, ']'), nil
}
