package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Ask runs a round outside any channel: the model gets the input and all tools
// that need no channel. Deliveries that such a tool waits for arrive only while
// Run runs.
func (a *Agent) Ask(ctx context.Context, input string) (text string, err error) {
	defer rescue(&err)
	t := &Turn{Agent: a}
	p := &Prompt{System: a.system(), Messages: []Message{{Role: User, Text: input}}, Tools: a.tools, Turn: t}
	round, err := a.runTask(ctx, t, p)
	return round.Body, err
}

// round runs the model and its tools until the model answers without calls.
func (a *Agent) round(ctx context.Context, t *Turn, p *Prompt) (turn.Round, error) {
	round := turn.Round{Results: map[string]any{}}
	ordinals := map[string]int{}
	for range a.opts.Steps {
		response, err := a.model.Respond(ctx, p)
		if err != nil {
			return round, err
		}
		if response == nil {
			return round, nil
		}
		round.Body = response.Text
		if len(response.Calls) == 0 {
			return round, nil
		}
		if n := len(round.Calls) + len(response.Calls); n > a.opts.Calls {
			return round, fault.New(fault.TooLarge, "the model called %d tools in one turn, and may call %d", n, a.opts.Calls)
		}
		said := Message{Role: Assistant, Text: response.Text, Verbatim: response.Verbatim}
		ends := false
		var results []Message
		for _, asked := range response.Calls {
			asked.ID = freshID(round.Calls, asked.ID)
			said.Calls = append(said.Calls, asked)
			round.Calls = append(round.Calls, asked)
			call := &Call{Call: asked, Turn: t, Key: t.callKey(asked.Name, ordinals[asked.Name])}
			ordinals[asked.Name]++
			tool := find(p.Tools, asked.Name)
			result, err := a.call(ctx, tool, call)
			if ctx.Err() != nil {
				return round, ctx.Err()
			}
			if err == nil {
				round.Results[asked.ID] = result
			}
			ends = ends || err == nil && routes(result) || tool != nil && tool.Ends
			results = append(results, Message{Role: ToolResult, Text: showResult(result, err), CallID: asked.ID})
		}
		if ends {
			return round, nil
		}
		p.Messages = append(append(p.Messages, said), results...)
	}
	return round, fmt.Errorf("agent: the model still calls tools after %d steps", a.opts.Steps)
}

// freshID returns a call's id within its round. It is the model's own, unless
// the model gave none or one that an earlier call has: the results would be
// mixed up.
func freshID(earlier []turn.Call, id string) string {
	taken := func(c turn.Call) bool { return c.ID == id }
	for n := len(earlier) + 1; id == "" || slices.ContainsFunc(earlier, taken); n++ {
		id = fmt.Sprintf("call-%d", n)
	}
	return id
}

func (t *Turn) callKey(tool string, ordinal int) string {
	if t.Channel == nil {
		// Nothing outside a channel is ever tried again.
		return callKey(envelope.NewID(), 0, tool, ordinal)
	}
	return callKey(t.Channel.ID, t.key, tool, ordinal)
}

// call runs one tool, after confirmation if the tool needs it.
func (a *Agent) call(ctx context.Context, tool *Tool, call *Call) (result any, err error) {
	if tool == nil {
		return nil, fault.New(fault.NotFound, "unknown tool '%s'", call.Name)
	}
	defer rescue(&err)
	if tool.Confirm {
		if a.opts.Confirm == nil {
			return nil, fault.New(fault.AccessDenied, "'%s' needs a confirmation, and nobody can give one", call.Name)
		}
		if err := a.opts.Confirm(ctx, call); err != nil {
			return nil, fault.Wrap(fault.AccessDenied, err, "'%s' was not confirmed: %v", call.Name, err)
		}
	}
	return tool.Run(ctx, call)
}

func find(tools []*Tool, name string) *Tool {
	for _, tool := range tools {
		if tool.Name == name {
			return tool
		}
	}
	return nil
}
