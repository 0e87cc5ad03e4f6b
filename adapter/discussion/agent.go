package discussion

import (
	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/view"
)

// View returns the view of the last two rounds, with names.
func (Adapter) View(m *channel.Metadata, _ string) view.View { return ag2.GroupView(m) }

// Turns counts the texts so far.
func (Adapter) Turns(s channel.State) (int, bool) {
	state, ok := s.(*State)
	if !ok {
		return 0, false
	}
	return state.Turns, true
}
