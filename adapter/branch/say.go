package branch

import (
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/view/branch"
)

// Say says a message in a branch. The agent of the active run says it as its
// answer, any other member as a user. It begins no run.
func (*Adapter) Say(m *channel.Metadata, s channel.State, sender string, msg message.Envelope) ([]channel.Draft, error) {
	state, ok := s.(*State)
	if !ok {
		return nil, fault.New(fault.Internal, "the branch has no state")
	}
	// Whoever posts is let in by Admits, because the dialect marks what it lets in.
	if !slices.Contains(state.Members, sender) {
		return nil, fault.New(fault.AccessDenied, "'%s' is no member of branch %q; its members post by HPD's routes", sender, state.Branch)
	}
	text, err := channel.SaidText(msg)
	if err != nil {
		return nil, err
	}
	chat := branch.ChatMessage{MessageID: msg.ID, Role: branch.RoleUser, Contents: []branch.Content{branch.Text(text)}}
	if name := channel.SaidName(msg); name != "" {
		chat.AuthorName = &name
	}
	if at, err := time.Parse(time.DateTime, msg.CreatedAt); err == nil {
		chat.CreatedAt = at
	}
	ext := branch.Ext{Server: true}
	answers := state.Run != nil && state.Run.Agent == sender && state.Run.Turn != "" && !state.Run.TurnEnded
	if answers {
		chat.Role, ext = branch.RoleAssistant, branch.Ext{Flow: state.Run.Turn}
	}
	events, err := branch.Expand(&chat)
	if err != nil {
		return nil, err
	}
	if answers { // producers stream: what frames a message that was not streamed is the server's
		events = events[1 : len(events)-1]
	}
	drafts := make([]channel.Draft, len(events))
	for i, e := range events {
		drafts[i].Envelope = envelope.Envelope{Type: branch.LogType(e.Type), Data: e.Data, Ext: ext.Bytes()}
	}
	return drafts, nil
}
