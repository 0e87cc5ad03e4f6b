package fault

import (
	"errors"
	"maps"
)

// Reason says more exactly than a code why something was refused, where code
// has to decide by it. Reasons are stable; messages are for people and may
// change.
type Reason string

// Reasons.
const (
	OutOfTurn    Reason = "out_of_turn"   // somebody else is expected to speak
	NameTaken    Reason = "name_taken"    // an identity of that name exists
	ChannelEnded Reason = "channel_ended" // the channel is closed or expired
	NoChannel    Reason = "no_channel"    // no channel has that id
	NoTask       Reason = "no_task"       // no task has that id
	NoAgent      Reason = "no_agent"      // nobody has that name or id
	NoActor      Reason = "no_actor"      // the request does not say for whom it acts
	NeedsAPIKey  Reason = "needs_api_key" // the identity is proved by the token of its key
	NeedsRole    Reason = "needs_role"    // a key of another role is needed
	RunActive    Reason = "run_active"    // the branch has an active run
	NoRun        Reason = "no_run"        // the branch has no active run, or another one
	WorkClosed   Reason = "work_closed"   // the work has ended
	WorkUnknown  Reason = "work_unknown"  // nobody has opened the work
	WorkActor    Reason = "work_actor"    // the work is between two others
	WorkStep     Reason = "work_step"     // the work cannot take that step
	PeerJoined   Reason = "peer_joined"   // the peer id is joined to the room
	PeerAbsent   Reason = "peer_absent"   // the peer is not joined to the room
	Taken        Reason = "taken"         // another record holds the name
	TooManyHops  Reason = "too_many_hops" // it has crossed between dialects too often
	NotServing   Reason = "not_serving"   // another node of the cluster serves

	RequestAnswered  Reason = "request_answered"  // the request has another answer
	RequestExpired   Reason = "request_expired"   // nobody answered the request in time
	RequestCancelled Reason = "request_cancelled" // the request was cancelled
	DigestDiffers    Reason = "digest_differs"    // another action was shown than is asked for
)

// Keys of details.
const (
	DetailExpected = "expected" // with OutOfTurn: the name of who is expected to speak
	DetailChannel  = "channel"  // with Taken: the channel that holds it
	DetailNode     = "node"     // with NotServing: the node that serves
	DetailAddress  = "address"  // with NotServing: where it does
)

// ReasonEntry describes a reason for the generated docs page.
type ReasonEntry struct {
	Reason  Reason
	Code    Code
	Meaning string
}

// Reasons lists every reason once, in the order of the docs page.
func Reasons() []ReasonEntry {
	return []ReasonEntry{
		{OutOfTurn, Protocol, "Somebody else is expected to speak; the detail `expected` names who, where that is known."},
		{NameTaken, Protocol, "An identity of that name exists; attach to it."},
		{ChannelEnded, Protocol, "The channel is closed or expired."},
		{NoChannel, NotFound, "No channel has that id."},
		{NoTask, NotFound, "No task has that id."},
		{NoAgent, NotFound, "Nobody is registered under that name or id."},
		{NoActor, Invalid, "The request does not say for whom it acts."},
		{NeedsAPIKey, AuthFailed, "The identity is proved by the token of its key."},
		{NeedsRole, AccessDenied, "A key of another role is needed."},
		{RunActive, Conflict, "The branch has an active run; wait for its end or interrupt it."},
		{NoRun, Conflict, "The branch has no active run, or another one than was named."},
		{WorkClosed, Protocol, "The work is completed, failed or canceled; open new work."},
		{WorkUnknown, Protocol, "Nobody has opened the work; a say or capability with an addressee opens it."},
		{WorkActor, Protocol, "The work is between two other peers, or the message is not addressed to the counterparty."},
		{WorkStep, Protocol, "The work cannot take that step, such as going back to `submitted`."},
		{PeerJoined, Conflict, "A peer of that id is joined to the room."},
		{PeerAbsent, NotFound, "No peer of that id is joined to the room."},
		{Taken, Conflict, "The name is held; the detail `channel` says by which channel."},
		{TooManyHops, Protocol, "It has crossed between dialects more often than `bridge.max_hops` allows."},
		{NotServing, Unavailable, "This node of a cluster stands by; the details `node` and `address` say who serves and where, if anybody does. Nothing was done: ask there."},
		{RequestAnswered, Conflict, "The request has another answer; the first one holds."},
		{RequestExpired, Conflict, "Nobody answered the request in time."},
		{RequestCancelled, Conflict, "The request was withdrawn, or its channel has ended."},
		{DigestDiffers, Conflict, "The answer is for another action than the request asks for; show it again."},
	}
}

// Because sets the reason and returns the error.
func (e *Error) Because(r Reason) *Error {
	e.Reason = r
	return e
}

// With adds a detail and returns the error.
func (e *Error) With(key, value string) *Error {
	details := maps.Clone(e.Details)
	if details == nil {
		details = map[string]string{}
	}
	details[key] = value
	e.Details = details
	return e
}

// ReasonOf returns the reason of an error, or of the first of its causes that
// has one.
func ReasonOf(err error) Reason {
	if f := reasoned(err); f != nil {
		return f.Reason
	}
	return ""
}

// DetailsOf returns the details that belong to the reason of an error.
func DetailsOf(err error) map[string]string {
	if f := reasoned(err); f != nil {
		return f.Details
	}
	return nil
}

func reasoned(err error) *Error {
	var f *Error
	for errors.As(err, &f) {
		if f.Reason != "" {
			return f
		}
		err, f = f.Err, nil
	}
	return nil
}
