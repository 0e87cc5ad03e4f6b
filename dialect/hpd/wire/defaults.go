package wire

import "cmp"

// What some payloads say when a member is left out.

var emptyObject = Raw(`{}`)

// preset: a client tool that does not say otherwise succeeded.
func (e *ClientToolInvokeResponse) preset() { e.Success = true }

// complete: clients read the arguments without asking whether there are any.
func (e ClientToolInvokeRequest) complete() Payload {
	if len(e.Arguments) == 0 {
		e.Arguments = emptyObject
	}
	return e
}

// complete: no arguments are an empty object.
func (e ToolCallArgs) complete() Payload {
	e.ArgsJSON = cmp.Or(e.ArgsJSON, "{}")
	return e
}

func (e PlanUpdated) complete() Payload {
	if len(e.Plan) == 0 {
		e.Plan = emptyObject
	}
	return e
}
