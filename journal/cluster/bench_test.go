package cluster_test

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAppend: durable appends through the engine on three servers, beside a
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
			var wg sync.WaitGroup
			for w := range writers {
				log := history.Of().In("log", fmt.Sprint(w))
				wg.Go(func() {
					for i := w; i < b.N; i += writers {
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
			if groups := n.Stats().Groups; groups > 0 {
				b.ReportMetric(float64(b.N)/float64(groups), "appends/group")
			}
		})
	}
}
