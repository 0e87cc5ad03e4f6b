package gemini

import (
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// Reply reads a response, or the error that came instead.
func Reply(data []byte, o provider.ReadOptions) (provider.Reply, error) {
	return plan.Reply(data, o, reply)
}

func reply(body *value.Map, o provider.ReadOptions) provider.Reply {
	r := plan.NewReading(Vendor, o)
	made := provider.Reply{ResponseID: plan.Str(body, "responseId"), Model: plan.Str(body, "modelVersion")}
	candidates := plan.Maps(body, "candidates")
	for i, candidate := range candidates {
		if i > 0 {
			r.Notes.Add(-1, provider.Dropped, provider.NoteChoices, "only the first of %d answers is read", len(candidates))
			break
		}
		readModel(r, plan.Maps(plan.Map(candidate, "content"), "parts"))
		made.FinishRaw = plan.Str(candidate, "finishReason")
	}
	made.Messages = r.Reply()
	made.Finish = finish(made.FinishRaw, made.Messages)
	if blocked := plan.Map(body, "promptFeedback"); plan.Str(blocked, "blockReason") != "" {
		made.FinishRaw = plan.Str(blocked, "blockReason")
		made.Fail(&provider.Failure{Provider: Vendor, Code: made.FinishRaw, Message: "the prompt was blocked"}, blocked)
		made.Finish = provider.FinishFilter
	}
	if u := plan.Map(body, "usageMetadata"); u != nil {
		made.Usage = &provider.Usage{
			Prompt:     plan.Count(u, "promptTokenCount"),
			Completion: plan.Count(u, "candidatesTokenCount") + plan.Count(u, "thoughtsTokenCount"),
			Total:      plan.Count(u, "totalTokenCount"), Raw: u,
		}
	}
	if e := plan.Map(body, "error"); e != nil {
		made.Fail(failure(e), e)
	}
	made.Notes = r.Notes
	return made
}

// finish translates the reason; calls end with STOP too.
func finish(raw string, messages []message.Envelope) provider.Finish {
	switch raw {
	case "", "FINISH_REASON_UNSPECIFIED":
		return provider.FinishNone
	case "STOP":
		for _, e := range messages {
			if e.Type == message.TypeToolCall {
				return provider.FinishToolCalls
			}
		}
		return provider.FinishStop
	case "MAX_TOKENS":
		return provider.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return provider.FinishFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return provider.FinishError
	}
	return provider.FinishOther
}

func failure(e *value.Map) *provider.Failure {
	f := &provider.Failure{Provider: Vendor, Code: plan.Str(e, "status"), Message: plan.Str(e, "message")}
	if f.Code == "" {
		f.Code = value.Text(e.At("code"))
	}
	switch f.Code {
	case "RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED":
		f.Retryable = true
	}
	return f
}

// History reads a request back: the system's text, then the conversation.
func History(body *value.Map, o provider.ReadOptions) provider.History {
	r := plan.NewReading(Vendor, o)
	r.Merges = true
	for _, part := range plan.Maps(plan.Map(body, "systemInstruction"), "parts") {
		r.Text(message.RoleSystem, plan.Str(part, "text"), plan.Rest(part, "text"))
	}
	for _, content := range plan.Maps(body, "contents") {
		parts := plan.Maps(content, "parts")
		if plan.Str(content, "role") == roleModel {
			readModel(r, parts)
			r.EndTurn()
			continue
		}
		readUser(r, parts)
	}
	return provider.History{Messages: r.Messages(), Notes: r.Notes}
}

func readModel(r *plan.Reading, parts []*value.Map) {
	for _, part := range parts {
		if part.At("thought") == true {
			r.Reason(plan.Str(part, "text"))
			r.Opaque(part)
			continue
		}
		if call := plan.Map(part, "functionCall"); call != nil {
			r.Call(plan.Str(call, "id"), plan.Str(call, "name"), value.MapOrEmpty(call.At("args")), "",
				plan.Rest(part, "functionCall"))
			continue
		}
		b := readPart(part)
		switch {
		case b.Kind == plan.Verbatim:
			r.Opaque(part)
		case b.Kind == plan.Text && b.Text == "":
			// The last part of a stream may hold nothing but a signature.
			if b.Extra.Len() > 0 {
				r.Opaque(part)
			}
		default:
			r.Content(message.RoleAssistant, []plan.Block{b})
		}
	}
}

func readUser(r *plan.Reading, parts []*value.Map) {
	var blocks []plan.Block
	for _, part := range parts {
		if answer := plan.Map(part, "functionResponse"); answer != nil {
			readResult(r, answer, plan.Rest(part, "functionResponse"))
			continue
		}
		blocks = append(blocks, readPart(part))
	}
	r.Content(message.RoleUser, blocks)
}

func readResult(r *plan.Reading, answer, extra *value.Map) {
	response := plan.Map(answer, "response")
	if response == nil {
		response = value.New()
	}
	found := readResponse(response)
	payload := value.New().Set("success", !found.Failed)
	if found.Failed {
		payload.Set("error", found.Text)
	}
	if found.Value != nil {
		payload.Set("result", found.Value)
	}
	if plan.JSON(writeResponse(found)) != plan.JSON(response) {
		r.Keep(responseKey, response)
	}
	r.Result(plan.Str(answer, "id"), plan.Str(answer, "name"), found.Text, payload, extra)
}

// readResponse returns the value of a response: an error, a wrapped result, or
// the response itself.
func readResponse(response *value.Map) *plan.Result {
	if !wrapped(response) {
		return &plan.Result{Text: plan.JSON(response), Value: response}
	}
	if reason, failed := response.Get("error"); failed {
		return &plan.Result{Failed: true, Text: said(reason)}
	}
	result := response.At("result")
	if text, isText := result.(string); isText {
		return &plan.Result{Text: text}
	}
	return &plan.Result{Text: said(result), Value: result}
}

func said(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return plan.JSON(v)
}

func readPart(m *value.Map) plan.Block {
	switch {
	case m.Has("text"):
		return plan.Block{Text: plan.Str(m, "text"), Extra: plan.Rest(m, "text", "thought")}
	case m.Has("inlineData"):
		from := plan.Map(m, "inlineData")
		media := plan.Media{MIME: plan.Str(from, "mimeType"), Data: plan.Str(from, "data"), Filename: plan.Str(from, "displayName")}
		return plan.Block{Kind: kindOf(media), Media: media, Extra: plan.Rest(m, "inlineData", "thought")}
	case m.Has("fileData"):
		from := plan.Map(m, "fileData")
		media := plan.Media{MIME: plan.Str(from, "mimeType"), URL: plan.Str(from, "fileUri"), Filename: plan.Str(from, "displayName")}
		return plan.Block{Kind: kindOf(media), Media: media, Extra: plan.Rest(m, "fileData", "thought")}
	}
	return plan.Block{Kind: plan.Verbatim, Raw: m}
}

func kindOf(m plan.Media) plan.Kind {
	switch major, _, _ := strings.Cut(m.MIME, "/"); {
	case major == "image":
		return plan.Image
	case major == "audio" && m.Data != "":
		return plan.Audio
	}
	return plan.File
}
