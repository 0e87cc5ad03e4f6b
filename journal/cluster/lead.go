package cluster

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/journal"
)

// The choice of a leader affects only liveness: whatever is decided here, fences
// keep the order. Every node sends beats. If no node leads, the first live node in
// a fixed order of all nodes fences every shard, the next node a little later. A node
// that leads some shards and cannot lead all gives them up.
//
// A leader has one guarantee: no node suspects it within Suspect of a message of its
// own in the log, unless the leader said that it is done. A message is a sign of life
// when it is applied, and a fence is published only after all that was applied. So
// a leader that was confirmed leads until Suspect after it asked for confirmation.

// beat is a message of a node about itself, or a request of AskMove to all nodes.
type beat struct {
	Node    string    `json:"node,omitempty"`
	Run     string    `json:"run,omitempty"` // of the process
	Address string    `json:"address,omitempty"`
	Version string    `json:"version,omitempty"`
	Leads   int       `json:"leads,omitempty"`   // shards
	Ready   bool      `json:"ready,omitempty"`   // its copies follow, and it may lead
	Since   time.Time `json:"since,omitzero"`    // when it began to lead all
	Offsets []uint64  `json:"offsets,omitempty"` // of its copies
	Bye     bool      `json:"bye,omitempty"`     // the node is closing
	Next    string    `json:"next,omitempty"`    // the node that should lead: the sender has given up
	Move    string    `json:"move,omitempty"`    // without Node: the node that should lead
}

func decodeBeat(data []byte) (b beat, ok bool) {
	return b, len(data) <= maxBeat && json.Unmarshal(data, &b) == nil
}

const (
	maxBeat  = 16 << 10
	maxNodes = 256
	nextNode = 150 * time.Millisecond // each later node in the order waits this much longer
)

type nodes struct {
	stop func()

	mu      sync.Mutex
	heard   map[string]heard // by node
	quiet   time.Time        // when a leader was last heard
	seeking time.Time        // since when this node leads some shards, and not all
	since   time.Time        // since when this node leads all shards
	barred  bool             // this node must not lead
	twin    heard            // the last beat of another process with this name
	id      string           // of this process
	asked   chan string
	fencing atomic.Bool

	begun time.Time
	sign  atomic.Int64 // the leader's last sign of life: when a message was applied, since begun; 0: none
	done  atomic.Bool  // the leader has said that it is done
}

type heard struct {
	beat
	at time.Time
}

func (n *nodes) begin(e *Engine) (err error) {
	n.heard = map[string]heard{}
	n.id, n.asked = newRun(), make(chan string, 1)
	n.quiet = time.Now()
	n.begun = n.quiet
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
	self := e.self()
	b.Node, b.Run, b.Address, b.Version = self.Name, n.id, self.Address, self.Version
	b.Leads, b.Ready, b.Since, b.Offsets = self.Leads, self.Ready, self.Since, self.Offsets
	if data, err := json.Marshal(b); err == nil {
		_ = e.opts.Log.Beat(data) // the next beat follows soon
	}
}

