package disk_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestPowerLoss runs random histories on a file system that loses what was not
// synced, simulates a power loss at a random operation, and opens what is left.
// A failing history prints its seed; POWER_SEED runs only that one.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	if text := os.Getenv("POWER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		powerLoss(t, seed)
		return
	}
	first := rand.Uint64()
	for i := range scale.N(500) {
		seed := first + uint64(i)
		powerLoss(t, seed)
		if t.Failed() {
			t.Fatalf("replay with POWER_SEED=%d", seed)
		}
	}
}

// history is what happened in one run, up to the power loss.
type history struct {
	t    *testing.T
	seed uint64

	mu      sync.Mutex
	wrote   map[journal.LogName]map[uint64]string // every record that was ordered
	pairs   map[uint64][2]journal.Position        // batches that wrote to both logs, by offset
	durable map[journal.LogName]uint64            // last sequence of a ticket that ended durable
	shown   map[journal.LogName]uint64            // last sequence that a reader saw
	lazy    map[string]bool                       // every lazy value
	held    map[string]bool                       // claims whose batch ended durable

	frozen *history // the state at the power loss
	left   *vfs.MemFS
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{
		t: t, seed: seed,
		wrote: map[journal.LogName]map[uint64]string{}, pairs: map[uint64][2]journal.Position{},
		durable: map[journal.LogName]uint64{}, shown: map[journal.LogName]uint64{},
		lazy: map[string]bool{"": true}, held: map[string]bool{},
	}
}

// freeze copies the history at the power loss.
func (h *history) freeze() *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := newHistory(h.t, h.seed)
	f.durable, f.shown, f.held = maps.Clone(h.durable), maps.Clone(h.shown), maps.Clone(h.held)
	return f
}

