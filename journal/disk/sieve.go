package disk

import (
	"hash/maphash"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// sieveMost is the maximum number of names in the store for which a sieve is made. A
// sieve takes at most four bytes for each name, and eight more while it is made.
const sieveMost = 1 << 21

// sieve is a filter of the names in the store. For most names that the store lacks it
// reports that at once, so that a new claim or log needs no lookup. It is made from the
// store once many lookups found nothing, and every name that is written from then on is
// added. Names that are removed stay in it until it is made again. It is used with the
// engine's lock held.
type sieve struct {
	kind  byte // of the keys
	opts  *Options
	seed  maphash.Seed
	ready *bloom   // nil: there is none
	since []uint64 // names written while it is being made
	made  *int     // identifies the build in progress; nil: none
	vain  int      // lookups that found nothing
	tried bool     // the last attempt to make it failed
}

func newSieve(kind byte, o *Options) sieve {
	return sieve{kind: kind, opts: o, seed: maphash.MakeSeed()}
}

func (s *sieve) claim(name string) uint64 { return maphash.String(s.seed, name) }

// log returns the hash of a log's name. It writes the log's key into room and returns
// the buffer for reuse.
func (s *sieve) log(log journal.LogName, room []byte) (hash uint64, used []byte) {
	key := layout.HeadKey(room[:0], log)
	return maphash.Bytes(s.seed, key[1:]), key
}

// lacks reports whether the newest view is known not to have a name.
func (s *sieve) lacks(hash uint64) bool { return s.ready != nil && !s.ready.has(hash) }

// add adds a name. It is called for every name that the newest view has and the view
// before it did not have.
func (s *sieve) add(hash uint64) {
	if s.ready != nil {
		s.ready.add(hash)
	}
	if s.made != nil {
		s.since = append(s.since, hash)
	}
}

// told reports whether add needs to be called.
func (s *sieve) told() bool { return s.ready != nil || s.made != nil }

// forget discards the sieve. It is called when names were written without a call of add.
func (s *sieve) forget() {
	if s.told() {
		s.ready, s.since, s.made, s.vain = nil, nil, nil, 0
	}
}

// due reports whether the sieve should be made now: many lookups found nothing, or it
// holds more names than it has room for.
func (s *sieve) due() bool {
	switch {
	case s.made != nil:
		return false
	case s.ready != nil:
		return s.ready.added > s.ready.room
	}
	return s.vain >= s.opts.sieveWorth && (!s.tried || s.vain >= sieveMost)
}

// sift makes a sieve if it is due, in its own goroutine; the lock is held.
func (e *Engine) sift(s *sieve) {
	if !s.due() || e.failure != nil {
		return
	}
	v, err := e.enterLocked()
	if err != nil {
		return
	}
	made := new(int)
	s.made, s.since = made, nil
	kind, seed := s.kind, s.seed
	go func() {
		defer v.leave()
		names, ok := v.names(kind, seed)
		var ready *bloom
		if ok {
			ready = newBloom(max(e.opts.sieveFirst, 2*len(names)))
			for _, hash := range names {
				ready.add(hash)
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if s.made != made {
			return // forget was called meanwhile
		}
		if ready != nil {
			for _, hash := range s.since {
				ready.add(hash)
			}
		}
		s.ready, s.made, s.since, s.vain, s.tried = ready, nil, nil, 0, ready == nil
	}()
}

// names returns the hashes of all names of a kind. It returns false if there are too
// many, if they cannot be read, or if the engine ends.
func (v *view) names(kind byte, seed maphash.Seed) ([]uint64, bool) {
	it, err := v.iter([]byte{kind}, []byte{kind + 1})
	if err != nil {
		return nil, false
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	var list []uint64
	for ok := it.First(); ok; ok = it.Next() {
		if len(list) == sieveMost {
			return nil, false
		}
		if len(list)%1024 == 0 {
			select {
			case <-v.engine.stop:
				return nil, false
			case <-v.engine.failed:
				return nil, false
			default:
			}
		}
		list = append(list, maphash.Bytes(seed, it.Key()[1:]))
	}
	return list, it.Error() == nil
}

// bloom is a Bloom filter in blocks of one cache line. With 16 bits for each name, one
// in a thousand absent names is a false positive.
type bloom struct {
	blocks []bloomBlock
	added  int
	room   int
}

type bloomBlock [8]uint64

const (
	bloomBits  = 16 // for each name
	bloomMarks = 6  // bits that a name sets, of nine bits of its hash each
)

func newBloom(room int) *bloom {
	return &bloom{blocks: make([]bloomBlock, room*bloomBits/512+1), room: room}
}

// place returns a name's block, and the bits that select its marks in that block.
func (b *bloom) place(hash uint64) (*bloomBlock, uint64) {
	at := (hash >> 32) * uint64(len(b.blocks)) >> 32
	return &b.blocks[at], hash * 0x9e3779b97f4a7c15 >> 10
}

func (b *bloom) add(hash uint64) {
	block, marks := b.place(hash)
	for range bloomMarks {
		block[marks>>6&7] |= 1 << (marks & 63)
		marks >>= 9
	}
	b.added++
}

func (b *bloom) has(hash uint64) bool {
	block, marks := b.place(hash)
	for range bloomMarks {
		if block[marks>>6&7]&(1<<(marks&63)) == 0 {
			return false
		}
		marks >>= 9
	}
	return true
}
