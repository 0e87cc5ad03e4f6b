package consulting

import (
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
)

// Tools gives whoever's turn it is the means to speak.
func (Adapter) Tools(m *channel.Metadata, s channel.State, participant string) []string {
	state, ok := s.(*State)
	if !ok || state.Replied || state.Asked == (participant == m.Creator) {
		return nil
	}
	return []string{turn.Say}
}
