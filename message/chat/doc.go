// Package chat is agents/chat: one turn of a conversation with an agent, run
// exactly once for each run id.
//
// It puts the messages of the turn together, claims the run before anything
// happens, hands both to a runner, checks what comes back, stores the
// transcript as canonical envelopes and reduces the result to what a client is
// shown. It knows no model: the runner does.
package chat
