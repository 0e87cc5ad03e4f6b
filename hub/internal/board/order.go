package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-hub/parley/hub/internal/expect"
)

// key is a place in an order: by time, then by id.
type key struct {
	at expect.Instant
	id string
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.at, other.at), strings.Compare(k.id, other.id))
}

// order is a sorted set of keys, in sorted chunks. Neither a change nor a search moves or
// compares more than a few chunks' worth of keys.
type order struct {
	chunks [][]key
	size   int
}

// A chunk of more keys is split; neighbours of fewer keys together are joined.
const (
	mostInChunk = 512
	leastInTwo  = 256
)

// find returns the place of the first key that is not before k, and whether it is k.
func (o *order) find(k key) (chunk, at int, found bool) {
	chunk, _ = slices.BinarySearchFunc(o.chunks, k, func(c []key, k key) int { return c[len(c)-1].compare(k) })
	if chunk == len(o.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(o.chunks[chunk], k, key.compare)
	return chunk, at, found
}

func (o *order) put(k key) {
	chunk, at, found := o.find(k)
	switch {
	case found:
		return
	case len(o.chunks) == 0:
		o.chunks = [][]key{nil}
	case chunk == len(o.chunks):
		chunk--
		at = len(o.chunks[chunk])
	}
	o.size++
	c := slices.Insert(o.chunks[chunk], at, k)
	if len(c) > mostInChunk {
		half := len(c) / 2
		o.chunks = slices.Insert(o.chunks, chunk+1, slices.Clone(c[half:]))
		c = slices.Clone(c[:half])
	}
	o.chunks[chunk] = c
}

func (o *order) remove(k key) {
	chunk, at, found := o.find(k)
	if !found {
		return
	}
	o.size--
	o.chunks[chunk] = slices.Delete(o.chunks[chunk], at, at+1)
	if len(o.chunks[chunk]) == 0 {
		o.chunks = slices.Delete(o.chunks, chunk, chunk+1)
		return
	}
	for _, first := range []int{chunk, chunk - 1} {
		if first < 0 || first+1 >= len(o.chunks) || len(o.chunks[first])+len(o.chunks[first+1]) >= leastInTwo {
			continue
		}
		o.chunks[first] = slices.Concat(o.chunks[first], o.chunks[first+1])
		o.chunks = slices.Delete(o.chunks, first+1, first+2)
	}
}
