package message_test

import (
	"fmt"

	"github.com/parley-hub/parley/message"
)

// A plain row of an older host becomes a canonical envelope.
func ExampleNormalizeJSON() {
	e, err := message.NormalizeJSON([]byte(`{"content":"Looking up tides","metadata":{"type":"tool_call","tool_name":"tide_table","turn":2}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := e.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"schema":"agents-api.message","version":1,"type":"tool_call","role":"assistant","content":"Looking up tides","payload":{"tool_name":"tide_table","turn":2},"metadata":{"type":"tool_call","tool_name":"tide_table","turn":2}}
}

// At the boundary to a model, type and payload are folded into metadata.
func ExampleToProvider() {
	e, _ := message.ToolCall("", "tide_table", map[string]any{"harbour": "Roscoff"}, 1, nil)
	p, err := message.ToProvider(e)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := p.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"role":"assistant","content":"","metadata":{"type":"tool_call","tool_name":"tide_table","parameters":{"harbour":"Roscoff"},"turn":1}}
}

// What cannot be a message is refused with the contract's text.
func ExampleError() {
	_, err := message.Normalize(map[string]any{"role": "user", "content": 5})
	fmt.Println(err)
	// Output: invalid_ai_message_envelope: content must be a string or array
}