func (n *nodes) hear(e *Engine, data []byte) {
	b, ok := decodeBeat(data)
	if ok && b.Node == "" && b.Move != "" {
		select {
		case n.asked <- b.Move:
		default: // a request is pending already
		}
	}
	if !ok || b.Node == "" {
		return
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if b.Node == e.opts.Node && b.Run == n.id {
		return
	}
	if b.Leads > 0 {
		e.doubt()
	}
	if b.Node == e.opts.Node {
		n.heardTwin(e, heard{b, now})
		return
	}
	before, known := n.heard[b.Node]
	if known && before.Run != b.Run && before.Leads > b.Leads && now.Sub(before.at) <= e.opts.Suspect {
		return // two processes have this name, and the other one leads
	}
	if b.Bye && before.Leads > 0 || b.Next == e.opts.Node {
		n.quiet = now.Add(-e.opts.Suspect) // it handed over: do not wait
		if _, leader, _ := e.shards[0].leader(); leader == b.Node {
			n.done.Store(true)
		}
	}
	if b.Bye {
		delete(n.heard, b.Node)
		return
	}
	if known || len(n.heard) < maxNodes {
		n.heard[b.Node] = heard{b, now}
	}
}

// heardTwin records a beat of another process with the name of this node. If that
// process leads, this one must not take the lead from it. The lock is held.
func (n *nodes) heardTwin(e *Engine, h heard) {
	if n.twin.Run != h.Run {
		e.opts.Logger.Error("another process has the name of this node; give each node a name of its own (cluster.node)", "node", h.Node, "address", h.Address)
	}
	if h.Bye {
		h.at = time.Time{}
	}
	n.twin = h
}

// doubt requests a read of the end of the logs that this node leads. It is called when
// another node claims to lead.
func (e *Engine) doubt() {
	for _, s := range e.shards {
		if mine, _, _ := s.leader(); mine {
			s.nudge()
		}
	}
}

// live records a sign of life of the leader; a fence is a sign of a new leader.
func (n *nodes) live(fence bool) {
	n.sign.Store(int64(time.Since(n.begun)))
	if fence {
		n.done.Store(false)
	}
}

// silent reports whether the leader gave no sign of life for d, or is done.
func (n *nodes) silent(d time.Duration) bool {
	at := time.Duration(n.sign.Load())
	return at == 0 || n.done.Load() || time.Since(n.begun)-at >= d
}

// run sends beats, and takes the lead when it is this node's turn.
func (n *nodes) run(ctx context.Context, e *Engine) {
	ticker := time.NewTicker(e.opts.Beat)
	defer ticker.Stop()
	for {
		leads, ready := e.leading()
		n.say(e, beat{})
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

// leading counts the shards that this node leads, and reports whether it follows all
// logs.
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
	others, heard, place := n.others(e, now)
	switch {
	case leads == len(e.shards):
		n.settled(now, true)
	case n.isBarred():
	case others == 0 && ready && n.silent(e.opts.Suspect) && now.Sub(n.quietSince()) >= e.opts.Suspect+time.Duration(place)*nextNode:
		n.fence(ctx, e)
	case others > 0 && leads > 0 && n.seekingFor(now) > 2*e.opts.Suspect+time.Duration(place)*nextNode:
		e.Release(ctx)
		n.settled(now, false)
	case others > 0:
		n.mu.Lock()
		n.quiet, n.since = heard, time.Time{}
		n.mu.Unlock()
	}
}

// fence takes the lead of every shard in the background, so that beats continue.
func (n *nodes) fence(ctx context.Context, e *Engine) {
	if !n.fencing.CompareAndSwap(false, true) {
		return
	}
	e.running.Go(func() {
		defer n.fencing.Store(false)
		bounded, cancel := context.WithTimeout(ctx, 2*e.opts.Suspect)
		defer cancel()
		if err := e.acquire(bounded, func() bool { return n.silent(e.opts.Suspect) }); err != nil && ctx.Err() == nil {
			e.opts.Logger.Warn("this node could not take the lead", "error", err)
		}
		if n.isBarred() {
			e.Release(ctx)
		}
	})
}

func (n *nodes) isBarred() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.barred
}

func (n *nodes) settled(now time.Time, leads bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.quiet, n.seeking = now, time.Time{}
	switch {
	case !leads:
		n.since = time.Time{}
	case n.since.IsZero():
		n.since = now
	}
}

func (n *nodes) quietSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.quiet
}

// seekingFor returns how long this node has led some shards while another node leads
// the rest.
func (n *nodes) seekingFor(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seeking.IsZero() {
		n.seeking = now
	}
	return now.Sub(n.seeking)
}

// others counts the shards that other live nodes lead. It also returns when one of
// these nodes was last heard, and this node's place in the order of possible leaders.
func (n *nodes) others(e *Engine, now time.Time) (leads int, last time.Time, place int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := []string{e.opts.Node}
	for name, h := range n.heard {
		if now.Sub(h.at) > e.opts.Suspect {
			delete(n.heard, name)
			continue
		}
		if leads += h.Leads; h.Leads > 0 && h.at.After(last) {
			last = h.at
		}
		if h.Ready {
			live = append(live, name)
		}
	}
	if now.Sub(n.twin.at) <= e.opts.Suspect && n.twin.Leads > 0 {
		leads += n.twin.Leads
		if n.twin.at.After(last) {
			last = n.twin.at
		}
	}
	slices.SortFunc(live, func(a, b string) int { return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a, b)) })
	return leads, last, slices.Index(live, e.opts.Node)
}

func weight(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node))
	return h.Sum64()
}

// Acquire makes this node lead every shard, even if another node leads it. It retries
// until ctx ends, and then keeps the shards that it leads.
func (e *Engine) Acquire(ctx context.Context) error {
	return e.acquire(ctx, func() bool { return true })
}

// acquire is Acquire, but only while may returns true.
func (e *Engine) acquire(ctx context.Context, may func() bool) error {
	errs := make([]error, len(e.shards))
	var all sync.WaitGroup
	for i, s := range e.shards {
		all.Go(func() {
			for {
				err := s.take(ctx, may)
				if err == nil {
					errs[i] = nil
					return
				}
				if ctx.Err() != nil || errors.Is(err, errLives) || errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrFailed) {
					errs[i] = errors.Join(err, errs[i])
					return
				}
				errs[i] = err
				select {
				case <-time.After(10 * time.Millisecond):
				case <-s.ending:
					errs[i] = journal.ErrClosed
					return
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
	known := map[string]bool{} // most shards fail for the same reason
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || known[err.Error()] {
			return true
		}
		known[err.Error()] = true
		return false
	})...)
}

// Release gives up the lead of every shard. What is ordered and not durable is aborted.
func (e *Engine) Release(ctx context.Context) {
	for _, s := range e.shards {
		_ = s.store().Exclusively(ctx, func() error { s.resign(""); return nil })
	}
}
