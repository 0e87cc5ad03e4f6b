package chat

import (
	"context"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/hub"

	"github.com/go-json-experiment/json"
)

// eventNames are the events that are sent to followers of a session; locks are
// internal.
var eventNames = map[string]string{
	adapter.TypeCreated: "created", adapter.TypeAppended: "appended", adapter.TypeReplaced: "replaced", adapter.TypeCompacted: "compacted",
	adapter.TypeDescribed: "described", adapter.TypeStarted: "started", adapter.TypeEnded: "ended", adapter.TypeDelta: "delta", adapter.TypeReset: "reset",
}

// EventName returns the name of a session's event; false: it is not sent.
func EventName(ev hub.Event) (string, bool) {
	name, ok := eventNames[ev.Envelope.Type]
	return name, ok && !ev.Side
}

// Ends reports whether an event is the end of a run.
func Ends(ev hub.Event, run string) bool {
	if ev.Live || ev.Envelope.Type != adapter.TypeEnded {
		return false
	}
	var ended adapter.Ended
	return json.Unmarshal(ev.Envelope.Data, &ended) == nil && ended.Run == run
}

// ChannelOf returns the channel of a session; empty if there is none.
func (s *Service) ChannelOf(ctx context.Context, session string) (string, error) {
	return s.store.find(ctx, session)
}
