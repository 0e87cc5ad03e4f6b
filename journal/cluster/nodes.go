package cluster

import (
	"slices"
	"strings"
	"time"
)

// Node is what a beat reports about a node.
type Node struct {
	Name    string
	Address string    // where other nodes reach it; "" if it sent none
	Version string    // of its program
	Leads   int       // how many shards
	Ready   bool      // its copies follow, and it may lead
	Since   time.Time // when it began to lead all shards
	Offsets []uint64  // of its copies
	Heard   time.Time // when its last beat arrived
}

func (h heard) node() Node {
	return Node{Name: h.Node, Address: h.Address, Version: h.Version, Leads: h.Leads, Ready: h.Ready, Since: h.Since, Offsets: h.Offsets, Heard: h.at}
}

// self returns the state of this node for its beats.
func (e *Engine) self() Node {
	leads, ready := e.leading()
	offsets := e.offsets()
	e.nodes.mu.Lock()
	defer e.nodes.mu.Unlock()
	return Node{
		Name: e.opts.Node, Address: e.opts.Address, Version: e.opts.Version, Leads: leads, Ready: ready && !e.nodes.barred,
		Since: e.nodes.since, Offsets: offsets, Heard: time.Now(),
	}
}

// Nodes returns the live nodes, this one first, the others by name.
func (e *Engine) Nodes() []Node {
	now := time.Now()
	all := []Node{e.self()}
	e.nodes.mu.Lock()
	defer e.nodes.mu.Unlock()
	for _, h := range e.nodes.heard {
		if now.Sub(h.at) <= e.opts.Suspect {
			all = append(all, h.node())
		}
	}
	slices.SortFunc(all[1:], func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// offsets returns the offsets of the copies.
func (e *Engine) offsets() []uint64 {
	all := make([]uint64, len(e.shards))
	for i, s := range e.shards {
		all[i] = s.store().Offset()
	}
	return all
}

// ShardStatus is the status of a shard as this node knows it.
type ShardStatus struct {
	Shard  int
	Leader string // "" if no leader is known
	Mine   bool
	Term   uint64    // sequence of the last fence
	Since  time.Time // when this node learned of it
	Seq    uint64    // of the last message of the log that was applied
	Offset uint64    // of the last batch
	Voids  uint64    // messages that no node wrote, since this node began
	Err    error     // why the log is not followed
}

// Status returns the status of each shard.
func (e *Engine) Status() []ShardStatus {
	all := make([]ShardStatus, len(e.shards))
	for i, s := range e.shards {
		s.mu.Lock()
		all[i] = ShardStatus{
			Shard: i, Leader: s.node, Mine: s.leads, Term: s.fence, Since: s.led, Seq: s.seen.Load(),
			Offset: s.store().Offset(), Voids: s.voids.Load(), Err: s.trouble,
		}
		s.mu.Unlock()
	}
	return all
}
