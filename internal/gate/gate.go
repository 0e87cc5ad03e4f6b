// Package gate lets the owners of open connections ask the server whether this
// process may still answer. A cluster node that was paused and resumes still
// has clients, although another node serves now.
package gate

import "context"

// Gate returns an error when nothing may be answered. It is called before each
// message is handled; nil: everything may.
type Gate func(ctx context.Context) error

type key struct{}

// With adds a gate to the context of requests, and of the start of dialects.
func With(ctx context.Context, g Gate) context.Context { return context.WithValue(ctx, key{}, g) }

// Of returns the gate of a context, or nil.
func Of(ctx context.Context) Gate {
	g, _ := ctx.Value(key{}).(Gate)
	return g
}

// Ask calls the gate.
func (g Gate) Ask(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return g(ctx)
}
