// Package provider is what the mappings to model providers share: the options
// of a request, the content of a reply, and the notes on what a provider's
// form cannot express. The mappings themselves are openai, anthropic and
// gemini, each from canonical messages to the provider's JSON and back.
//
// Nothing here talks to a provider, reads a file unless told how, or stores a
// provider's shape. Nothing is left out silently: what the other side cannot
// express is a [Note].
package provider

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Options are what a request is made with. The zero value maps messages only.
type Options struct {
	// Tools are what the model may call.
	Tools []Tool
	// Aliases are the names tools go by at the provider; nil makes them as
	// needed. Use the same ones to read the reply.
	Aliases *Aliases
	// ReadFile reads a local file that a content block names; nil leaves such
	// blocks out, with a note.
	ReadFile func(path string) ([]byte, error)
	// Speakers writes "[name]: " before what a named speaker says where the
	// provider has no field for names; else the name is left out, with a note.
	Speakers bool
	// Previous is the provider_response_id to continue from, if there is one.
	Previous string
}

// Tool describes a tool to a model. Nil parameters are none.
type Tool struct {
	Name        string
	Description string
	Parameters  *value.Map
}

// Schema returns the tool's parameter schema: always an object schema.
func (t Tool) Schema() *value.Map {
	if t.Parameters.Len() == 0 {
		return value.New().Set("type", "object").Set("properties", value.New())
	}
	return t.Parameters
}

// Request is a body for a provider, without what only its caller knows (the
// model, limits, temperature), and the notes on what it could not express.
type Request struct {
	Body  *value.Map
	Notes []Note
}

// ReadOptions are what a reply or a history is read with.
type ReadOptions struct {
	// Aliases are those the request was made with.
	Aliases *Aliases
	// Turn is the number of the turn that is read, from 1; 0 is 1.
	Turn int
	// MaxBytes bounds what a stream may add up to; 0 is MaxReply.
	MaxBytes int
}

// FirstTurn returns the turn that reading begins with.
func (o ReadOptions) FirstTurn() int { return max(1, o.Turn) }

// History is a conversation read back from a provider's request form.
type History struct {
	Messages []message.Envelope
	Notes    []Note
}
