package wire

import "cmp"

// Values of members that a payload leaves out.

var emptyObject = Raw(`{}`)

// preset sets the default: a client tool succeeded unless it says otherwise.
func (e *ClientToolInvokeResponse) preset() { e.Success = true }

// complete adds empty arguments, because clients read the arguments without
// checking that there are any.
func (e ClientToolInvokeRequest) complete() Payload {
	if len(e.Arguments) == 0 {
		e.Arguments = emptyObject
	}
	return e
}

// complete replaces missing arguments by an empty object.
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
