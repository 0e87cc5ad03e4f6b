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

// confirmed makes certain that no other node serves, before something is answered.
// A node that was paused wakes without knowing that it was replaced; what it stores
// is refused by the log, and what it only answers is refused here. One confirmation
// is good for as long as no other node may suspect this one. It asks of shard 0
// only: whoever serves has fenced all of them.
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
		case one <- struct{}{}: // the others share what this one finds
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

// notServing refuses a request at a node that cannot be certain that it serves.
func (n *node) notServing() error {
	err := fault.New(fault.Unavailable, "it is not certain that this node, %s, still serves: %s; try again", nodeName(n.cfg), n.serving())
	err.Reason, err.RetryAfter = fault.NotServing, time.Second
	if s := n.serving(); s.Node != "" {
		err.Details = map[string]string{fault.DetailNode: s.Node, fault.DetailAddress: s.Address}
	}
	return err
}
