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
	// atMost is how many times a second a heap is collected that grows slowly: it need
	// not grow to the floor.
	atMost = 3
	// lookEvery is how often a heap that is not quiet is checked.
	lookEvery = 5 * time.Second
	// share bounds the time spent on shrinking a heap: each time is followed by
	// a pause of so many times its length.
	share = 100
)

var once sync.Once

// Floor lets the heap grow to so many bytes before it is collected, for the rest of
// the process. It does nothing if GOGC is set, or if it was called before.
func Floor(bytes uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	once.Do(func() { start(bytes, lookEvery) })
}

func start(floor uint64, every time.Duration) {
	p := &pace{floor: floor, every: every, percent: 100, at: time.Now()}
	p.collected()
	p.afterCollection()
	time.AfterFunc(every, p.checkQuiet)
}

// pace controls how a heap is collected. It checks the heap until it is quiet,
// and again as soon as it is not: an idle process is not woken for it.
type pace struct {
	floor uint64
	every time.Duration

	mu        sync.Mutex
	percent   int       // what was set last
	quiet     bool      // next to nothing is allocated
	at        time.Time // when that was judged last
	allocated uint64    // bytes that were ever allocated by then
	notBefore time.Time // when the heap may be shrunk again

	last          time.Time // when the heap was collected last
	lastAllocated uint64    // bytes that were ever allocated by then
	rate          float64   // bytes a second between the last two collections
}

// afterCollection adjusts after the next collection: only that shows what is alive.
func (p *pace) afterCollection() {
	type sentinel struct{ _ [16]byte }
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
		p.collected()
		p.afterCollection()
	})
}

// collected sets the percentage for what a collection has left.
func (p *pace) collected() {
	live, allocated := heap()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.quiet && p.judge(now, allocated) && !p.quiet {
		time.AfterFunc(p.every, p.checkQuiet)
	}
	if passed := now.Sub(p.last).Seconds(); passed > 0 {
		p.rate = float64(allocated-p.lastAllocated) / passed
	}
	p.last, p.lastAllocated = now, allocated
	p.set(live)
}

// heap returns how many bytes the last collection left, and how many were ever
// allocated.
func heap() (live, allocated uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// set sets the percentage for a heap with so many live bytes.
func (p *pace) set(live uint64) {
	percent := percentFor(p.floor, live, p.rate)
	if p.quiet {
		percent = quietPercent
	}
	// Setting it stops the world for a moment: small steps are not worth it.
	if diff := percent - p.percent; diff > p.percent/8 || -diff > p.percent/8 {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
}

// percentFor returns by what percentage a heap with so many live bytes and such a
// rate of allocation may grow: to the floor, or by 100 %, which is Go's default,
// whichever is more; less where it takes a third of a second to grow so far.
func percentFor(floor, live uint64, rate float64) int {
	if live == 0 {
		return most
	}
	room := max(float64(floor)-float64(live), float64(live))
	room = min(room, max(rate/atMost, float64(live)/2))
	return int(min(room*100/float64(live), most))
}
