// Package graph decides who speaks next in a workflow: transition graphs made
// of conditions and targets, their registry, their JSON, and the one routing
// step that a workflow channel and a simulation share. It also checks graphs
// before a channel opens, draws them and plays scripts through them.
//
// A graph is immutable once made, so that channels share it freely. Nothing
// here reads a clock, a log or a directory, and nothing is ever resolved by
// name while a channel runs: graphs route by agent id.
//
// Runnable examples: example_test.go. The file format: docs/graphs.md.
package graph
