package value

import (
	"iter"
	"slices"
	"strconv"
)

// indexFrom is the size from which a map keeps an index of its keys; below it
// a scan is faster than hashing.
const indexFrom = 12

// Member is one key of a [Map] with its value.
type Member struct {
	Key   string
	Value any
}

// Map is a JSON object that keeps its members in order. A nil Map reads as an
// empty one.
type Map struct {
	members []Member
	index   map[string]int
}

// New returns an empty map.
func New() *Map { return &Map{} }

// Len returns the number of members.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.members)
}

// Get returns the value under key and whether the key is present, which it
// also is when its value is null.
func (m *Map) Get(key string) (any, bool) {
	at := m.find(key)
	if at < 0 {
		return nil, false
	}
	return m.members[at].Value, true
}

// At returns the value under key, or nil: a key is set if this is not nil.
func (m *Map) At(key string) any {
	v, _ := m.Get(key)
	return v
}

// Has reports whether the key is present.
func (m *Map) Has(key string) bool { return m.find(key) >= 0 }

// Set puts a value under key and returns m. A key that is present keeps its
// position.
func (m *Map) Set(key string, v any) *Map {
	if at := m.find(key); at >= 0 {
		m.members[at].Value = v
		return m
	}
	m.members = append(m.members, Member{Key: key, Value: v})
	if m.index != nil {
		m.index[key] = len(m.members) - 1
	}
	return m
}

// SetText is like Set, except that an empty text is left out.
func (m *Map) SetText(key, text string) *Map {
	if text == "" {
		return m
	}
	return m.Set(key, text)
}

// Delete removes a key; the others keep their order.
func (m *Map) Delete(key string) {
	at := m.find(key)
	if at < 0 {
		return
	}
	m.members = slices.Delete(m.members, at, at+1)
	m.index = nil
}

// All yields the members in order.
func (m *Map) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if m == nil {
			return
		}
		for _, member := range m.members {
			if !yield(member.Key, member.Value) {
				return
			}
		}
	}
}

// Keys lists the keys in order.
func (m *Map) Keys() []string {
	keys := make([]string, 0, m.Len())
	for key := range m.All() {
		keys = append(keys, key)
	}
	return keys
}

// Clone copies the map; the values are shared.
func (m *Map) Clone() *Map {
	if m == nil {
		return New()
	}
	return &Map{members: slices.Clone(m.members)}
}

// find returns the position of key, or -1. The index is made on the first
// look-up in a large map, not while it is filled.
func (m *Map) find(key string) int {
	if m == nil {
		return -1
	}
	if len(m.members) < indexFrom {
		for i := range m.members {
			if m.members[i].Key == key {
				return i
			}
		}
		return -1
	}
	if m.index == nil {
		m.index = make(map[string]int, len(m.members))
		for i := range m.members {
			m.index[m.members[i].Key] = i
		}
	}
	if at, ok := m.index[key]; ok {
		return at
	}
	return -1
}

// fromList returns an array as a map: its elements are under "0", "1", ….
func fromList(list []any) *Map {
	m := &Map{members: make([]Member, len(list))}
	for i, v := range list {
		m.members[i] = Member{Key: strconv.Itoa(i), Value: v}
	}
	return m
}
