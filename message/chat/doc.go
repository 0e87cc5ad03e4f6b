// Package chat is agents/chat: one turn of a conversation with an agent, run
// exactly once for each run id.
//
// It assembles the messages of the turn, claims the run before anything else
// happens, passes both to a runner, checks the result, stores the transcript
// as canonical envelopes and reduces the result to what a client is shown. It
// knows no model: the runner does.
package chat
