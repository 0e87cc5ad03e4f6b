package ag2

import (
	"container/list"
	"context"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// foreignFold is the state of a foreign channel's log for some readers. It is
// cached, so that a query reads only what is new since the last one.
type foreignFold struct {
	mu     sync.Mutex
	reader *foreignReader
	seq    uint64 // how far the log was read
	shown  uint64 // how many envelopes are shown for that part, without the head
	asks   []ask  // the newest, in the order of their ids
	marks  []mark // positions from which reading may begin; none if the reader keeps state
	stride uint64 // between marks
}

// ask is a text that asked an identity to answer.
type ask struct {
	id string
	question
}

// mark is a position in a log, and how many envelopes are shown before it.
type mark struct{ seq, shown uint64 }

const (
	// maxAsks is how many questions of a channel are cached; older ones are
	// searched in its log.
	maxAsks = 32
	// maxMarks is how many positions of a log are cached; above it, every second is
	// dropped.
	maxMarks, firstStride = 64, 64
)

// advance reads what is new in the log, with the channel's current members.
func (k *foreignFold) advance(ctx context.Context, s *Server, f *foreign, about string) error {
	if k.reader == nil {
		k.reader, k.stride = f.reader(about), firstStride
	}
	k.reader.channel = f // use the current members and visibility
	_, anywhere := k.reader.items.(channel.ItemFunc)
	var shown []*envelope.Envelope
	for e, err := range s.cfg.Hub.Log(ctx, f.meta.ID, k.seq+1, 0) {
		if err != nil {
			return err
		}
		before := k.reader.asked
		shown = k.reader.read(shown[:0], e)
		k.seq, k.shown = e.Seq, k.shown+uint64(len(shown))
		if asked := k.reader.asked; asked != nil && asked != before {
			if len(k.asks) == maxAsks {
				k.asks = slices.Delete(k.asks, 0, 1)
			}
			k.asks = append(k.asks, ask{asked.ID, question{k.reader.work, e.Sender}})
		}
		if anywhere && k.shown >= k.mark(k.shown).shown+k.stride {
			k.add(mark{k.seq, k.shown})
		}
	}
	return nil
}

func (k *foreignFold) add(m mark) {
	if len(k.marks) == maxMarks {
		for i := range maxMarks / 2 {
			k.marks[i] = k.marks[2*i+1]
		}
		k.marks, k.stride = k.marks[:maxMarks/2], 2*k.stride
	}
	k.marks = append(k.marks, m)
}

// mark returns the last position before which at most n envelopes are shown.
func (k *foreignFold) mark(n uint64) mark {
	i := sort.Search(len(k.marks), func(i int) bool { return k.marks[i].shown > n })
	if i == 0 {
		return mark{}
	}
	return k.marks[i-1]
}

// asked finds a question by the id of its text. Known is false if the question may
// have been dropped.
func (k *foreignFold) asked(id string) (q question, found, known bool) {
	i, found := slices.BinarySearchFunc(k.asks, id, func(a ask, id string) int { return strings.Compare(a.id, id) })
	if found {
		return k.asks[i].question, true, true
	}
	return question{}, false, i > 0 || len(k.asks) < maxAsks
}

// foldKey identifies a reading of a log: the identity that the reader is about, and
// the visibility that applies.
type foldKey struct{ channel, about, sight string }

// foreignFolds caches the folds that were used last.
type foreignFolds struct {
	mu    sync.Mutex
	known map[foldKey]*list.Element
	order list.List // of keptFold, the last used in front
}

type keptFold struct {
	key  foldKey
	fold *foreignFold
}

// get returns a fold, and drops the least recently used one if there are more than
// most.
func (f *foreignFolds) get(key foldKey, most int) *foreignFold {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.known[key]; at != nil {
		f.order.MoveToFront(at)
		return at.Value.(keptFold).fold //nolint:forcetypeassert // it holds nothing else
	}
	if f.known == nil {
		f.known = map[foldKey]*list.Element{}
	}
	for len(f.known) >= max(most, 1) {
		oldest := f.order.Back()
		delete(f.known, oldest.Value.(keptFold).key) //nolint:forcetypeassert // as above
		f.order.Remove(oldest)
	}
	kept := keptFold{key, &foreignFold{}}
	f.known[key] = f.order.PushFront(kept)
	return kept.fold
}

// folded returns the current fold of a foreign channel, locked. The caller unlocks
// it.
func (s *Server) folded(ctx context.Context, f *foreign, about, sight string) (*foreignFold, error) {
	k := &foreignFold{} // not cached: readers that see nothing now may see everything later
	if f.whole || len(f.readers) > 0 {
		k = s.folds.get(foldKey{f.meta.ID, about, sight}, foldsPerForeign*s.cfg.Limits.Foreign)
	}
	k.mu.Lock()
	if err := k.advance(ctx, s, f, about); err != nil {
		k.mu.Unlock()
		return nil, err
	}
	return k, nil
}

// foldsPerForeign is how many folds are cached for each channel that one connection
// may receive.
const foldsPerForeign = 4
