package main

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// confirmTimeout bounds how long a request waits until it is certain that this node
// still serves.
const confirmTimeout = 5 * time.Second

// confirmed returns a function that makes certain that no other node serves before a
// request is answered. A node that was paused does not know that it was replaced: the
// log refuses what it stores, and this refuses what it only answers. A confirmation
// is valid as long as no other node may suspect this one. It is asked of shard 0 only,
// because a serving node has fenced all shards.
func (n *node) confirmed(lost <-chan struct{}) func(context.Context) error {
	var mu sync.Mutex
	var last time.Time // when the last confirmation began
	fresh := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !last.IsZero() && time.Since(last) < n.cfg.Cluster.Suspect
	}
	one := make(chan struct{}, 1)
	return func(ctx context.Context) error {
		select {
		case <-lost:
			return n.notServing()
		default:
		}
		if fresh() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
		defer cancel()
		select {
		case one <- struct{}{}: // concurrent requests share the result
			defer func() { <-one }()
		case <-ctx.Done():
			return n.notServing()
		}
		if fresh() {
			return nil
		}
		began := time.Now()
		if err := n.engine.Confirm(ctx, 0); err != nil {
			return n.notServing()
		}
		mu.Lock()
		last = began
		mu.Unlock()
		return nil
	}
}

// notServing refuses a request at a node that is not certain that it serves.
func (n *node) notServing() error {
	err := fault.New(fault.Unavailable, "it is not certain that this node, %s, still serves: %s; try again", nodeName(n.cfg), n.serving())
	err.Reason, err.RetryAfter = fault.NotServing, time.Second
	if s := n.serving(); s.Node != "" {
		err.Details = map[string]string{fault.DetailNode: s.Node, fault.DetailAddress: s.Address}
	}
	return err
}
