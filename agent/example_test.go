package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// start lets an agent run until ctx ends.
func start(ctx context.Context, a *agent.Agent) {
	go func() {
		if err := a.Run(ctx); err != nil {
			fmt.Println(err)
		}
	}()
}

// An agent is a model and a link. The network stands for any hub: a client's
// connection is used in the same way.
func Example() {
	network := agenttest.New()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	shouter := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		return &agent.Response{Text: strings.ToUpper(p.Input())}, nil
	})
	start(ctx, agent.New(network.Join("shouter"), shouter, agent.Options{}))

	person := agent.NewHuman(network.Join("ines"), agent.HumanOptions{})
	defer person.Disconnect()
	talk, err := person.Open(ctx, agent.Opening{Type: "consulting", Participants: []string{"id-shouter"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := person.Send(ctx, talk.ID, "hello over there", turn.Address{}); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := view.TextOnly{}.Render(reply)
	fmt.Println(text)
	// Output: HELLO OVER THERE
}

// A tool routes a workflow by what it returns, and writes context on the way.
func Example_workflow() {
	network := agenttest.New()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	escalate := agent.NewTool("escalate", "Hand over to a specialist.", `{"type":"object"}`,
		func(ctx context.Context, call *agent.Call, in struct{ Topic string }) (any, error) {
			return agent.Handoff{Target: "expert", Reason: in.Topic}, call.Turn.SetContext(ctx, "topic", in.Topic)
		})
	desk := agent.ModelFunc(func(context.Context, *agent.Prompt) (*agent.Response, error) {
		return &agent.Response{Calls: []turn.Call{{Name: "escalate", Arguments: `{"Topic":"tax"}`}}}, nil
	})
	expert := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		return &agent.Response{Text: "About " + p.Input()}, nil
	})
	start(ctx, agent.New(network.Join("desk"), desk, agent.Options{Tools: []*agent.Tool{escalate}}))
	start(ctx, agent.New(network.Join("expert"), expert, agent.Options{}))

	person := agent.NewHuman(network.Join("ines"), agent.HumanOptions{})
	defer person.Disconnect()
	job, err := person.Open(ctx, agent.Opening{
		Type: "workflow", Participants: []string{"id-desk", "id-expert"},
		Knobs: []byte(`{"graph":{"initial_speaker":"id-ines",
			"transitions":[{"when":{"name":"from_speaker","args":{"agent_id":"id-ines"}},"then":{"name":"agent","args":{"agent_id":"id-desk"}}}],
			"default_target":{"name":"terminate","args":{"reason":"answered"}}}}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := person.Send(ctx, job.ID, "I have a question.", turn.Address{}); err != nil {
		fmt.Println(err)
		return
	}
	for e := range person.Envelopes(ctx) {
		switch e.Type {
		case envelope.TypeContextSet, envelope.TypePacket:
			fmt.Println(e.Sender, string(e.Data))
		case envelope.TypeClosed:
			fmt.Println("closed")
			return
		}
	}
	// Output:
	// id-desk {"set":{"topic":"tax"}}
	// id-desk {"routing":{"kind":"handoff","tool":"escalate","reason":"tax","target":"id-expert"},"context_updates":{"set":{},"delete":[]},"body":""}
	// id-expert {"routing":{"kind":"text"},"context_updates":{"set":{},"delete":[]},"body":"About [desk]: [Handed off via escalate] tax"}
	// closed
}

// A person confirms what cannot be undone.
func ExampleOptions_confirm() {
	network := agenttest.New()
	pay := &agent.Tool{Name: "pay", Confirm: true, Run: func(_ context.Context, call *agent.Call) (any, error) {
		return "paid " + call.Arguments, nil
	}}
	asked := false
	model := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		if !asked {
			asked = true
			return &agent.Response{Calls: []turn.Call{{Name: "pay", Arguments: `{"amount":900}`}}}, nil
		}
		return &agent.Response{Text: p.Messages[len(p.Messages)-1].Text}, nil
	})
	a := agent.New(network.Join("clerk"), model, agent.Options{
		Tools: []*agent.Tool{pay},
		Confirm: func(_ context.Context, call *agent.Call) error {
			return fmt.Errorf("nobody pays %s today", call.Arguments)
		},
	})
	text, err := a.Ask(context.Background(), "Pay the bill.")
	fmt.Println(text, err)
	// Output: Error: 'pay' was not confirmed: nobody pays {"amount":900} today <nil>
}
