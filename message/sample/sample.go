// Package sample holds realistic messages of agents, for benchmarks and tests.
// It has no rules of its own.
package sample

import (
	"bytes"
	_ "embed"
	"slices"
)

//go:embed typical.json
var typical []byte

//go:embed conversation.jsonl
var conversation []byte

// Typical returns a tool result with some text, a nested payload and metadata,
// as a plain row in JSON: what normalizing is measured with.
func Typical() []byte { return slices.Clone(typical) }

// Conversation returns a short conversation, one message a line, in every shape
// that hosts hand over.
func Conversation() []byte { return slices.Clone(conversation) }

// Lines writes the conversation over and over, whole lines only, until size
// bytes are reached.
func Lines(size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		b.Write(conversation)
	}
	return b.Bytes()
}
