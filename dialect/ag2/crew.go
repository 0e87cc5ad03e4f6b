package ag2

import "sync"

// crew is the goroutines that work for a connection. Its owner waits for them
// all, and afterwards none can be started.
type crew struct {
	mu    sync.Mutex
	size  int
	over  bool
	empty *sync.Cond
}

// start runs fn on a goroutine of its own, unless the crew was dismissed.
func (c *crew) start(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.size++
	go func() {
		defer c.leave()
		fn()
	}()
	return true
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size--
	if c.size == 0 && c.empty != nil {
		c.empty.Broadcast()
	}
}

// dismiss waits until everyone is done; whom they start meanwhile counts too.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.size > 0 {
		if c.empty == nil {
			c.empty = sync.NewCond(&c.mu)
		}
		c.empty.Wait()
	}
	c.over = true
}
