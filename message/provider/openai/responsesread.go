package openai

import (
	"cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// ResponsesReply reads a response, or the error that came instead.
func ResponsesReply(data []byte, o provider.ReadOptions) (provider.Reply, error) {
	return plan.Reply(data, o, responsesReply)
}

func responsesReply(body *value.Map, o provider.ReadOptions) provider.Reply {
	r := plan.NewReading(Vendor, o)
	for _, item := range plan.Maps(body, "output") {
		readItem(r, item)
	}
	reply := provider.Reply{
		ResponseID: plan.Str(body, "id"), Model: plan.Str(body, "model"), FinishRaw: plan.Str(body, "status"),
	}
	reply.Messages = r.Reply()
	reply.Finish = responsesFinish(body, reply.Messages)
	if e := plan.Map(body, "error"); e != nil {
		reply.Fail(failure(e), e)
	}
	if u := plan.Map(body, "usage"); u != nil {
		reply.Usage = &provider.Usage{
			Prompt: plan.Count(u, "input_tokens"), Completion: plan.Count(u, "output_tokens"),
			Total: plan.Count(u, "total_tokens"), Raw: u,
		}
	}
	reply.Notes = r.Notes
	return reply
}

func responsesFinish(body *value.Map, messages []message.Envelope) provider.Finish {
	switch plan.Str(body, "status") {
	case "", "in_progress", "queued":
		return provider.FinishNone
	case "completed":
		for _, e := range messages {
			if e.Type == message.TypeToolCall {
				return provider.FinishToolCalls
			}
		}
		if refused(messages) {
			return provider.FinishRefusal
		}
		return provider.FinishStop
	case "incomplete":
		switch plan.Str(plan.Map(body, "incomplete_details"), "reason") {
		case "max_output_tokens":
			return provider.FinishLength
		case "content_filter":
			return provider.FinishFilter
		}
	case "failed":
		return provider.FinishError
	}
	return provider.FinishOther
}

// ResponsesHistory reads the input items of a request back.
func ResponsesHistory(body *value.Map, o provider.ReadOptions) provider.History {
	r := plan.NewReading(Vendor, o)
	if text := plan.Str(body, "instructions"); text != "" {
		r.Text(message.RoleSystem, text, nil)
	}
	if text := plan.Str(body, "input"); text != "" {
		r.Text(message.RoleUser, text, nil)
	}
	for _, item := range plan.Maps(body, "input") {
		readItem(r, item)
	}
	return provider.History{Messages: r.Messages(), Notes: r.Notes}
}

func readItem(r *plan.Reading, item *value.Map) {
	kind := plan.Str(item, "type")
	if kind == "" && item.Has("role") {
		kind = "message"
	}
	switch kind {
	case "message":
		readMessageItem(r, item)
	case "function_call":
		text := plan.Str(item, "arguments")
		arguments, ok := provider.ParseArguments(text)
		if ok {
			text = ""
		}
		r.Call(plan.Str(item, "call_id"), plan.Str(item, "name"), arguments, text,
			plan.Rest(item, "type", "call_id", "name", "arguments"))
	case "function_call_output":
		r.EndTurn()
		content := item.At("output")
		if list, ok := content.([]any); ok {
			content = r.List(inputParts(list))
		}
		r.Result(plan.Str(item, "call_id"), "", content, nil, plan.Rest(item, "type", "call_id", "output"))
	case "reasoning":
		for _, key := range []string{"summary", "content"} {
			for _, part := range plan.Maps(item, key) {
				r.Reason(plan.Str(part, "text"))
			}
		}
		r.Opaque(item)
	default:
		r.Opaque(item)
	}
}

func readMessageItem(r *plan.Reading, item *value.Map) {
	// As in chat completions, who is not named is the assistant.
	role := cmp.Or(plan.Str(item, "role"), message.RoleAssistant)
	content := item.At("content")
	if text, ok := content.(string); ok {
		content = []any{value.New().Set("type", "input_text").Set("text", text)}
	}
	list, _ := content.([]any)
	if role != message.RoleAssistant {
		r.EndTurn()
		r.Content(role, inputParts(list))
		return
	}
	rest := plan.Rest(item, "type", "role", "content")
	if !rest.Has("id") && len(list) > 1 {
		r.Content(role, outputParts(list)) // without an id its parts could not be reassembled
		return
	}
	for _, part := range list {
		m, _ := part.(*value.Map)
		if m == nil {
			continue
		}
		r.Keep(itemKey, rest)
		switch plan.Str(m, "type") {
		case "output_text", "input_text", "text":
			extra := plan.Rest(m, "type", "text")
			if extra != nil && value.Len(extra.At("annotations")) == 0 {
				extra = plan.Rest(extra, "annotations")
			}
			r.Text(message.RoleAssistant, plan.Str(m, "text"), extra)
		case "refusal":
			r.Refusal(plan.Str(m, "refusal"), nil)
		default:
			r.Content(message.RoleAssistant, []plan.Block{{Kind: plan.Verbatim, Raw: m}})
		}
	}
}

func outputParts(list []any) []plan.Block {
	blocks := inputParts(list)
	for i, b := range blocks {
		if b.Kind == plan.Verbatim && plan.Str(b.Raw, "type") == "refusal" {
			blocks[i] = plan.Block{Kind: plan.Refusal, Text: plan.Str(b.Raw, "refusal")}
		}
		if value.Len(b.Extra.At("annotations")) == 0 {
			blocks[i].Extra = plan.Rest(b.Extra, "annotations")
		}
	}
	return blocks
}

func inputParts(list []any) []plan.Block {
	var blocks []plan.Block
	for _, item := range list {
		m, _ := item.(*value.Map)
		if b, ok := inputPart(m); ok {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

func inputPart(m *value.Map) (plan.Block, bool) {
	var b plan.Block
	switch plan.Str(m, "type") {
	case "input_text", "output_text", "text":
		b.Text, b.Extra = plan.Str(m, "text"), plan.Rest(m, "type", "text")
		return b, b.Text != ""
	case "input_image":
		b.Kind = plan.Image
		b.Media = plan.Linked(plan.Str(m, "image_url"))
		b.Media.ID = plan.Str(m, "file_id")
		if detail := plan.Str(m, "detail"); detail != defaultDetail {
			b.Media.Detail = detail
		}
		b.Extra = plan.Rest(m, "type", "image_url", "file_id", "detail")
	case "input_audio":
		b.Kind = plan.Audio
		sound := plan.Map(m, "input_audio")
		b.Media = plan.Sound(plan.Str(sound, "data"), plan.Str(sound, "format"))
		b.Extra = plan.Rest(m, "type", "input_audio")
	case "input_file":
		b.Kind = plan.File
		b.Media = plan.MediaOf(plan.Str(m, "file_data"))
		b.Media.ID, b.Media.URL, b.Media.Filename = plan.Str(m, "file_id"), plan.Str(m, "file_url"), plan.Str(m, "filename")
		b.Extra = plan.Rest(m, "type", "file_data", "file_id", "file_url", "filename")
	default:
		return plan.Block{Kind: plan.Verbatim, Raw: m}, m != nil
	}
	return b, true
}
