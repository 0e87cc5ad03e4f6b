package cluster_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
)

// BenchmarkAppend compares durable appends through the engine on three servers with a
// bare publisher that has one message in flight.
func BenchmarkAppend(b *testing.B) {
	data := make([]byte, 256)
	b.Run("bare publish, one in flight", func(b *testing.B) {
		name := natsServers{}.create(b, 1, 1)
		log := dial(b, name)
		defer log.Close()
		b.ResetTimer()
		for i := range b.N {
			if err := log.Append(b.Context(), 0, uint64(i), data); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, writers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("engine, %d writers", writers), func(b *testing.B) {
			name := natsServers{}.create(b, 1, 1)
			n := openNode(b, "a", dial(b, name)).take()
			b.ResetTimer()
			appendAll(b, n, writers, b.N, data)
			if groups := n.Stats().Groups; groups > 0 {
				b.ReportMetric(float64(b.N)/float64(groups), "appends/group")
			}
		})
	}
}

// BenchmarkCopy compares making a copy from the stream with only reading the stream.
func BenchmarkCopy(b *testing.B) {
	const writers, each = 256, 400
	name := natsServers{}.create(b, 1, 1)
	n := openNode(b, "a", dial(b, name)).take()
	data := make([]byte, 256)
	appendAll(b, n, writers, writers*each, data)
	last := n.Reached(0)
	b.Run("read", func(b *testing.B) {
		log := dial(b, name)
		defer log.Close()
		for range b.N {
			for at := uint64(1); at <= last; {
				messages, err := log.Read(b.Context(), 0, at)
				if err != nil {
					b.Fatal(err)
				}
				at += uint64(len(messages))
			}
		}
		b.ReportMetric(float64(b.N*writers*each)/b.Elapsed().Seconds(), "records/s")
	})
	b.Run("copy", func(b *testing.B) {
		cpu := bench.CPU()
		for i := range b.N {
			dir := b.TempDir()
			c := openNode(b, fmt.Sprint("copy", i), dial(b, name), func(o *cluster.Options) { o.Dir, o.Disk = dir, disk.Options{} })
			c.reaches(last)
			b.StopTimer()
			_ = c.Close()
			b.StartTimer()
		}
		b.ReportMetric(float64((bench.CPU()-cpu).Nanoseconds())/1000/float64(b.N*writers*each), "cpu-µs/record")
		b.ReportMetric(float64(b.N*writers*each)/b.Elapsed().Seconds(), "records/s")
	})
}

// appendAll appends batches with several concurrent writers, each to its own log, and
// waits until they are durable.
func appendAll(b *testing.B, n *node, writers, count int, data []byte) {
	b.Helper()
	var wg sync.WaitGroup
	for w := range writers {
		log := history.Of().In("log", fmt.Sprint(w))
		wg.Go(func() {
			for i := w; i < count; i += writers {
				batch := text(string(data))
				batch.Appends[0].Log = log
				ticket, err := n.Append(n.ctx, batch)
				if err == nil {
					err = ticket.Wait(n.ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
