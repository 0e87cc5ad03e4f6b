// Package gcpace keeps a small heap from being collected all the time. A hub
// that holds a few megabytes and allocates hundreds a second would otherwise
// spend an eighth of its time on garbage that fits in memory many times over.
// It never delays the collection of a heap that is larger than the floor.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// most bounds the percentage, for heaps that hold next to nothing.
const most = 1600

var once sync.Once

// Floor lets the heap grow to so many bytes before it is collected, for the
// rest of the process. Whoever set GOGC has decided already, and a second
// floor changes nothing.
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

// pace is the percentage that was set last.
type pace struct {
	floor   uint64
	percent int
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
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	percent := percentFor(p.floor, live[0].Value.Uint64())
	// Setting it stops the world for a moment: small steps are not worth it.
	if diff := percent - p.percent; diff > p.percent/8 || -diff > p.percent/8 {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
}

// percentFor is how much a heap with so many live bytes may grow: to the floor,
// or as Go has it, whichever is more.
func percentFor(floor, live uint64) int {
	if live == 0 {
		return most
	}
	if floor <= 2*live {
		return 100
	}
	return int(min((floor-live)*100/live, most))
}
