package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/envelope"
)

// A model routes a workflow with the tools that the channel gives it.
func TestRoutingTools(t *testing.T) {
	t.Parallel()
	const graph = `{"graph":{"initial_speaker":"id-ines","transitions":[
		{"when":{"name":"from_speaker","args":{"agent_id":"id-ines"}},"then":{"name":"agent","args":{"agent_id":"id-desk"}}},
		{"when":{"name":"tool_called","args":{"tool_name":"escalate"}},"then":{"name":"agent","args":{"agent_id":"id-expert"}}}],
		"default_target":{"name":"stay"}}}`
	for _, test := range []struct {
		name  string
		calls []turn.Call
		want  string
	}{
		{"handoff", []turn.Call{{Name: "handoff", Arguments: `{"target":"expert","reason":"tax"}`}}, `"routing":{"kind":"handoff","tool":"handoff","reason":"tax","target":"id-expert"}`},
		{"finish", []turn.Call{{Name: "finish", Arguments: `{"reason":"resolved","summary":"all well"}`}}, `"kind":"finish"`},
		{"a tool of the graph", []turn.Call{{Name: "escalate"}}, `"routing":{"kind":"handoff","tool":"escalate"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			network := agenttest.New()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var offered []string
			model := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
				for _, tool := range p.Tools {
					offered = append(offered, tool.Name)
				}
				if p.Turn.Channel == nil || p.Turn.Name("id-ines") != "ines" {
					t.Errorf("the turn is %+v", p.Turn)
				}
				return &agent.Response{Text: "so", Calls: test.calls}, nil
			})
			desk := agent.New(network.Join("desk"), model, agent.Options{RoutingTools: true, NoNetworkTools: true})
			ended := make(chan error, 1)
			go func() { ended <- desk.Run(ctx) }()
			silent := agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) { return nil, nil })
			expert := agent.New(network.Join("expert"), silent, agent.Options{})
			expertEnded := make(chan error, 1)
			go func() { expertEnded <- expert.Run(ctx) }()
			person := agent.NewHuman(network.Join("ines"), agent.HumanOptions{})
			defer person.Disconnect()
			job, err := person.Open(ctx, agent.Opening{Type: "workflow", Participants: []string{"id-desk", "id-expert"}, Knobs: []byte(graph)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := person.Send(ctx, job.ID, "I have a question.", turn.Address{}); err != nil {
				t.Fatal(err)
			}
			packet, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypePacket })
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(packet.Data), test.want) {
				t.Errorf("got %s, want %s", packet.Data, test.want)
			}
			stop()
			<-ended
			<-expertEnded
			if got := strings.Join(offered, " "); !strings.HasSuffix(got, "escalate handoff finish") {
				t.Errorf("offered %s", got)
			}
		})
	}
}

// An agent that is not in the channel is not a target, and the model's tool
// result says so.
func TestHandoffToAStranger(t *testing.T) {
	t.Parallel()
	network := agenttest.New()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	network.Join("stranger")
	var heard string
	model := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		if last := p.Messages[len(p.Messages)-1]; last.Role == agent.ToolResult {
			heard = last.Text
			return &agent.Response{Text: "then not"}, nil
		}
		return &agent.Response{Calls: []turn.Call{{Name: "handoff", Arguments: `{"target":"stranger"}`}}, Verbatim: 7}, nil
	})
	desk := agent.New(network.Join("desk"), model, agent.Options{RoutingTools: true})
	ended := make(chan error, 1)
	go func() { ended <- desk.Run(ctx) }()
	person := agent.NewHuman(network.Join("ines"), agent.HumanOptions{})
	defer person.Disconnect()
	job, err := person.Open(ctx, agent.Opening{Type: "workflow", Participants: []string{"id-desk"}, Knobs: []byte(
		`{"graph":{"initial_speaker":"id-ines","transitions":[],"default_target":{"name":"round_robin"}}}`,
	)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := person.Send(ctx, job.ID, "Go on.", turn.Address{}); err != nil {
		t.Fatal(err)
	}
	if _, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypePacket }); err != nil {
		t.Fatal(err)
	}
	stop()
	<-ended
	if heard != "Error: 'stranger' is not a participant of this channel" {
		t.Errorf("the model was told %q", heard)
	}
}