func powerLoss(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := newHistory(t, seed)
	mem := vfs.NewCrashableMem()
	for round := range 1 + rng.IntN(3) {
		fs := &powerFS{FS: mem, left: int64(1 + rng.IntN(150))}
		unsynced := rng.IntN(101)
		promised := h.frozen
		fs.goes = func() {
			h.frozen = h.freeze()
			h.left = mem.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(seed, uint64(round))),
			})
		}
		e, err := disk.Open("/data", testOptions(fs))
		if err != nil {
			t.Errorf("seed %d, round %d: %v", seed, round, err)
			return
		}
		if round > 0 {
			h.check(e, promised)
		}
		h.run(e, rng)
		fs.now()
		_ = e.Close()
		mem = h.left
		h.durable, h.shown, h.held = maps.Clone(h.frozen.durable), maps.Clone(h.frozen.shown), maps.Clone(h.frozen.held)
	}
	e, err := disk.Open("/data", testOptions(mem))
	if err != nil {
		t.Errorf("seed %d: after the last crash: %v", seed, err)
		return
	}
	h.check(e, h.frozen)
	if err := e.Close(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// run runs a few writers and a reader until they are done.
func (h *history) run(e *disk.Engine, rng *rand.Rand) {
	logs := []journal.LogName{room.In("history", "a"), room.In("history", "b")}
	seeds := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w, seed := range seeds {
		writers.Go(func() { h.write(e, w, logs, rand.New(rand.NewPCG(seed, 2))) })
	}
	readers.Go(func() {
		for {
			for _, log := range logs {
				page, err := e.Read(ctx, log, journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 3}})
				if err != nil {
					h.t.Errorf("seed %d: reading: %v", h.seed, err)
					return
				}
				h.mu.Lock()
				h.shown[log] = max(h.shown[log], page.Head.Seq)
				h.mu.Unlock()
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
}

func (h *history) write(e *disk.Engine, w int, logs []journal.LogName, rng *rand.Rand) {
	for range 4 + rng.IntN(12) {
		if rng.IntN(6) == 0 {
			v := fmt.Sprint(rng.Uint64())
			h.mu.Lock()
			h.lazy[v] = true
			h.mu.Unlock()
			if err := e.PutLazy(ctx, journal.ValueWrite{Key: journal.ValueKey{Partition: room, Name: "lazy"}, Data: []byte(v)}); err != nil {
				h.t.Errorf("seed %d: %v", h.seed, err)
			}
			continue
		}
		text := fmt.Sprintf("%d %d %0*d", w, rng.Uint64(), rng.IntN(3000), 0)
		claim := fmt.Sprintf("claim %d", rng.Uint64())
		b := journal.Batch{}
		for _, i := range rng.Perm(len(logs))[:1+rng.IntN(2)] {
			b.Appends = append(b.Appends, journal.Append{Log: logs[i], Records: []journal.Record{{Data: []byte(text)}}})
		}
		b.Appends[0].Records[0].Take = []journal.Take{{Name: claim}}
		b.Appends[0].Records[0].Put = []journal.IndexPut{{Key: []byte(claim)}}
		ticket, err := h.order(e, b, text)
		if err != nil {
			h.t.Errorf("seed %d: %v", h.seed, err)
			return
		}
		if rng.IntN(4) == 0 {
			continue // do not wait for this batch
		}
		if err := ticket.Wait(ctx); err != nil {
			h.t.Errorf("seed %d: %v", h.seed, err)
			return
		}
		h.mu.Lock()
		for i, a := range b.Appends {
			h.durable[a.Log] = max(h.durable[a.Log], ticket.Appended()[i].Last)
		}
		h.held[claim] = true
		h.mu.Unlock()
	}
}

// order appends under the history's lock, so that what was ordered is recorded
// before a reader can see it.
func (h *history) order(e *disk.Engine, b journal.Batch, text string) (*journal.Ticket, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ticket, err := e.Append(ctx, b)
	if err != nil {
		return nil, err
	}
	for i, a := range b.Appends {
		if h.wrote[a.Log] == nil {
			h.wrote[a.Log] = map[uint64]string{}
		}
		h.wrote[a.Log][ticket.Appended()[i].Last] = text
	}
	if len(b.Appends) == 2 {
		h.pairs[ticket.Offset()] = [2]journal.Position{ticket.Position(0), ticket.Position(1)}
	}
	return ticket, nil
}

// check compares the store with what was promised before the power loss.
func (h *history) check(e *disk.Engine, promised *history) {
	place, err := e.Place(ctx, 0)
	if err != nil || place.Epoch != 1 {
		h.t.Errorf("seed %d: place %+v, %v", h.seed, place, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := map[uint64]int{} // records of each batch
	for log, wrote := range h.wrote {
		last := uint64(0)
		for entry, err := range journal.Records(ctx, e, log, journal.ReadOptions{}) {
			if err != nil {
				h.t.Errorf("seed %d: %v", h.seed, err)
				return
			}
			if entry.Seq != last+1 || wrote[entry.Seq] != string(entry.Data) {
				h.t.Errorf("seed %d: log %v has another record at %d", h.seed, log, entry.Seq)
			}
			last = entry.Seq
			at[entry.Offset]++
		}
		if last < promised.durable[log] || last < promised.shown[log] {
			h.t.Errorf("seed %d: log %v ends at %d; %d was durable, %d was shown",
				h.seed, log, last, promised.durable[log], promised.shown[log])
		}
		h.durable[log], h.shown[log] = last, last
		for seq := range wrote {
			if seq > last {
				delete(wrote, seq) // its sequence is used again
			}
		}
	}
	for offset := range h.pairs {
		if offset > place.Durable {
			delete(h.pairs, offset)
		} else if at[offset] != 2 {
			h.t.Errorf("seed %d: of the batch at %d there are %d records, want 2", h.seed, offset, at[offset])
		}
	}
	for name := range promised.held {
		if state, err := e.Claim(ctx, 0, name); err != nil || state.Durable == nil {
			h.t.Errorf("seed %d: the claim %q is %+v, %v", h.seed, name, state, err)
		}
	}
	v, err := e.LazyValue(ctx, journal.ValueKey{Partition: room, Name: "lazy"})
	if err != nil || !h.lazy[string(v.Data)] {
		h.t.Errorf("seed %d: the lazy value is %q, %v", h.seed, v.Data, err)
	}
}

// powerFS calls a function, once, at one of the operations that change files.
type powerFS struct {
	vfs.FS
	left int64
	once sync.Once
	goes func()
}

func (p *powerFS) now() { p.once.Do(p.goes) }

func (p *powerFS) step() {
	if atomic.AddInt64(&p.left, -1) == 0 {
		p.now()
	}
}

func (p *powerFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	p.step()
	f, err := p.FS.Create(name, c)
	return p.wrap(f, err)
}

func (p *powerFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	p.step()
	f, err := p.FS.ReuseForWrite(old, name, c)
	return p.wrap(f, err)
}

func (p *powerFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, c, opts...)
	return p.wrap(f, err)
}

func (p *powerFS) OpenDir(name string) (vfs.File, error) {
	f, err := p.FS.OpenDir(name)
	return p.wrap(f, err)
}

func (p *powerFS) Rename(from, to string) error {
	p.step()
	return p.FS.Rename(from, to)
}

func (p *powerFS) Remove(name string) error {
	p.step()
	return p.FS.Remove(name)
}

func (p *powerFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &powerFile{File: f, fs: p}, nil
}

type powerFile struct {
	vfs.File
	fs *powerFS
}

func (f *powerFile) Write(b []byte) (int, error) {
	f.fs.step()
	return f.File.Write(b)
}

func (f *powerFile) WriteAt(b []byte, at int64) (int, error) {
	f.fs.step()
	return f.File.WriteAt(b, at)
}

func (f *powerFile) Sync() error {
	f.fs.step()
	return f.File.Sync()
}

func (f *powerFile) SyncData() error {
	f.fs.step()
	return f.File.SyncData()
}
