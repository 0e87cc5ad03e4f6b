package disk

// cache keeps recently used entries in two generations. It discards the older one
// when the younger is full, so it holds at most twice its size.
type cache[K comparable, V any] struct {
	size       int
	young, old map[K]V
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, young: map[K]V{}}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	if v, ok := c.young[key]; ok {
		return v, true
	}
	v, ok := c.old[key]
	if ok {
		c.put(key, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	if len(c.young) >= c.size {
		if _, replaces := c.young[key]; !replaces {
			c.old, c.young = c.young, emptied(c.old, c.size)
		}
	}
	c.young[key] = v
}

func (c *cache[K, V]) remove(key K) {
	delete(c.young, key)
	delete(c.old, key)
}

// emptied returns an empty map for the next generation. It reuses the discarded map,
// because a new map is copied several times while it grows.
func emptied[K comparable, V any](old map[K]V, size int) map[K]V {
	if old == nil {
		return make(map[K]V, size/4)
	}
	clear(old)
	return old
}
