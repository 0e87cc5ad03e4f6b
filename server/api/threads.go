package api

import "github.com/parley-hub/parley/view"

// maxThreadDepth bounds how deep replies nest. Common JSON decoders stop at a
// thousand levels, ours at 5,000, and each reply has two (object and list).
const maxThreadDepth = 256

// nestThreads nests replies down to maxThreadDepth. Deeper ones are listed there in
// reading order, each with the event that it replies to.
func nestThreads(list []*view.Thread, name func(string) string) []*viewEvent {
	top := []*viewEvent{}
	path := make([]*viewEvent, 0, maxThreadDepth+1) // to the previous event, from the top
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
