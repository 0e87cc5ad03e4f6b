package conversation

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/view"
)

// recent is how much of a conversation an agent reads word for word.
const recent = 10

// View is the last ten messages behind a summary.
func (Adapter) View(*channel.Metadata, string) view.View {
	v, _ := view.Windowed(recent) // a constant above zero is never refused
	return v
}

// Tools lets both parties speak beside their replies.
func (Adapter) Tools(*channel.Metadata, channel.State, string) []string {
	return []string{turn.Say}
}

// Turns are the texts so far.
func (Adapter) Turns(s channel.State) (int, bool) {
	state, ok := s.(*State)
	if !ok {
		return 0, false
	}
	return state.Turns, true
}
