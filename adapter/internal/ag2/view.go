package ag2

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/view"
)

// GroupView returns the view for members of a larger channel: the last two rounds
// under the speakers' names, after a summary.
func GroupView(m *channel.Metadata) view.View {
	v, _ := view.NamedWindowed(view.GroupWindow(len(m.Participants))) // at least four: never refused
	return v
}
