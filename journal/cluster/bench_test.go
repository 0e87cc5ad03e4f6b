package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
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

// BenchmarkFollow reports the processor time of a node that follows groups of 64 writers,
// which arrive one after the other.
func BenchmarkFollow(b *testing.B) {
	const writers, each, every = 64, 400, 2500 * time.Microsecond
	onDisk := func(o *cluster.Options) { o.Dir, o.Disk = b.TempDir(), disk.Options{} }
	logs := fakelog.New(1)
	n := openNode(b, "a", logs.Connect(), onDisk).take()
	appendAll(b, n, writers, writers*each, make([]byte, 256))
	messages := logs.Messages(0)
	_ = n.Close()
	cpu := time.Duration(0)
	for range b.N {
		anew := fakelog.New(1)
		f := openNode(b, "b", anew.Connect(), onDisk)
		f.until("the beginning", func() bool { return f.Trouble(0) == nil })
		before, ticker := bench.CPU(), time.NewTicker(every)
		for _, m := range messages {
			<-ticker.C
			anew.Put(0, m)
		}
		ticker.Stop()
		f.reaches(uint64(len(messages)))
		cpu += bench.CPU() - before
		_ = f.Close()
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/1000/float64(b.N*writers*each), "cpu-µs/record")
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
