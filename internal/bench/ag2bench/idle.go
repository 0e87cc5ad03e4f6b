package ag2bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
)

// crowd are connections that are idle once an identity is bound to each.
type crowd struct {
	peers []*peer
	group sync.WaitGroup
}

// helpers is how many connections are made at once.
const helpers = 32

// parallel runs something for each of n, some at a time.
func parallel(n int, do func(helper, i int) error) error {
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	for helper := range min(helpers, n) {
		group.Go(func() {
			for i := helper; i < n; i += helpers {
				if err := do(helper, i); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = errors.Join(failed, err)
					return
				}
			}
		})
	}
	group.Wait()
	return failed
}

// enrol registers identities that have no connection.
func enrol(ctx context.Context, url string, n int) ([]string, error) {
	names := make([]string, n)
	guides := make([]*peer, min(helpers, n))
	for i := range guides {
		var err error
		if guides[i], err = dial(ctx, url, busyBuffer); err != nil {
			closeAll(guides[:i])
			return nil, err
		}
	}
	defer closeAll(guides)
	return names, parallel(n, func(helper, i int) error {
		names[i] = named("idle", i)
		_, err := guides[helper].register(names[i])
		return err
	})
}

// gather connects for each name and says hello, and sends nothing after that.
func gather(ctx context.Context, url string, names []string) (*crowd, error) {
	c := &crowd{peers: make([]*peer, len(names))}
	err := parallel(len(names), func(_, i int) error {
		p, err := dial(ctx, url, idleBuffer)
		if err != nil {
			return err
		}
		c.peers[i] = p
		return p.greet(names[i])
	})
	if err != nil {
		for _, p := range c.peers {
			if p != nil {
				p.close()
			}
		}
		return nil, err
	}
	for _, p := range c.peers {
		// Pings are answered, as every client does; otherwise the hub would close the
		// connection.
		c.group.Go(func() { _, _ = p.next() })
	}
	return c, nil
}

// greet binds an identity that exists.
func (p *peer) greet(name string) error {
	hello := wire.AppendHello(nil, &wire.Hello{Name: name, Scheme: identity.SchemeNone, Claim: []byte("{}")})
	if _, err := p.conn.Write(message(hello)); err != nil {
		return err
	}
	payload, err := p.next()
	if err != nil {
		return err
	}
	frame, err := wire.Decode(bytes.Clone(payload))
	if err != nil {
		return err
	}
	if _, ok := frame.(*wire.Welcome); !ok {
		return fmt.Errorf("hello was answered with %s", payload)
	}
	return nil
}

func (c *crowd) close() {
	closeAll(c.peers)
	c.group.Wait()
}

// weight counts what idle connections add to a hub's heap and stacks. This hub
// collects its garbage eagerly, so that its heap is close to its live data.
func (r *run) weight() (figures []bench.Figure, err error) {
	cmd := r.Hub(r.ctx, filepath.Join(r.Dir, "weight"))
	cmd.Env = append(cmd.Environ(), "GOGC=5")
	hub, err := bench.StartProcess(cmd)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	names, err := enrol(r.ctx, hub.Socket(), r.Idle)
	if err != nil {
		return nil, err
	}
	before, err := footprint(r.ctx, hub)
	if err != nil {
		return nil, err
	}
	c, err := gather(r.ctx, hub.Socket(), names)
	if err != nil {
		return nil, err
	}
	defer c.close()
	after, err := footprint(r.ctx, hub)
	if err != nil {
		return nil, err
	}
	each := (after - before) / float64(r.Idle)
	return []bench.Figure{bench.Counted("heap and stacks of an idle connection", each, "B", new(8.0*1024))}, nil
}

// looks is how often a footprint is taken. The smallest counts, because the
// rest is garbage.
const looks = 10

// footprint returns a hub's heap and stacks.
func footprint(ctx context.Context, p *bench.Process) (least float64, err error) {
	const heap, stacks = "go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes"
	for i := range looks {
		m, err := p.Metrics(ctx, heap, stacks)
		if err != nil {
			return 0, err
		}
		if total := m[heap] + m[stacks]; i == 0 || total < least {
			least = total
		}
	}
	return least, nil
}

// crowd compares a hub that has many idle connections with one that has none.
func (r *run) crowd() (figures []bench.Figure, err error) {
	hub, err := bench.StartProcess(r.Hub(r.ctx, filepath.Join(r.Dir, "crowd")))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	names, err := enrol(r.ctx, hub.Socket(), r.Idle)
	if err != nil {
		return nil, err
	}
	c, err := gather(r.ctx, hub.Socket(), names)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return r.versus(fmt.Sprintf("with %d idle", r.Idle), hub.Socket(), r.hub.Socket(), limits{latency: new(1 / 0.8), rate: new(0.8)}, true)
}
