package graph_test

import (
	"testing"

	"github.com/parley-hub/parley/graph"
)

func TestFactories(t *testing.T) {
	t.Parallel()
	g, err := graph.NewRoundRobin([]string{"a", "b"}, nil)
	equal(t, err, nil)
	equal(t, object(t, g), `{"initial_speaker":"a","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}},"priority":0}],"default_target":{"name":"terminate","args":{"reason":"round_robin_complete"}},"max_turns":null}`)
	g, err = graph.NewRoundRobin([]string{"b"}, new(6))
	equal(t, err, nil)
	equal(t, object(t, g), `{"initial_speaker":"b","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}},"priority":0}],"default_target":{"name":"terminate","args":{"reason":"round_robin_complete"}},"max_turns":6}`)
	g, err = graph.NewSequence([]string{"a", "b", "c"})
	equal(t, err, nil)
	equal(t, object(t, g), `{"initial_speaker":"a","transitions":[{"when":{"name":"from_speaker","args":{"agent_id":"a"}},"then":{"name":"agent","args":{"agent_id":"b"}},"priority":0},{"when":{"name":"from_speaker","args":{"agent_id":"b"}},"then":{"name":"agent","args":{"agent_id":"c"}},"priority":0}],"default_target":{"name":"terminate","args":{"reason":"sequence_complete"}},"max_turns":3}`)
	g, err = graph.NewSequence([]string{"a"})
	equal(t, err, nil)
	equal(t, object(t, g), `{"initial_speaker":"a","transitions":[],"default_target":{"name":"terminate","args":{"reason":"sequence_complete"}},"max_turns":1}`)
	_, err = graph.NewRoundRobin(nil, nil)
	refusedWith(t, err, "graph: round_robin: needs at least 1 participant")
	_, err = graph.NewSequence(nil)
	refusedWith(t, err, "graph: sequence: needs at least 1 step")
}
