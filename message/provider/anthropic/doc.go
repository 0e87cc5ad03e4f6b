// Package anthropic maps canonical messages to the JSON of Anthropic's messages
// interface and back.
//
// It makes no requests and keeps nothing: thinking blocks with their signatures,
// citations and cache hints live in the messages' metadata under "anthropic"
// and are returned verbatim.
package anthropic

// Vendor is the metadata key of Anthropic's own fields.
const Vendor = "anthropic"
