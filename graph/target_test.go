package graph_test

import (
	"testing"

	"github.com/parley-hub/parley/graph"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	abc := []string{"a", "b", "c"}
	for _, tc := range []struct {
		name  string
		then  graph.Target
		facts graph.Facts
		want  graph.Decision
	}{
		{"agent", to("x"), graph.Facts{Order: abc}, graph.Decision{Speaker: "x"}},
		{"agent of no name", to(""), graph.Facts{Order: abc}, graph.Decision{}},
		{"round robin", graph.RoundRobin{}, graph.Facts{Order: abc, LastSpeaker: "a"}, graph.Decision{Speaker: "b"}},
		{"round robin wraps", graph.RoundRobin{}, graph.Facts{Order: abc, LastSpeaker: "c"}, graph.Decision{Speaker: "a"}},
		{"round robin after a stranger", graph.RoundRobin{}, graph.Facts{Order: abc, LastSpeaker: "z"}, graph.Decision{Speaker: "a"}},
		{"round robin falls back to the sender", graph.RoundRobin{}, graph.Facts{Order: abc}, graph.Decision{Speaker: "c"}},
		{"round robin of nobody", graph.RoundRobin{}, graph.Facts{LastSpeaker: "a"}, graph.Decision{End: true, Reason: "no_participants"}},
		{"stay", graph.Stay{}, graph.Facts{Order: abc, LastSpeaker: "c"}, graph.Decision{Speaker: "c"}},
		{"stay falls back to the sender", graph.Stay{}, graph.Facts{Order: abc}, graph.Decision{Speaker: "b"}},
		{"revert", graph.RevertToInitiator{}, graph.Facts{Order: abc, Creator: "c", LastSpeaker: "a"}, graph.Decision{Speaker: "c"}},
		{"terminate", end("done"), graph.Facts{Order: abc}, graph.Decision{End: true, Reason: "done"}},
		{"terminate without words", end(""), graph.Facts{Order: abc}, graph.Decision{End: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			equal(t, resolve(tc.then, tc.facts, text("b")), tc.want)
		})
	}
}

func TestMaySpeak(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		facts  graph.Facts
		sender string
		want   bool
	}{
		{graph.Facts{Expected: "a"}, "a", true},
		{graph.Facts{Expected: "a"}, "b", false},
		{graph.Facts{}, "b", true},
		{graph.Facts{Ended: true}, "b", false},
		{graph.Facts{Ended: true, Expected: "b"}, "b", false},
	} {
		equal(t, tc.facts.MaySpeak(tc.sender), tc.want)
	}
}
