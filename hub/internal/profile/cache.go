package profile

import (
	"container/list"
	"sync"
)

// Cache holds the most recently used details, bounded in bytes.
type Cache struct {
	Bytes int

	mu    sync.Mutex
	bytes int
	byID  map[string]*list.Element
	order list.List // of *cachedDetails; the last used first
}

type cachedDetails struct {
	id    string
	of    *Full
	bytes int
}

// Get returns the details of an identity as of a record, or nil if they are not
// cached.
func (c *Cache) Get(id string, seq uint64) *Full {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byID[id]
	if at == nil {
		return nil
	}
	cached := at.Value.(*cachedDetails) //nolint:forcetypeassert // it holds nothing else
	if cached.of.Seq != seq {
		return nil
	}
	c.order.MoveToFront(at)
	return cached.of
}

// Put caches details, unless newer ones are cached or these would take most of the
// space.
func (c *Cache) Put(id string, d *Full) {
	size := d.footprint()
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byID[id]; at != nil {
		if at.Value.(*cachedDetails).of.Seq > d.Seq { //nolint:forcetypeassert // it holds nothing else
			return
		}
		c.evict(at)
	}
	if size > c.Bytes/2 {
		return
	}
	if c.byID == nil {
		c.byID = map[string]*list.Element{}
	}
	c.byID[id] = c.order.PushFront(&cachedDetails{id, d, size})
	c.bytes += size
	for c.bytes > c.Bytes {
		c.evict(c.order.Back())
	}
}

// Remove forgets the details of an identity.
func (c *Cache) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byID[id]; at != nil {
		c.evict(at)
	}
}

func (c *Cache) evict(at *list.Element) {
	cached := c.order.Remove(at).(*cachedDetails) //nolint:forcetypeassert // it holds nothing else
	delete(c.byID, cached.id)
	c.bytes -= cached.bytes
}

// footprint returns the approximate size of details in memory.
func (d *Full) footprint() int {
	const each = 64 // a string, its bytes' allocation, a place in a map or list
	n := 1024 + len(d.Resume.Summary) + d.sampleBytes() + each*len(d.samples)
	if d.Skill != nil {
		n += len(*d.Skill)
	}
	for _, texts := range [][]string{d.Resume.ClaimedCapabilities, d.Resume.Domains} {
		for _, text := range texts {
			n += each + len(text)
		}
	}
	for _, e := range d.Resume.Examples {
		n += 4*each + len(e.Title) + len(e.Outcome) + len(e.Note)
		for _, text := range []*string{e.Task, e.Channel, e.When} {
			if text != nil {
				n += len(*text)
			}
		}
	}
	for capability := range d.Resume.Observed {
		n += 2*each + len(capability)
	}
	return n
}
