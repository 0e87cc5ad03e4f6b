package agent

import (
	"context"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
)

// Names of the tools that decide who speaks next in a workflow.
const (
	HandoffTool = "handoff"
	FinishTool  = "finish"
)

// routingTools returns what a model needs to route a workflow: one tool for
// each name that the graph waits for, and two that route by themselves. A name
// that is taken stays with the tool that has it.
func routingTools(s channel.State, taken []*Tool) []*Tool {
	state, ok := s.(*workflow.State)
	if !ok {
		return nil
	}
	var tools []*Tool
	add := func(tool *Tool) {
		if find(taken, tool.Name) == nil && find(tools, tool.Name) == nil {
			tools = append(tools, tool)
		}
	}
	for _, name := range state.Graph.Tools() {
		add(graphTool(name))
	}
	add(handoffTool())
	add(finishTool())
	return tools
}

// graphTool does nothing but carry its name: the graph routes by it.
func graphTool(name string) *Tool {
	return &Tool{
		Name:        name,
		Description: "End your turn and let the workflow route by this tool's name.",
		Run:         func(context.Context, *Call) (any, error) { return "routing by " + name, nil },
		Ends:        true,
	}
}

func handoffTool() *Tool {
	type args struct {
		Target string `json:"target"`
		Reason string `json:"reason"`
	}
	return NewTool(HandoffTool, "End your turn and make another participant the next speaker.", `{"type":"object",
"properties":{"target":{"type":"string","description":"the name of the participant who speaks next"},
"reason":{"type":"string","description":"why, in one sentence"}},"required":["target"]}`,
		func(ctx context.Context, call *Call, in args) (any, error) {
			m := call.Turn.Channel
			if m == nil {
				return refusal("there is no channel to hand off in")
			}
			ids, unknown := resolve(ctx, call.link(), []string{in.Target})
			if unknown != "" || !m.Members().Has(ids[0]) {
				return refusal("'%s' is not a participant of this channel", in.Target)
			}
			return Handoff{Target: in.Target, Reason: in.Reason}, nil
		})
}

func finishTool() *Tool {
	type args struct {
		Summary string `json:"summary"`
		Reason  string `json:"reason"`
	}
	return NewTool(FinishTool, "End the whole workflow because its work is done.", `{"type":"object",
"properties":{"summary":{"type":"string","description":"what came of it"},
"reason":{"type":"string","description":"one word for why it ends, such as resolved"}}}`,
		func(_ context.Context, _ *Call, in args) (any, error) {
			return Finish{Summary: in.Summary, Reason: in.Reason}, nil
		})
}
