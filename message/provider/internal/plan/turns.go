package plan

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// opening is the first message of a conversation that the user does not begin.
const opening = "(The conversation begins here.)"

// Turns are the messages of an API in which roles alternate and the user begins.
type Turns struct {
	Key  string                  // of a message's parts
	Text func(string) *value.Map // a part that is text
	Out  []any
	// Notes gets a note for a message that is added.
	Notes *provider.Notes
}

// Add adds parts to the last message if it has the role, and to a new one
// otherwise.
func (t *Turns) Add(role string, index int, parts []any) {
	if len(parts) == 0 {
		return
	}
	if len(t.Out) == 0 && role != message.RoleUser {
		t.Notes.Add(index, provider.Added, provider.NoteOpening, "a user's message was added in front")
		t.Add(message.RoleUser, index, []any{t.Text(opening)})
	}
	if n := len(t.Out); n > 0 {
		if last := t.Out[n-1].(*value.Map); last.At("role") == role {
			last.Set(t.Key, append(List(last, t.Key), parts...))
			return
		}
	}
	t.Out = append(t.Out, value.New().Set("role", role).Set(t.Key, parts))
}

// Tools describes the tools of a request, each with its schema under a key.
func Tools(o provider.Options, schema string) []any {
	tools := []any{}
	for _, t := range o.Tools {
		tool := value.New().Set("name", o.Aliases.Alias(t.Name))
		tool.SetText("description", t.Description)
		tools = append(tools, tool.Set(schema, t.Schema()))
	}
	return tools
}
