package view

import "github.com/parley-hub/parley/envelope"

// Thread is an envelope with what answers it, in log order.
type Thread struct {
	Envelope *envelope.Envelope
	Text     string // empty also where nothing is rendered
	Rendered bool
	Replies  []*Thread
}

// Threads nests each envelope that the participant may see under the one its
// causation names. One without a cause, or whose cause is not in the log
// before it or may not be seen, is at the top.
func Threads(in Input) []*Thread {
	var top []*Thread
	byID := make(map[string]*Thread, len(in.Log))
	for _, e := range in.Log {
		if !in.visible(e) {
			continue
		}
		t := &Thread{Envelope: e}
		t.Text, t.Rendered = in.render(e)
		// Look the cause up before adding the envelope, so that none is its own parent.
		if cause, ok := byID[e.Causation]; ok && e.Causation != "" {
			cause.Replies = append(cause.Replies, t)
		} else {
			top = append(top, t)
		}
		byID[e.ID] = t
	}
	return top
}

// Walk visits threads in reading order, each with its depth from 0, until
// visit returns false.
func Walk(threads []*Thread, visit func(t *Thread, depth int) bool) {
	type entry struct {
		thread *Thread
		depth  int
	}
	// A chain of answers may be as long as the log, so no recursion.
	var stack []entry
	push := func(list []*Thread, depth int) {
		for i := len(list) - 1; i >= 0; i-- {
			stack = append(stack, entry{list[i], depth})
		}
	}
	push(threads, 0)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !visit(next.thread, next.depth) {
			return
		}
		push(next.thread.Replies, next.depth+1)
	}
}
