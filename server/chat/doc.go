// Package chat keeps chat sessions as channels of the hub and runs what is said
// in them: by an agent of the hub, in a conversation that it opens, or by a
// hosted definition. It decides what is stored and when; who may ask is the
// caller's to have checked.
package chat
