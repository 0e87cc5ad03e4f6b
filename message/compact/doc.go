// Package compact shortens transcripts: the older part is replaced by a
// summary that a caller's summarizer writes, or, when the input is simply too
// large, archived without a model.
//
// It never separates a tool call from its result, never loses a message when
// summarizing fails, and calls no model itself. Sizes and ids are computed
// over the same text as every other implementation of the contract, so they
// agree across hosts.
package compact
