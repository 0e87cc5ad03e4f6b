package main

import (
	"context"
	"fmt"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/graph"
)

// unknown is a condition that only this hub knows: elsewhere a channel with it
// cannot be folded.
type unknown struct{}

func (unknown) Name() string                            { return "seed.unknown" }
func (unknown) Evaluate(*graph.Facts, *graph.Turn) bool { return false }

// adapters returns the hub's adapters, which know one condition more.
func adapters() ([]channel.Adapter, error) {
	r := graph.NewRegistry(graph.Limits{})
	if err := r.RegisterCondition(unknown{}); err != nil {
		return nil, err
	}
	return adapter.AllWith(workflow.Options{Registry: r}), nil
}

// trouble seeds a turn that failed, and a channel that cannot be folded.
func (s *seeder) trouble(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, "cleo", "dan")
	if err != nil {
		return nil, err
	}
	talk, err := s.open(ctx, "Talk", "discussion", nil, ids...)
	if err != nil {
		return nil, err
	}
	said, err := s.say(ctx, talk, ids[0], "Over to you, dan.")
	if err != nil {
		return nil, err
	}
	if err := s.hub.ReportTurnFailure(ctx, talk, ids[1], said, "TimeoutError", "the model did not answer"); err != nil {
		return nil, err
	}
	knobs := fmt.Appendf(nil, `{"graph":{"initial_speaker":%q,"transitions":[{"when":{"name":"seed.unknown","args":{}},"then":{"name":"stay","args":{}}}],"default_target":{"name":"round_robin","args":{}}}}`, ids[0])
	broken, err := s.open(ctx, "Broken", "workflow", knobs, ids...)
	return map[string]any{"talk_id": talk, "broken_id": broken}, err
}
