package cluster

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/journal"
)

// Who leads is a matter of liveness only: whatever is decided here, fences keep
// the order. Every node says that it lives; when nobody leads, the first live
// node in one order of all fences every shard, the next a little later. A node
// that has some shards and cannot have all gives them up.

// beat is what a node says of itself.
type beat struct {
	Node  string `json:"node"`
	Run   string `json:"run,omitempty"` // of the process
	Leads int    `json:"leads"`         // shards
	Ready bool   `json:"ready"`         // its copies follow
	Bye   bool   `json:"bye,omitempty"`
}

const (
	maxBeat  = 4 << 10
	maxNodes = 256
	nextNode = 150 * time.Millisecond // each later node waits so much longer
)

type nodes struct {
	once sync.Once
	stop func()

	mu      sync.Mutex
	heard   map[string]heard // by node
	quiet   time.Time        // since when nobody leads
	seeking time.Time        // since when this node has some shards, and not all
}

type heard struct {
	beat
	at time.Time
}

func (n *nodes) begin(e *Engine) (err error) {
	n.heard = map[string]heard{}
	n.quiet = time.Now()
	n.stop, err = e.opts.Log.Beats(func(data []byte) { n.hear(e, data) })
	return err
}

func (n *nodes) end(e *Engine) {
	if n.stop != nil {
		n.say(e, beat{Bye: true})
		n.stop()
	}
}

func (n *nodes) say(e *Engine, b beat) {
	b.Node = e.opts.Node
	if data, err := json.Marshal(b); err == nil {
		_ = e.opts.Log.Beat(data) // another follows soon
	}
}

func (n *nodes) hear(e *Engine, data []byte) {
	var b beat
	if len(data) > maxBeat || json.Unmarshal(data, &b) != nil || b.Node == "" || b.Node == e.opts.Node {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if b.Bye {
		delete(n.heard, b.Node)
		return
	}
	if _, known := n.heard[b.Node]; known || len(n.heard) < maxNodes {
		n.heard[b.Node] = heard{b, time.Now()}
	}
}

// run beats, and takes the lead when it is this node's turn.
func (n *nodes) run(ctx context.Context, e *Engine) {
	ticker := time.NewTicker(e.opts.Beat)
	defer ticker.Stop()
	for {
		leads, ready := e.leading()
		n.say(e, beat{Leads: leads, Ready: ready})
		if !e.opts.Manual {
			n.decide(ctx, e, leads, ready)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// leading counts the shards that this node leads, and tells whether it follows
// all.
func (e *Engine) leading() (leads int, ready bool) {
	ready = true
	for _, s := range e.shards {
		if mine, _, _ := s.leader(); mine {
			leads++
		}
		ready = ready && s.troubled() == nil
	}
	return leads, ready
}

func (n *nodes) decide(ctx context.Context, e *Engine, leads int, ready bool) {
	now := time.Now()
	others, place := n.others(e, now)
	switch {
	case leads == len(e.shards):
		n.settled(now)
	case others == 0 && ready && now.Sub(n.quietSince()) >= e.opts.Suspect+time.Duration(place)*nextNode:
		bounded, cancel := context.WithTimeout(ctx, 2*e.opts.Suspect)
		defer cancel()
		if err := e.Acquire(bounded); err != nil && ctx.Err() == nil {
			e.opts.Logger.Warn("this node could not take the lead", "error", err)
		}
	case others > 0 && leads > 0 && n.seekingFor(now) > 2*e.opts.Suspect+time.Duration(place)*nextNode:
		e.Release(ctx)
		n.settled(now)
	case others > 0:
		n.mu.Lock()
		n.quiet = now
		n.mu.Unlock()
	}
}

func (n *nodes) settled(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.quiet, n.seeking = now, time.Time{}
}

func (n *nodes) quietSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.quiet
}

// seekingFor is for how long this node has had some shards beside another.
func (n *nodes) seekingFor(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seeking.IsZero() {
		n.seeking = now
	}
	return now.Sub(n.seeking)
}

// others counts the shards that live others lead, and tells this node's place in
// the order of those that could lead.
func (n *nodes) others(e *Engine, now time.Time) (leads, place int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := []string{e.opts.Node}
	for name, h := range n.heard {
		if now.Sub(h.at) > e.opts.Suspect {
			delete(n.heard, name)
			continue
		}
		leads += h.Leads
		if h.Ready {
			live = append(live, name)
		}
	}
	slices.SortFunc(live, func(a, b string) int { return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a, b)) })
	return leads, slices.Index(live, e.opts.Node)
}

func weight(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node))
	return h.Sum64()
}

// Acquire makes this node lead every shard, whoever leads them now. It tries
// until ctx ends, and then keeps what it has.
func (e *Engine) Acquire(ctx context.Context) error {
	errs := make([]error, len(e.shards))
	var all sync.WaitGroup
	for i, s := range e.shards {
		all.Go(func() {
			for {
				err := s.take(ctx)
				if err == nil {
					errs[i] = nil
					return
				}
				if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrFailed) {
					errs[i] = errors.Join(err, errs[i])
					return
				}
				errs[i] = err
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Release gives every shard up. What is ordered and not durable is aborted.
func (e *Engine) Release(ctx context.Context) {
	for _, s := range e.shards {
		_ = s.copy.Exclusively(ctx, func() error { s.resign(""); return nil })
	}
}
