package chat

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/result"
	"github.com/parley-hub/parley/message/value"
)

// output reduces a normalized result to what a client is shown.
func output(t *turn, normalized *value.Map, messages []message.Envelope) *value.Map {
	reply, ok := normalized.At("final_content").(string)
	if !ok {
		reply = result.FinalContent(messages)
	}
	outcome := value.MapOrEmpty(normalized.At("run_outcome"))
	o := value.New().
		Set("session_id", t.SessionID).
		Set("reply", reply).
		Set("run_id", t.RunID).
		Set("messages", shown(messages)).
		Set("completed", completed(normalized)).
		Set("status", outcome.At("status")).
		Set("run_outcome", outcome)
	about := value.New()
	for _, key := range []string{"status", "turn_count", "usage", "run_outcome", "tool_observability"} {
		if v := normalized.At(key); v != nil {
			about.Set(key, v)
		}
	}
	if pending := normalized.At("runtime_tool_pending"); pending != nil {
		o.Set("runtime_tool_pending", pending)
	}
	if structured, ok := normalized.Get("structured_output"); ok {
		o.Set("structured_output", structured)
		if diagnostics := normalized.At("structured_output_diagnostics"); value.Len(diagnostics) > 0 {
			about.Set("structured_output", diagnostics)
		}
	}
	return o.Set("metadata", value.New().Set("agents_api", about))
}

// shown returns the texts of a conversation: no tool traffic, no blocks.
func shown(messages []message.Envelope) []any {
	list := []any{}
	for _, e := range messages {
		text, isText := e.Text()
		if !isText || e.Type == message.TypeToolCall || e.Type == message.TypeToolResult {
			continue
		}
		list = append(list, value.New().Set("role", e.Role).Set("content", text))
	}
	return list
}

func completed(normalized *value.Map) bool {
	done, ok := normalized.At("completed").(bool)
	return !ok || done
}

// contention returns the answer to a turn whose session another run is writing.
func contention(t *turn, before []message.Envelope) (*value.Map, error) {
	normalized, err := result.Normalize(value.New().
		Set("messages", value.List(before)).
		Set("status", StatusContention).
		Set("completed", false))
	if err != nil {
		return nil, wrap(CodeInvalidResult, err)
	}
	return output(t, normalized, before).Set("status", StatusContention), nil
}
