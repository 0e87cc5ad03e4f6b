// Package result is the outcome of running an agent: conversation results, the
// status of a run, and the envelope in which run results are stored.
//
// It checks and normalizes; it runs nothing, and what it derives never
// contains arguments or contents of tool calls.
package result
