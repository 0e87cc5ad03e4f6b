package result

import "github.com/parley-hub/parley/message/value"

const observabilityVersion = 1

// Outcomes of a tool call.
const (
	callPending   = "pending"
	callRejected  = "rejected"
	callSucceeded = "succeeded"
	callFailed    = "failed"
)

// observe describes which tools were called and how the calls ended: names of
// arguments and shapes of results, never their values. Events and results were
// checked.
func observe(events, results any) *value.Map {
	o := observer{open: map[string][]*value.Map{}, results: map[string][]*value.Map{}}
	executed, _ := value.Values(results)
	for _, r := range executed {
		m := value.MapOrEmpty(r)
		if id, ok := m.At("tool_call_id").(string); ok {
			o.results[id] = append(o.results[id], m)
		}
	}
	list, _ := value.Values(events)
	for _, e := range list {
		event := value.MapOrEmpty(e)
		id, _ := event.At("tool_call_id").(string)
		switch event.At("type") {
		case "tool_call":
			o.call(id, event)
		case "tool_result":
			o.result(id, event)
		}
	}
	return value.New().Set("version", value.Int(observabilityVersion)).Set("calls", o.calls)
}

// observer walks events; open calls and unused results wait under their id.
type observer struct {
	calls   []any
	open    map[string][]*value.Map
	results map[string][]*value.Map
}

func (o *observer) call(id string, event *value.Map) {
	keys := []any{}
	parameters := value.MapOrEmpty(value.MapOrEmpty(event.At("metadata")).At("parameters"))
	for key := range parameters.All() {
		keys = append(keys, key)
	}
	call := value.New().
		Set("sequence", value.Int(len(o.calls)+1)).
		Set("turn", event.At("turn_count")).
		Set("tool_call_id", id).
		Set("tool_name", event.At("tool_name")).
		Set("status", callPending).
		Set("arguments", value.New().
			Set("keys", keys).
			Set("count", value.Int(len(keys))).
			Set("redacted", true))
	o.calls = append(o.calls, call)
	o.open[id] = append(o.open[id], call)
}

func (o *observer) result(id string, event *value.Map) {
	if len(o.open[id]) == 0 {
		return
	}
	call := o.open[id][0]
	o.open[id] = o.open[id][1:]

	metadata := value.MapOrEmpty(event.At("metadata"))
	rejected := metadata.At("rejected") == true
	succeeded := metadata.At("success") == true
	switch {
	case rejected:
		call.Set("status", callRejected)
	case succeeded:
		call.Set("status", callSucceeded)
	default:
		call.Set("status", callFailed)
	}
	if len(o.results[id]) > 0 {
		outcome := value.MapOrEmpty(o.results[id][0].At("result"))
		o.results[id] = o.results[id][1:]
		if name, ok := value.NonEmptyString(outcome.At("tool_name")); ok {
			call.Set("tool_name", name)
		}
		if v, ok := outcome.Get("result"); ok && succeeded {
			call.Set("result", shape(v))
		}
	}
	if succeeded {
		return
	}
	if rejected {
		call.Set("error", safeError("agents_api_tool_call_rejected", "Tool call was rejected."))
		return
	}
	call.Set("error", safeError("agents_api_tool_execution_failed", "Tool execution failed."))
}

func safeError(code, text string) *value.Map {
	return value.New().Set("code", code).Set("message", text)
}

// shape returns the kind and size of a result.
func shape(v any) *value.Map {
	s := value.New()
	switch v := v.(type) {
	case []any, *value.Map:
		kind := "object"
		if value.IsList(v) {
			kind = "array"
		}
		return s.Set("type", kind).Set("count", value.Int(value.Len(v)))
	case string:
		return s.Set("type", "string").Set("size", value.Int(len(v)))
	case bool:
		return s.Set("type", "boolean")
	case value.Number:
		if _, ok := v.Int64(); ok {
			return s.Set("type", "integer")
		}
		return s.Set("type", "double")
	case nil:
		return s.Set("type", "null")
	default:
		return s.Set("type", "object")
	}
}
