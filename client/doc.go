// Package client connects Go programs to a remote hub over AG2's protocol. A
// Client is one connection that reconnects by itself; an Identity on it sends,
// receives and asks, and is what an agent runs on. Deliveries that were not
// acknowledged come again, and what is sent again is not doubled.
//
// It never decides who may speak, and it stores nothing.
//
// Runnable examples: example_test.go, which docs/go.md and go doc show.
package client
