package graph

import "sync"

// Cache loads graphs and lets channels with equal graphs share one. It holds at most
// twice its limit; graphs that were not used lately are dropped first. It is safe for
// concurrent use.
type Cache struct {
	registry *Registry
	limit    int

	mu         sync.Mutex
	young, old map[string]*Graph // by source
	version    int
}

// DefaultCacheLimit is the number of graphs that a cache keeps in use.
const DefaultCacheLimit = 1024

// NewCache returns a cache over a registry; nil is the default one, and a
// limit below 1 is DefaultCacheLimit.
func NewCache(r *Registry, limit int) *Cache {
	if r == nil {
		r = Default()
	}
	if limit < 1 {
		limit = DefaultCacheLimit
	}
	return &Cache{registry: r, limit: limit, young: map[string]*Graph{}}
}

// Load is like Registry.Load, but equal texts give the same graph while the
// cache holds it. A new registration empties the cache.
func (c *Cache) Load(raw []byte) (*Graph, error) {
	version := c.registry.currentVersion()
	if g := c.find(raw, version); g != nil {
		return g, nil
	}
	g, err := c.registry.Load(raw)
	if err != nil {
		return nil, err
	}
	// Texts that differ only in whitespace share a source, and so a graph.
	if known := c.find([]byte(g.source), version); known != nil {
		return known, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(g)
	return g, nil
}

func (c *Cache) find(raw []byte, version int) *Graph {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != c.version {
		c.version, c.young, c.old = version, map[string]*Graph{}, nil
	}
	if g, ok := c.young[string(raw)]; ok {
		return g
	}
	g, ok := c.old[string(raw)]
	if ok {
		c.add(g)
	}
	return g
}

// add starts a new generation when the young one is full; the caller holds
// the lock.
func (c *Cache) add(g *Graph) {
	if len(c.young) >= c.limit {
		c.young, c.old = make(map[string]*Graph, c.limit), c.young
	}
	c.young[g.source] = g
}
