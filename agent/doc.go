// Package agent is the agent's side of a conversation: it receives envelopes,
// asks a model, runs its tools and posts one answer a round. It reaches its hub
// only through Link, which a remote client and a hub in the same process both
// satisfy, and it keeps nothing that it could not rebuild from the log.
//
// It never decides who may speak: adapters do, here as in the hub.
//
// Runnable examples: example_test.go, which docs/go.md and go doc show.
package agent
