package consulting

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
)

// Tools offers Say to the participant whose turn it is.
func (Adapter) Tools(m *channel.Metadata, s channel.State, participant string) []string {
	state, ok := s.(*State)
	if !ok || state.Replied || state.Asked == (participant == m.Creator) {
		return nil
	}
	return []string{turn.Say}
}

// Turns counts the question and the reply.
func (Adapter) Turns(s channel.State) (int, bool) {
	state, ok := s.(*State)
	switch {
	case !ok:
		return 0, false
	case state.Replied:
		return 2, true
	case state.Asked:
		return 1, true
	}
	return 0, true
}
