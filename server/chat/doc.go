// Package chat keeps chat sessions as channels of the hub and runs their
// turns: by an agent of the hub, in a conversation that it opens, or by a
// hosted definition. It decides what is stored and when; the caller has
// checked who may ask.
package chat
