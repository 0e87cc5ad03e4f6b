// Package gate carries the question whether this process may still answer,
// from the server to the owners of open connections. A cluster node that was
// paused and resumes still has clients, although another node serves now.
package gate

import "context"

// Gate returns an error when nothing may be answered. It is asked before each
// message is handled; nil: everything may.
type Gate func(ctx context.Context) error

type key struct{}

// With adds a gate to the context of requests, and of the start of dialects.
func With(ctx context.Context, g Gate) context.Context { return context.WithValue(ctx, key{}, g) }

// Of is the gate of a context, or nil.
func Of(ctx context.Context) Gate {
	g, _ := ctx.Value(key{}).(Gate)
	return g
}

// Ask asks the gate.
func (g Gate) Ask(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return g(ctx)
}
