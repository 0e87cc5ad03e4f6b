// Package v1 is the Go client of a hub's HTTP interface, /v1: channels, their
// events as pages and as streams, agents, tasks, audit, keys and backups. The
// commands of parley use it. It serves operators, readers and agents that
// look after a hub; an agent that takes part in conversations uses package
// client.
//
// A refusal is a *fault.Error with the hub's code. The package stores nothing
// and decides nothing.
package v1
