package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Leader returns the live node that leads most shards; ok is false if none leads.
func (e *Engine) Leader() (n Node, ok bool) {
	for _, other := range e.Nodes() {
		if other.Leads > n.Leads {
			n = other
		}
	}
	return n, n.Leads > 0
}

// Following returns why a copy does not follow its log, or nil if all do.
func (e *Engine) Following() error {
	for _, s := range e.shards {
		if err := cmp.Or(s.troubled(), s.quiet()); err != nil {
			return err
		}
	}
	return nil
}

// Led waits until this node leads every shard. It returns a channel that is closed
// when the node loses the lead of a shard, even if it soon leads that shard again.
func (e *Engine) Led(ctx context.Context) (lost <-chan struct{}, err error) {
	for {
		changes, waiting := make([]<-chan struct{}, len(e.shards)), (<-chan struct{})(nil)
		for i, s := range e.shards {
			mine, _, changed := s.leader()
			if changes[i] = changed; !mine {
				waiting = changed
			}
		}
		if waiting == nil {
			return e.firstOf(changes), nil
		}
		select {
		case <-waiting:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-e.closed:
			return nil, fmt.Errorf("node %s was closed before it led every shard", e.opts.Node)
		}
	}
}

// firstOf returns a channel that is closed when one of many channels is closed, or
// when the engine closes.
func (e *Engine) firstOf(changes []<-chan struct{}) <-chan struct{} {
	first := make(chan struct{})
	var once sync.Once
	for _, changed := range changes {
		e.running.Go(func() {
			select {
			case <-changed:
			case <-first:
			case <-e.closed:
			}
			once.Do(func() { close(first) })
		})
	}
	return first
}

// Hold(ctx, true) gives up the shards that this node leads and keeps it from taking
// the lead until Hold(ctx, false). The node still follows.
func (e *Engine) Hold(ctx context.Context, held bool) {
	e.nodes.mu.Lock()
	e.nodes.barred = held
	e.nodes.quiet = time.Now()
	e.nodes.mu.Unlock()
	if held {
		e.Release(ctx)
	}
}

// HandOver tells a node to take the lead of every shard at once. The caller must have
// called Hold.
func (e *Engine) HandOver(to string) { e.nodes.say(e, beat{Next: to}) }

// Asked returns a channel with the names of nodes that AskMove requests as leader.
func (e *Engine) Asked() <-chan string { return e.nodes.asked }

// Twin returns an error if another process uses the name of this node.
func (e *Engine) Twin() error {
	e.nodes.mu.Lock()
	defer e.nodes.mu.Unlock()
	if time.Since(e.nodes.twin.at) > e.opts.Suspect {
		return nil
	}
	return fmt.Errorf("another process is named %q too; give each node a name of its own (cluster.node)", e.opts.Node)
}

func newRun() string { return rand.Text()[:8] }

// AskMove requests that a node takes the lead.
func AskMove(log port.Log, to string) error {
	data, err := json.Marshal(beat{Move: to})
	if err != nil {
		return err
	}
	return log.Beat(data)
}

// Survey receives beats for the given time, without being a node itself, and returns
// the live nodes in the order of their names.
func Survey(ctx context.Context, log port.Log, listen time.Duration) ([]Node, error) {
	ctx, cancel := context.WithTimeout(ctx, listen)
	defer cancel()
	var mu sync.Mutex
	found := map[string]Node{}
	stop, err := log.Beats(func(data []byte) {
		b, ok := decodeBeat(data)
		mu.Lock()
		defer mu.Unlock()
		if _, known := found[b.Node]; ok && b.Node != "" && (known || len(found) < maxNodes) {
			found[b.Node] = heard{b, time.Now()}.node()
		}
	})
	if err != nil {
		return nil, err
	}
	<-ctx.Done()
	stop()
	mu.Lock()
	defer mu.Unlock()
	names := slices.Sorted(maps.Keys(found))
	all := make([]Node, len(names))
	for i, name := range names {
		all[i] = found[name]
	}
	return all, nil
}
