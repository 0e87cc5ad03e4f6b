// Package branch knows the events of an HPD branch: their names, the one table
// that says how each type is stored and shown, the form in which the log
// stores them, and the projections that turn them into messages, tool calls,
// prompts, workflows and trees. It reads payloads, never a wire: package wire
// of the dialect has the typed events. It never reads a log itself.
package branch
