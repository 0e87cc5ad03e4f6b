package openai

import (
	"slices"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// ChatReply reads a chat completion, or the error that came instead.
func ChatReply(data []byte, o provider.ReadOptions) (provider.Reply, error) {
	return plan.Reply(data, o, chatReply)
}

func chatReply(body *value.Map, o provider.ReadOptions) provider.Reply {
	r := plan.NewReading(VendorChat, o)
	reply := provider.Reply{ResponseID: plan.Str(body, "id"), Model: plan.Str(body, "model")}
	choices := plan.Maps(body, "choices")
	for i, choice := range choices {
		if i > 0 {
			r.Notes.Add(-1, provider.Dropped, provider.NoteChoices, "only the first of %d answers is read", len(choices))
			break
		}
		readChat(r, plan.Map(choice, "message"))
		reply.FinishRaw = plan.Str(choice, "finish_reason")
		reply.Finish = chatFinish(reply.FinishRaw)
	}
	reply.Messages = r.Reply()
	if reply.Finish == provider.FinishStop && refused(reply.Messages) {
		reply.Finish = provider.FinishRefusal
	}
	if u := plan.Map(body, "usage"); u != nil {
		reply.Usage = &provider.Usage{
			Prompt: plan.Count(u, "prompt_tokens"), Completion: plan.Count(u, "completion_tokens"),
			Total: plan.Count(u, "total_tokens"), Raw: u,
		}
	}
	if e := plan.Map(body, "error"); e != nil {
		reply.Fail(failure(e), e)
	}
	reply.Notes = r.Notes
	return reply
}

func refused(messages []message.Envelope) bool {
	return slices.ContainsFunc(messages, func(e message.Envelope) bool { return e.Metadata.At("refusal") == true })
}

func chatFinish(raw string) provider.Finish {
	switch raw {
	case "":
		return provider.FinishNone
	case "stop":
		return provider.FinishStop
	case "length":
		return provider.FinishLength
	case "tool_calls", "function_call":
		return provider.FinishToolCalls
	case "content_filter":
		return provider.FinishFilter
	}
	return provider.FinishOther
}

// ChatHistory reads the messages of a request back.
func ChatHistory(body *value.Map, o provider.ReadOptions) provider.History {
	r := plan.NewReading(VendorChat, o)
	for _, m := range plan.Maps(body, "messages") {
		readChat(r, m)
	}
	return provider.History{Messages: r.Messages(), Notes: r.Notes}
}

func readChat(r *plan.Reading, m *value.Map) {
	role := plan.Str(m, "role")
	switch role {
	case "tool", "function":
		blocks := chatParts(m.At("content"))
		r.Result(plan.Str(m, "tool_call_id"), plan.Str(m, "name"), plan.JoinText(blocks), nil, nil)
	case "assistant", "":
		readChatAnswer(r, m)
	default:
		start := r.Next()
		r.Content(role, chatParts(m.At("content")))
		r.Name(start, plan.Str(m, "name"))
	}
}

// reasoningKey is the field in which servers of this interface put reasoning.
const reasoningKey = "reasoning_content"

func readChatAnswer(r *plan.Reading, m *value.Map) {
	rest := plan.Rest(m, "role", "content", "refusal", "tool_calls", "function_call", reasoningKey)
	for _, key := range rest.Keys() {
		// Empty values are dropped: not every server accepts them back.
		if value.IsContainer(rest.At(key)) && value.Len(rest.At(key)) == 0 {
			rest.Delete(key)
		}
	}
	r.Keep(messageKey, rest)
	r.Reason(plan.Str(m, reasoningKey))
	text, refusal := chatSaid(r, m)
	switch {
	case text != "" && refusal != "":
		r.Add(message.Envelope{
			Type: message.TypeMultimodalPart, Role: message.RoleAssistant,
			Content:  r.List([]plan.Block{{Text: text}, {Kind: plan.Refusal, Text: refusal}}),
			Metadata: value.New().Set("refusal", true),
		}, nil)
	case text != "":
		r.Text(message.RoleAssistant, text, nil)
	case refusal != "":
		r.Refusal(refusal, nil)
	}
	for _, call := range plan.Maps(m, "tool_calls") {
		if custom := plan.Map(call, "custom"); custom != nil && plan.Map(call, "function") == nil {
			// Its input is any text, so the whole call is kept to be returned.
			r.Call(plan.Str(call, "id"), plan.Str(custom, "name"), value.New(), plan.Str(custom, "input"), plan.Rest(call, "id", "index"))
			continue
		}
		readChatCall(r, plan.Str(call, "id"), plan.Map(call, "function"), plan.Rest(call, "id", "type", "function", "index"))
	}
	if function := plan.Map(m, "function_call"); function != nil {
		readChatCall(r, "", function, nil)
	}
	r.EndTurn()
}

// chatSaid returns the text and the refusal of an assistant's message; either
// may be given in parts.
func chatSaid(r *plan.Reading, m *value.Map) (text, refusal string) {
	var texts, refusals []plan.Block
	for _, b := range chatParts(m.At("content")) {
		switch b.Kind {
		case plan.Text:
			texts = append(texts, b)
		case plan.Refusal:
			refusals = append(refusals, b)
		default:
			r.Notes.Add(r.Next(), provider.Dropped, provider.NoteBlock, "a part of the assistant's message is not text")
		}
	}
	if told := plan.Str(m, "refusal"); told != "" {
		refusals = append(refusals, plan.Block{Kind: plan.Refusal, Text: told})
	}
	return plan.JoinText(texts), plan.JoinText(refusals)
}

func readChatCall(r *plan.Reading, id string, function, extra *value.Map) {
	text := plan.Str(function, "arguments")
	arguments, ok := provider.ParseArguments(text)
	if ok {
		text = ""
	}
	r.Call(id, plan.Str(function, "name"), arguments, text, extra)
}

func chatParts(content any) []plan.Block {
	if text, ok := content.(string); ok {
		if text == "" {
			return nil
		}
		return []plan.Block{{Text: text}}
	}
	list, _ := content.([]any)
	var blocks []plan.Block
	for _, item := range list {
		m, _ := item.(*value.Map)
		if b, ok := chatPart(m); ok {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

func chatPart(m *value.Map) (plan.Block, bool) {
	kind := plan.Str(m, "type")
	inner := plan.Map(m, kind)
	b := plan.Block{Extra: plan.Rest(m, "type", kind)}
	switch kind {
	case "text":
		b.Text = plan.Str(m, "text")
		return b, b.Text != ""
	case "image_url":
		b.Kind = plan.Image
		b.Media = plan.Linked(plan.Str(inner, "url"))
		b.Media.Detail = plan.Str(inner, "detail")
	case "input_audio":
		b.Kind = plan.Audio
		b.Media = plan.Sound(plan.Str(inner, "data"), plan.Str(inner, "format"))
	case "file":
		b.Kind = plan.File
		b.Media = plan.MediaOf(plan.Str(inner, "file_data"))
		b.Media.ID, b.Media.Filename = plan.Str(inner, "file_id"), plan.Str(inner, "filename")
	case "refusal":
		b.Kind, b.Text = plan.Refusal, plan.Str(m, "refusal")
	default:
		return plan.Block{Kind: plan.Verbatim, Raw: m}, m != nil
	}
	return b, true
}
