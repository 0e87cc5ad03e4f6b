package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
)

// Handoff as a tool's result makes another agent the next speaker.
type Handoff = turn.Handoff

// Finish as a tool's result ends the workflow.
type Finish = turn.Finish

// Tool is something that a model may do.
type Tool struct {
	Name        string
	Description string
	Parameters  []byte // a JSON Schema of its arguments, or nil for none
	// Run does it. It may run again for the same round after a crash: Call.Key
	// is then the same. An error is shown to the model; a Handoff or Finish as
	// the result ends the round and decides who speaks next.
	Run func(ctx context.Context, call *Call) (any, error)
	// Confirm asks Options.Confirm before every run.
	Confirm bool
	// Ends makes any call of it the last of the round.
	Ends bool
}

// Call is one run of a tool.
type Call struct {
	turn.Call
	// Key identifies the call: it is the same when the round is retried, and no
	// other call has it. Use it as an idempotency key.
	Key string
	// Turn is what the call happens in.
	Turn *Turn
}

// Decode reads the call's arguments; none at all is an empty object.
func (c *Call) Decode(into any) error {
	arguments := cmp.Or(c.Arguments, "{}")
	if err := json.Unmarshal([]byte(arguments), into); err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Name, err)
	}
	return nil
}

// NewTool makes a tool from a function whose first argument is decoded from
// the call's JSON.
func NewTool[A any](name, description, parameters string, run func(ctx context.Context, call *Call, args A) (any, error)) *Tool {
	return &Tool{
		Name:        name,
		Description: description,
		Parameters:  []byte(parameters),
		Run: func(ctx context.Context, call *Call) (any, error) {
			var args A
			if err := call.Decode(&args); err != nil {
				return nil, err
			}
			return run(ctx, call, args)
		},
	}
}

// showResult returns a tool's result as the model reads it.
func showResult(result any, err error) string {
	if err != nil {
		return "Error: " + err.Error()
	}
	switch r := result.(type) {
	case nil:
		return ""
	case string:
		return r
	case Handoff:
		return "handing off to " + r.Target
	case *Handoff:
		if r == nil {
			return ""
		}
		return showResult(*r, nil)
	case Finish, *Finish:
		return "finishing"
	}
	text, err := json.Marshal(result, json.Deterministic(true))
	if err != nil {
		return "Error: the result is not JSON: " + err.Error()
	}
	return string(text)
}

// routes reports whether a result decides who speaks next.
func routes(result any) bool {
	switch r := result.(type) {
	case Handoff, Finish:
		return true
	case *Handoff:
		return r != nil
	case *Finish:
		return r != nil
	}
	return false
}
