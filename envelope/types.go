package envelope

import "strings"

// The event types that the seeds name, as the log holds them.
const (
	TypeText       = "ag2.msg.text"
	TypePacket     = "ag2.packet"
	TypeContextSet = "ag2.context.set"
	// TypeDelta is a part of a text that its speaker has not finished. It is live:
	// never in a log, and unknown to AG2's clients.
	TypeDelta = "parley.msg.delta"

	TypeInvite       = "ag2.channel.invite"
	TypeInviteAck    = "ag2.channel.invite.ack"
	TypeInviteReject = "ag2.channel.invite.reject"
	TypeOpened       = "ag2.channel.opened"
	TypeClosed       = "ag2.channel.closed"
	TypeExpired      = "ag2.channel.expired"

	TypeExpectationViolated = "ag2.channel.expectation_violated"
	// WireExpectationViolated is what AG2's own wire calls it.
	WireExpectationViolated = "ag2.expectation.violated"

	// TypeRemoved announces that a participant may no longer speak in a channel.
	TypeRemoved = "ag2.participant.removed"

	// Types of the side envelopes that report requests.
	TypeRequest          = "parley.request"
	TypeAnswer           = "parley.answer"
	TypeRequestExpired   = "parley.request.expired"
	TypeRequestCancelled = "parley.request.cancelled"

	TypeTaskStarted       = "ag2.task.started"
	TypeTaskProgress      = "ag2.task.progress"
	TypeTaskCompleted     = "ag2.task.completed"
	TypeTaskFailed        = "ag2.task.failed"
	TypeTaskExpired       = "ag2.task.expired"
	TypeTaskCancelled     = "ag2.task.cancelled"
	TypeTaskCancelRequest = "ag2.task.cancel_request"
)

const (
	channelPrefix = "ag2.channel."
	taskPrefix    = "ag2.task."
	sessionPrefix = "ag2.session."
)

// IsChannelEvent reports whether a type belongs to a channel's own lifecycle,
// by prefix.
func IsChannelEvent(eventType string) bool { return strings.HasPrefix(eventType, channelPrefix) }

// IsTask reports whether a type is about a task.
func IsTask(eventType string) bool { return strings.HasPrefix(eventType, taskPrefix) }

// IsProtocol reports whether a type is of the hub-protocol class: it passes
// before a channel is active and is not counted against an inbox.
func IsProtocol(eventType string) bool {
	return IsChannelEvent(eventType) || IsTask(eventType) || eventType == WireExpectationViolated
}

// IsAdapterProtocol reports whether a type is one of the six that no adapter
// folds.
func IsAdapterProtocol(eventType string) bool {
	switch eventType {
	case TypeInvite, TypeInviteAck, TypeInviteReject, TypeOpened, TypeClosed, TypeExpired:
		return true
	}
	return false
}

// IsContent reports whether an envelope of a type counts as speech: expectations
// measure how long nobody has spoken.
func IsContent(eventType string) bool { return !IsProtocol(eventType) }

// Canonical translates older and wire names to the log's: ag2.session.* is
// ag2.channel.*, and AG2's name for a violated expectation is the seed's.
func Canonical(eventType string) string {
	if eventType == WireExpectationViolated {
		return TypeExpectationViolated
	}
	if rest, ok := strings.CutPrefix(eventType, sessionPrefix); ok {
		return channelPrefix + rest
	}
	return eventType
}
