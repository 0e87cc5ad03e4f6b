package api

import "github.com/parley-hub/parley/view"

// maxThreadDepth bounds how deep replies nest. Common JSON readers give up at a
// thousand levels; ours and a reply's two levels (object and list) end at 5,000.
const maxThreadDepth = 256

// nestThreads nests replies down to maxThreadDepth. Deeper ones are listed there in
// reading order, each with what it replies to.
func nestThreads(list []*view.Thread, name func(string) string) []*viewEvent {
	top := []*viewEvent{}
	path := make([]*viewEvent, 0, maxThreadDepth+1) // to the event before, from the top
	view.Walk(list, func(t *view.Thread, depth int) bool {
		ev := &viewEvent{Role: name(t.Envelope.Sender), Text: t.Text, ID: t.Envelope.ID, Thread: []*viewEvent{}}
		level := min(depth, maxThreadDepth)
		if depth > level {
			ev.ReplyTo = t.Envelope.Causation
		}
		if level == 0 {
			top = append(top, ev)
		} else {
			parent := path[level-1]
			parent.Thread = append(parent.Thread, ev)
		}
		path = append(path[:level], ev)
		return true
	})
	return top
}
