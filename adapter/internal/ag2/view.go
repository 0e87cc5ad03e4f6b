package ag2

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/view"
)

// GroupView is how members of a larger channel read it: the last two rounds
// under the speakers' names, behind a summary.
func GroupView(m *channel.Metadata) view.View {
	v, _ := view.NamedWindowed(view.GroupWindow(len(m.Participants))) // at least four: never refused
	return v
}
