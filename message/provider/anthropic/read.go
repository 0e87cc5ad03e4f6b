package anthropic

import (
	"encoding/base64"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Reply reads a message, or the error that came instead.
func Reply(data []byte, o provider.ReadOptions) (provider.Reply, error) {
	return plan.Reply(data, o, reply)
}

func reply(body *value.Map, o provider.ReadOptions) provider.Reply {
	r := plan.NewReading(Vendor, o)
	readAnswer(r, plan.Maps(body, "content"))
	made := provider.Reply{
		ResponseID: plan.Str(body, "id"), Model: plan.Str(body, "model"), FinishRaw: plan.Str(body, "stop_reason"),
	}
	made.Finish = finish(made.FinishRaw)
	made.Messages = r.Reply()
	if u := plan.Map(body, "usage"); u != nil {
		made.Usage = usage(u)
	}
	if e := plan.Map(body, "error"); e != nil {
		made.Fail(failure(e), e)
	}
	made.Notes = r.Notes
	return made
}

func usage(u *value.Map) *provider.Usage {
	prompt := plan.Count(u, "input_tokens") + plan.Count(u, "cache_creation_input_tokens") + plan.Count(u, "cache_read_input_tokens")
	completion := plan.Count(u, "output_tokens")
	return &provider.Usage{Prompt: prompt, Completion: completion, Total: prompt + completion, Raw: u}
}

func finish(raw string) provider.Finish {
	switch raw {
	case "":
		return provider.FinishNone
	case "end_turn", "stop_sequence":
		return provider.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return provider.FinishLength
	case "tool_use":
		return provider.FinishToolCalls
	case "pause_turn":
		return provider.FinishPause
	case "refusal":
		return provider.FinishRefusal
	}
	return provider.FinishOther
}

func failure(e *value.Map) *provider.Failure {
	f := &provider.Failure{Provider: Vendor, Code: plan.Str(e, "type"), Message: plan.Str(e, "message")}
	switch f.Code {
	case "rate_limit_error", "api_error", "overloaded_error", "timeout_error":
		f.Retryable = true
	}
	return f
}

// History reads a request back: the system's text, then the conversation.
func History(body *value.Map, o provider.ReadOptions) provider.History {
	r := plan.NewReading(Vendor, o)
	r.Merges = true
	for _, block := range content(body, "system") {
		r.Text(message.RoleSystem, plan.Str(block, "text"), plan.Rest(block, "type", "text"))
	}
	for _, m := range plan.Maps(body, "messages") {
		blocks := content(m, "content")
		if plan.Str(m, "role") == message.RoleAssistant {
			readAnswer(r, blocks)
			r.EndTurn()
			continue
		}
		readUser(r, blocks)
	}
	return provider.History{Messages: r.Messages(), Notes: r.Notes}
}

// content returns a string as one text block, or the blocks.
func content(m *value.Map, key string) []*value.Map {
	if s := plan.Str(m, key); s != "" {
		return []*value.Map{text(s)}
	}
	return plan.Maps(m, key)
}

func readAnswer(r *plan.Reading, blocks []*value.Map) {
	for _, block := range blocks {
		switch plan.Str(block, "type") {
		case "text":
			r.Text(message.RoleAssistant, plan.Str(block, "text"), plan.Rest(block, "type", "text"))
		case "tool_use":
			// A stream that was interrupted leaves arguments that are not
			// JSON.
			bad := plan.Str(block, "input")
			r.Call(plan.Str(block, "id"), plan.Str(block, "name"), value.MapOrEmpty(block.At("input")), bad,
				plan.Rest(block, "type", "id", "name", "input"))
		case "thinking":
			r.Reason(plan.Str(block, "thinking"))
			r.Opaque(block)
		default:
			r.Opaque(block)
		}
	}
}

func readUser(r *plan.Reading, list []*value.Map) {
	var blocks []plan.Block
	for _, block := range list {
		if plan.Str(block, "type") == "tool_result" {
			readResult(r, block)
			continue
		}
		blocks = append(blocks, readBlock(block))
	}
	r.Content(message.RoleUser, blocks)
}

func readResult(r *plan.Reading, block *value.Map) {
	var blocks []plan.Block
	for _, inner := range content(block, "content") {
		blocks = append(blocks, readBlock(inner))
	}
	var said any = r.List(blocks)
	if len(blocks) == 0 || (len(blocks) == 1 && blocks[0].Plain()) {
		said = plan.JoinText(blocks)
	}
	failed := block.At("is_error") == true
	payload := value.New().Set("success", !failed)
	if failed {
		payload.Set("error", plan.JoinText(blocks))
	}
	r.Result(plan.Str(block, "tool_use_id"), "", said, payload,
		plan.Rest(block, "type", "tool_use_id", "content", "is_error"))
}

func readBlock(m *value.Map) plan.Block {
	from := plan.Map(m, "source")
	switch plan.Str(m, "type") {
	case "text":
		return plan.Block{Text: plan.Str(m, "text"), Extra: plan.Rest(m, "type", "text")}
	case "image":
		if found, ok := readSource(from); ok {
			return plan.Block{Kind: plan.Image, Media: found, Extra: plan.Rest(m, "type", "source")}
		}
	case "document":
		if found, ok := readSource(from); ok {
			found.Filename = plan.Str(m, "title")
			return plan.Block{Kind: plan.File, Media: found, Extra: plan.Rest(m, "type", "source", "title")}
		}
	}
	return plan.Block{Kind: plan.Verbatim, Raw: m}
}

func readSource(s *value.Map) (plan.Media, bool) {
	switch plan.Str(s, "type") {
	case "base64":
		return plan.Media{MIME: plan.Str(s, "media_type"), Data: plan.Str(s, "data")}, true
	case "text":
		return plan.Media{
			MIME: plan.Str(s, "media_type"), Data: base64.StdEncoding.EncodeToString([]byte(plan.Str(s, "data"))),
		}, true
	case "url":
		return plan.Media{URL: plan.Str(s, "url")}, true
	case "file":
		return plan.Media{ID: plan.Str(s, "file_id")}, true
	}
	return plan.Media{}, false
}
