// Package gcpace keeps a small heap from being collected all the time. A hub
// that holds a few megabytes and allocates hundreds a second would otherwise
// spend an eighth of its time on garbage that fits in memory many times over.
// It never delays the collection of a heap that is larger than the floor, and a
// hub that has become quiet gives the memory back.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// most bounds the percentage, for heaps that hold next to nothing.
	most = 1600
	// quiet is how many bytes a second a process allocates at most that does next to
	// nothing.
	quiet = 1 << 20
	// quietPercent is how much a quiet heap may grow: collecting it costs little, and
	// the runtime returns what is beyond that to the system.
	quietPercent = 20
)

var once sync.Once

// Floor lets the heap grow to so many bytes before it is collected, for the rest of
// the process. It does nothing if GOGC is set, or if it was called before.
func Floor(bytes uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	once.Do(func() { start(bytes) })
}

func start(floor uint64) {
	p := &pace{floor: floor, percent: 100}
	p.adjust()
	p.again()
}

// pace is the percentage that was set last, when, and how much had been allocated
// by then.
type pace struct {
	floor     uint64
	percent   int
	at        time.Time
	allocated uint64
}

// again adjusts after the next collection: only that tells what is alive.
func (p *pace) again() {
	type sentinel struct{ _ [16]byte }
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
		p.adjust()
		p.again()
	})
}

func (p *pace) adjust() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return
	}
	p.take(time.Now(), samples[0].Value.Uint64(), samples[1].Value.Uint64())
}

// take sets the percentage for a heap with so many live bytes, of all that were ever
// allocated.
func (p *pace) take(now time.Time, live, allocated uint64) {
	percent := percentFor(p.floor, live)
	if rate := float64(allocated-p.allocated) / now.Sub(p.at).Seconds(); rate < quiet && !p.at.IsZero() {
		percent = quietPercent
	}
	p.at, p.allocated = now, allocated
	// Setting it stops the world for a moment: small steps are not worth it.
	if diff := percent - p.percent; diff > p.percent/8 || -diff > p.percent/8 {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
}

// percentFor is how much a heap with so many live bytes may grow: to the floor,
// or by 100 %, which is Go's default, whichever is more.
func percentFor(floor, live uint64) int {
	if live == 0 {
		return most
	}
	if floor <= 2*live {
		return 100
	}
	return int(min((floor-live)*100/live, most))
}
