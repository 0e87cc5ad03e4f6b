package journalbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal"
)

// recordLen is the size of the records that all figures use.
const recordLen = 600

// payloads returns records that do not compress, as real ones compress little.
func payloads() [][]byte {
	source := rand.NewChaCha8([32]byte{1})
	list := make([][]byte, 64)
	for i := range list {
		list[i] = make([]byte, recordLen)
		_, _ = source.Read(list[i])
	}
	return list
}

// load runs writers for a while and reports durable appends per second.
func load(ctx context.Context, d time.Duration, writers int, write func(ctx context.Context, writer, i int) error) (bench.Sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lists := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	start := time.Now()
	deadline := start.Add(d)
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				began := time.Now()
				if (i > 0 && began.After(deadline)) || ctx.Err() != nil {
					return
				}
				if err := write(ctx, w, i); err != nil {
					cancel(err)
					return
				}
				lists[w] = append(lists[w], time.Since(began))
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if ctx.Err() != nil {
		return bench.Sample{}, context.Cause(ctx)
	}
	var all []time.Duration
	for _, list := range lists {
		all = append(all, list...)
	}
	if len(all) == 0 {
		return bench.Sample{}, fmt.Errorf("no append in %v", d)
	}
	s := bench.Sample{Value: float64(len(all)) / took.Seconds()}
	s.P50, s.P99 = bench.Latencies(all)
	return s, nil
}

var partition = journal.PartitionName{Tenant: "bench", Partition: "bench"}

// appender writes to an engine, each writer to a log of its own.
func appender(e journal.Engine, family string, data [][]byte, writers int) func(ctx context.Context, writer, i int) error {
	logs := make([]journal.LogName, writers)
	for i := range logs {
		logs[i] = partition.In(family, fmt.Sprint(i))
	}
	return func(ctx context.Context, writer, i int) error {
		ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{{
			Log: logs[writer], Records: []journal.Record{{Data: data[i%len(data)]}},
		}}})
		if err != nil {
			return err
		}
		return ticket.Wait(ctx)
	}
}
