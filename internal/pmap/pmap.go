// Package pmap is a persistent map from texts: a change makes a new map in
// O(log n) and leaves the old one as it was, so that folded states can share
// what they have in common. It is ordered by key.
package pmap

import (
	"hash/maphash"
	"iter"
)

// Map is immutable; its zero value is empty. It is a treap whose priorities
// are hashes under a seed of this process, so that no client can choose keys
// that make it deep.
type Map[V any] struct{ root *node[V] }

type node[V any] struct {
	key         string
	value       V
	priority    uint64
	size        int
	left, right *node[V]
}

var seed = maphash.MakeSeed()

// Len returns how many keys there are.
func (m Map[V]) Len() int { return m.root.len() }

func (n *node[V]) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

// Get returns the value of a key.
func (m Map[V]) Get(key string) (V, bool) {
	for n := m.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.value, true
		}
	}
	var none V
	return none, false
}

// Set returns a map in which a key has a value.
func (m Map[V]) Set(key string, value V) Map[V] {
	if _, ok := m.Get(key); ok {
		return Map[V]{m.root.replace(key, value)}
	}
	return Map[V]{m.root.insert(&node[V]{key: key, value: value, priority: maphash.String(seed, key)})}
}

// Delete returns a map without a key.
func (m Map[V]) Delete(key string) Map[V] {
	if _, ok := m.Get(key); !ok {
		return m
	}
	return Map[V]{m.root.remove(key)}
}

// All yields keys and values in the order of the keys.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.each(yield) }
}

func (n *node[V]) each(yield func(string, V) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.key, n.value) && n.right.each(yield)
}

// with returns a copy of a node with other children.
func (n *node[V]) with(left, right *node[V]) *node[V] {
	c := *n
	c.left, c.right, c.size = left, right, 1+left.len()+right.len()
	return &c
}

func (n *node[V]) replace(key string, value V) *node[V] {
	switch {
	case key < n.key:
		return n.with(n.left.replace(key, value), n.right)
	case key > n.key:
		return n.with(n.left, n.right.replace(key, value))
	}
	c := *n
	c.value = value
	return &c
}

func (n *node[V]) insert(added *node[V]) *node[V] {
	switch {
	case n == nil || added.priority > n.priority:
		left, right := n.split(added.key)
		return added.with(left, right)
	case added.key < n.key:
		return n.with(n.left.insert(added), n.right)
	}
	return n.with(n.left, n.right.insert(added))
}

// split divides a tree at a key that it does not hold.
func (n *node[V]) split(key string) (below, above *node[V]) {
	if n == nil {
		return nil, nil
	}
	if n.key < key {
		below, above = n.right.split(key)
		return n.with(n.left, below), above
	}
	below, above = n.left.split(key)
	return below, n.with(above, n.right)
}

func (n *node[V]) remove(key string) *node[V] {
	switch {
	case key < n.key:
		return n.with(n.left.remove(key), n.right)
	case key > n.key:
		return n.with(n.left, n.right.remove(key))
	}
	return merge(n.left, n.right)
}

// merge joins two trees; all keys of the first are below those of the second.
func merge[V any](below, above *node[V]) *node[V] {
	switch {
	case below == nil:
		return above
	case above == nil:
		return below
	case below.priority > above.priority:
		return below.with(below.left, merge(below.right, above))
	}
	return above.with(merge(below, above.left), above.right)
}
