package cluster_test

import (
	"context"
	"errors"
	"sync"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// gate wraps a port and holds, loses or spoils published messages.
type gate struct {
	port.Log

	mu      sync.Mutex
	reached chan struct{} // closed when a message is held; nil: hold nothing
	release chan struct{}
	dead    chan struct{}
	spoil   bool // the next slot is taken by a foreign message
	lose    bool // the next answer is lost
}

func newGate(log port.Log) *gate { return &gate{Log: log, dead: make(chan struct{})} }

var errGate = errors.New("the gate is closed")

func (g *gate) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	g.mu.Lock()
	reached, release := g.reached, g.release
	spoil := g.spoil
	g.spoil = false
	g.mu.Unlock()
	if reached != nil {
		select {
		case <-reached:
		default:
			close(reached)
		}
		select {
		case <-release:
		case <-g.dead:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-g.dead:
		return errGate
	default:
	}
	g.mu.Lock()
	lose := g.lose
	g.lose = false
	g.mu.Unlock()
	if spoil {
		if err := g.Log.Append(ctx, shard, after, []byte("foreign")); err != nil {
			return err
		}
	}
	if err := g.Log.Append(ctx, shard, after, data); err != nil || !lose {
		return err
	}
	return errGate
}

func (g *gate) HoldSync() (<-chan struct{}, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	reached, release := make(chan struct{}), make(chan struct{})
	g.reached, g.release = reached, release
	return reached, sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.release == release {
			g.reached, g.release = nil, nil
		}
		close(release)
	})
}

func (g *gate) FailWrite() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spoil = true
}

func (g *gate) FailSync() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = true
	return false
}

func (g *gate) die() { close(g.dead) }
