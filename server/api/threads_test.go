package api

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// A chain of replies may be as long as the log. The view nests it as deep as
// JSON readers go and lists the rest, without losing one.
func TestALongChainOfReplies(t *testing.T) {
	t.Parallel()
	const chain = 100_000
	var in view.Input
	for i := range chain {
		e := &envelope.Envelope{ID: fmt.Sprint(i), Sender: "a", Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"%d"}`, i)}
		if i > 0 {
			e.Causation = fmt.Sprint(i - 1)
		}
		in.Log = append(in.Log, e)
	}
	data, err := encode(nestThreads(view.Threads(in), func(id string) string { return "name of " + id }))
	if err != nil {
		t.Fatal(err)
	}
	var list []*viewEvent
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	seen, depth := 0, 0
	for ; len(list) > 0; depth++ {
		var replies []*viewEvent
		for _, ev := range list {
			want := &viewEvent{Role: "name of a", Text: fmt.Sprint(seen), ID: fmt.Sprint(seen)}
			if seen > maxThreadDepth {
				want.ReplyTo = fmt.Sprint(seen - 1)
			}
			replies = ev.Thread
			if ev.Thread = nil; fmt.Sprint(*ev) != fmt.Sprint(*want) {
				t.Fatalf("%v at the place of %v", ev, want)
			}
			seen++
		}
		list = replies
	}
	if seen != chain || depth != maxThreadDepth+1 {
		t.Fatalf("%d of %d replies in %d levels", seen, chain, depth)
	}
}

// A reply after the end of the nesting goes back to its own level.
func TestRepliesBranchBeyondTheDeepestLevel(t *testing.T) {
	t.Parallel()
	var in view.Input
	add := func(id, cause string) {
		in.Log = append(in.Log, &envelope.Envelope{ID: id, Causation: cause, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)})
	}
	add("0", "")
	for i := range maxThreadDepth + 1 {
		add(fmt.Sprint(i+1), fmt.Sprint(i))
	}
	add("shallow", "0")
	top := nestThreads(view.Threads(in), func(id string) string { return id })
	if len(top) != 1 || len(top[0].Thread) != 2 || top[0].Thread[1].ID != "shallow" || top[0].Thread[1].ReplyTo != "" {
		t.Fatalf("got %v", top[0].Thread)
	}
}
