// Package result is what comes back from running an agent: conversation
// results, how a run came out, and the envelope that run results are stored
// in.
//
// It checks and normalizes; it runs nothing, and reads neither arguments nor
// contents of tool calls into what it derives.
package result
