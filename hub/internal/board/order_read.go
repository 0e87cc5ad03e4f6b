package board

import (
	"iter"

	"github.com/parley-hub/parley/hub/internal/expect"
)

// before counts the keys that are earlier than a time.
func (o *order) before(at expect.Instant) int {
	chunk, n, _ := o.find(key{at: at})
	for _, c := range o.chunks[:chunk] {
		n += len(c)
	}
	return n
}

// from yields the keys after one, or all if it is nil; backward those in front of it, the
// last first.
func (o *order) from(after *key, backward bool) iter.Seq[key] {
	chunk, at := 0, 0
	if backward {
		chunk = len(o.chunks)
	}
	if after != nil {
		var found bool
		if chunk, at, found = o.find(*after); found && !backward {
			at++
		}
	}
	return func(yield func(key) bool) {
		if backward {
			for chunk >= 0 {
				for at--; at >= 0; at-- {
					if !yield(o.chunks[chunk][at]) {
						return
					}
				}
				if chunk--; chunk >= 0 {
					at = len(o.chunks[chunk])
				}
			}
			return
		}
		for ; chunk < len(o.chunks); chunk, at = chunk+1, 0 {
			for _, k := range o.chunks[chunk][at:] {
				if !yield(k) {
					return
				}
			}
		}
	}
}
