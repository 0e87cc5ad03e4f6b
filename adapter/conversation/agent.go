package conversation

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/view"
)

// recent is how many messages an agent reads in full.
const recent = 10

// View returns the view of the last ten messages after a summary.
func (Adapter) View(*channel.Metadata, string) view.View {
	v, _ := view.Windowed(recent) // a constant above zero is never refused
	return v
}

// Tools lets both parties speak in addition to their replies.
func (Adapter) Tools(*channel.Metadata, channel.State, string) []string {
	return []string{turn.Say}
}

// Turns counts the texts so far.
func (Adapter) Turns(s channel.State) (int, bool) {
	state, ok := s.(*State)
	if !ok {
		return 0, false
	}
	return state.Turns, true
}
