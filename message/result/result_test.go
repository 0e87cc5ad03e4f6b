package result_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/result"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

// normalized returns a result's JSON, or the error's text.
func normalized(t testing.TB, text string) string {
	t.Helper()
	m, err := result.Normalize(valuetest.Decode(t, text))
	if err != nil {
		return err.Error()
	}
	return valuetest.Write(m)
}

const (
	naturalOutcome = `{"schema":"agents-api.run-outcome","version":1,"status":"completed","completed":true,"stop_reason":"natural","retryable":false}`
	noCalls        = `{"version":1,"calls":[]}`
	code           = "invalid_agent_conversation_result: "
)

func envelope(role, content string) string {
	return `{"schema":"agents-api.message","version":1,"type":"text","role":"` + role + `","content":"` + content + `","payload":{},"metadata":{}}`
}

func TestStatements(t *testing.T) {
	t.Parallel()
	is := func(statement, input, want string) {
		t.Helper()
		spec.Check(t, statement, func(t *spec.T) { t.Equal(normalized(t, input), want) })
	}
	minimal := func(messages string) string {
		return `{"messages":` + messages + `,"schema":"agents-api.conversation-result","version":1,"tool_execution_results":[],"tool_audit_events":[],"tool_events":[],` +
			`"tool_observability":` + noCalls + `,"run_outcome":` + naturalOutcome + `}`
	}
	is("agent-message#73: by index", `{"messages":[{"role":"user"},{"role":"","content":"a"}]}`, code+"messages[1] invalid_ai_message_envelope: role must be a non-empty string")
	is("agent-message#73: by key", `{"messages":{"x":{"role":"user"},"y":{"content":5}}}`, code+"messages[y] invalid_ai_message_envelope: content must be a string or array")
	is("agent-message#73: what is no container", `{"messages":[{"role":"user"},3]}`, code+"messages[1] must be an array")
	spec.Check(t, "agent-message#73: the message's own error is inside", func(t *spec.T) {
		_, err := result.Normalize(valuetest.Decode(t, `{"messages":[{"version":2,"type":"text","payload":[]}]}`))
		t.ErrorIs(err, message.ErrVersion)
		var refusal *result.Error
		t.True(errors.As(err, &refusal), "it is an *Error")
		t.Equal(refusal.Path, "messages[0]")
	})
	for _, version := range []string{`"1"`, `true`, `null`, `2`, `1.0`, `[1]`} {
		is("agent-message#74: refused version "+version, `{"version":`+version+`,"messages":[]}`, code+"version must be 1")
	}
	is("agent-message#74: 1 passes", `{"messages":[],"version":1}`,
		`{"messages":[],"version":1,"schema":"agents-api.conversation-result","tool_execution_results":[],"tool_audit_events":[],"tool_events":[],"tool_observability":`+noCalls+`,"run_outcome":`+naturalOutcome+`}`)
	is("agent-message#75: a null status fails", `{"messages":[],"status":null}`, code+"status must be a string when present")
	is("agent-message#76: tool_observability and run_outcome are recomputed", `{"messages":[],"tool_observability":{"version":9,"calls":[1]},"run_outcome":"junk"}`,
		`{"messages":[],"tool_observability":`+noCalls+`,"run_outcome":`+naturalOutcome+`,"schema":"agents-api.conversation-result","version":1,"tool_execution_results":[],"tool_audit_events":[],"tool_events":[]}`)
	is("agent-message#76: an outcome's own words survive", `{"messages":[],"run_outcome":{"status":"stalled","stop_reason":" Loop "},"completed":true}`,
		`{"messages":[],"run_outcome":{"schema":"agents-api.run-outcome","version":1,"status":"stalled","completed":false,"stop_reason":"loop","retryable":false},"completed":true,`+
			`"schema":"agents-api.conversation-result","version":1,"tool_execution_results":[],"tool_audit_events":[],"tool_events":[],"tool_observability":`+noCalls+`}`)
	is("agent-message#76: and nothing else of it", `{"messages":[],"run_outcome":{"schema":"own","version":7,"status":"odd","completed":true,"own":1},"status":"stalled"}`,
		`{"messages":[],"run_outcome":{"schema":"agents-api.run-outcome","version":1,"status":"stalled","completed":false,"stop_reason":"stalled","retryable":false},"status":"stalled",`+
			`"schema":"agents-api.conversation-result","version":1,"tool_execution_results":[],"tool_audit_events":[],"tool_events":[],"tool_observability":`+noCalls+`}`)
	for _, empty := range []string{`{}`, `[]`} {
		spec.Check(t, "agent-message#77: shape of empty "+empty, func(t *spec.T) {
			t.Equal(shapeOf(t, empty), `{"type":"array","count":0}`)
		})
	}
	spec.Check(t, "agent-message#78: outcome incomplete gives run-control running", func(t *spec.T) {
		t.Equal(result.ControlStatus(valuetest.Decode(t, `{"completed":false}`)), "running")
		t.Equal(result.ControlStatus(valuetest.Decode(t, `{"run_outcome":{"status":"incomplete"}}`)), "running")
	})
	for _, status := range []string{"completed", "failed", "runtime_tool_pending", "approval_required", "budget_exceeded", "stalled", "cancelled", "interrupted"} {
		spec.Check(t, "agent-message#78: but "+status+" stays", func(t *spec.T) {
			t.Equal(result.ControlStatus(map[string]any{"run_outcome": map[string]any{"status": status}}), status)
		})
	}
	for _, c := range []struct{ clause, raw, res, want string }{
		{"by the result's status", `null`, `{"status":"failed"}`, `"provider_error","retryable":true}`},
		{"by the outcome's status", `{"status":"failed"}`, `{}`, `"provider_error","retryable":true}`},
		{"by a failure", `{}`, `{"failure":{"type":"t"}}`, `"provider_error","retryable":true,"failure":{"type":"t"},"provider_error":{"type":"t"}}`},
		{"a blank reason is none", `{"stop_reason":" "}`, `{"status":"failed"}`, `"provider_error","retryable":true}`},
		{"a raw reason stands", `{"stop_reason":"quota"}`, `{"status":"failed"}`, `"quota","retryable":true}`},
	} {
		spec.Check(t, "agent-message#79: failed "+c.clause, func(t *spec.T) {
			t.Equal(valuetest.Write(result.Outcome(valuetest.Decode(t, c.raw), valuetest.Decode(t, c.res))),
				`{"schema":"agents-api.run-outcome","version":1,"status":"failed","completed":false,"stop_reason":`+c.want)
		})
	}
	for _, unknown := range []string{`{"status":"exploded"}`, `{}`, `{"status":5}`, `{"status":["failed"]}`, `{"status":"\u00a0failed"}`} {
		spec.Check(t, "agent-message#80: running for "+unknown, func(t *spec.T) {
			t.Equal(result.Run(valuetest.Decode(t, unknown)).At("status"), any("running"))
		})
	}
	for _, status := range []string{
		"pending", "queued", "running", "cancelling", "cancelled", "succeeded", "failed", "skipped", "completed", "incomplete",
		"approval_required", "runtime_tool_pending", "budget_exceeded", "stalled", "interrupted",
	} {
		spec.Check(t, "agent-message#80: but "+status+" stays", func(t *spec.T) {
			t.Equal(result.Run(map[string]any{"status": " " + strings.ToUpper(status) + "\n"}).At("status"), any(status))
		})
	}

	spec.Check(t, "agent-message#90: in a timestamp", func(t *spec.T) {
		t.Equal(valuetest.Write(result.Run(valuetest.Decode(t, `{"started_at":" \u00a0 "}`)).At("timestamps")), "{\"started_at\":\"\u00a0\"}")
	})

	row := `{"role":"assistant","content":"row"}`
	env := envelope("assistant", "env")
	is("seed-004#48: plain rows", `{"messages":[`+row+`]}`, minimal(`[`+envelope("assistant", "row")+`]`))
	is("seed-004#48: messages as envelopes", `{"messages":[`+env+`]}`, minimal(`[`+env+`]`))
	is("seed-004#48: rows and envelopes mixed", `{"messages":[`+env+`,`+row+`]}`, minimal(`[`+env+`,`+envelope("assistant", "row")+`]`))
	is("seed-004#49: every message of a result becomes canonical", `{"messages":[`+row+`,{"version":1,"type":"text","data":[],"role":"user","content":"d"}]}`, minimal(`[`+envelope("assistant", "row")+`,`+envelope("user", "d")+`]`))
	spec.Check(t, "seed-004#49: as envelopes", func(t *spec.T) {
		m, err := result.Normalize(valuetest.Decode(t, `{"messages":{"a":`+row+`}}`))
		t.NoError(err)
		t.Equal(valuetest.Write(m.At("messages")), `{"a":`+envelope("assistant", "row")+`}`)
		messages, err := result.Messages(m)
		t.NoError(err)
		t.Equal(len(messages), 1)
		t.Equal(messages[0].Content, any("row"))
	})
	is("seed-004#50: a refused result names the message's position", `{"messages":[{},{},{"role":7}]}`, code+"messages[2] invalid_ai_message_envelope: role must be a non-empty string")
}

// shapeOf returns the shape of a tool's result, as observability reports it.
func shapeOf(t testing.TB, res string) string {
	t.Helper()
	m, err := result.Normalize(valuetest.Decode(t, `{"messages":[],"tool_events":[{"type":"tool_call","tool_name":"a","tool_call_id":"1","turn_count":1},`+
		`{"type":"tool_result","tool_name":"a","tool_call_id":"1","turn_count":1,"metadata":{"success":true}}],`+
		`"tool_execution_results":[{"tool_name":"a","tool_call_id":"1","result":{"result":`+res+`},"parameters":[],"turn_count":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	calls, _ := value.Values(m.At("tool_observability").(*value.Map).At("calls"))
	return valuetest.Write(calls[0].(*value.Map).At("result"))
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for res, want := range map[string]string{
		`[1,2]`: `{"type":"array","count":2}`, `{"a":1}`: `{"type":"object","count":1}`, `{"0":"a","1":"b"}`: `{"type":"array","count":2}`,
		`"é"`: `{"type":"string","size":2}`, `5`: `{"type":"integer"}`, `5.0`: `{"type":"double"}`, `9223372036854775808`: `{"type":"double"}`,
		`true`: `{"type":"boolean"}`, `null`: `{"type":"null"}`,
	} {
		if got := shapeOf(t, res); got != want {
			t.Errorf("%s: %s", res, got)
		}
	}
}

// The checks, in the order in which they are made: each row is broken in one
// more place than the row after it, so that the first failure names the place.
func TestChecksAndTheirOrder(t *testing.T) {
	t.Parallel()
	run := `{"tool_name":"p","result":{},"parameters":[],"turn_count":1}`
	for _, c := range []struct{ input, want string }{
		{`{"schema":"x","version":2}`, "schema must be agents-api.conversation-result"},
		{`{"schema":null,"messages":[]}`, "schema must be agents-api.conversation-result"},
		{`{"version":2}`, "version must be 1"},
		{`{}`, "messages must be an array"},
		{`[]`, "messages must be an array"},
		{`{"messages":"x"}`, "messages must be an array"},
		{`{"messages":null}`, "messages must be an array"},
		{`{"messages":[3],"tool_execution_results":1}`, "messages[0] must be an array"},
		{`{"messages":{"k":3}}`, "messages[k] must be an array"},
		{`{"messages":[],"tool_execution_results":1,"tool_audit_events":1,"tool_events":1}`, "tool_execution_results must be an array"},
		{`{"messages":[],"tool_execution_results":null}`, "tool_execution_results must be an array"},
		{`{"messages":[],"tool_execution_results":[1],"tool_audit_events":1,"tool_events":1}`, "tool_audit_events must be an array"},
		{`{"messages":[],"tool_execution_results":[1],"tool_audit_events":[1],"tool_events":1}`, "tool_events must be an array"},
		{`{"messages":[],"tool_execution_results":[1],"tool_audit_events":[1],"tool_events":[1]}`, "tool_execution_results[0] must be an array"},
		{`{"messages":[],"tool_execution_results":{"k":{}}}`, "tool_execution_results[k].tool_name must be a non-empty string"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":""}]}`, "tool_execution_results[0].tool_name must be a non-empty string"},
		{`{"messages":[],"tool_execution_results":[` + run + `,{"tool_name":"p"}]}`, "tool_execution_results[1].result must be an array"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[]}]}`, "tool_execution_results[0].parameters must be an array"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":"x"}]}`, "tool_execution_results[0].parameters must be an array"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":[],"is_handler_tool":1,"runtime":1}]}`, "tool_execution_results[0].is_handler_tool must be a boolean when present"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":[],"is_handler_tool":null}]}`, "tool_execution_results[0].is_handler_tool must be a boolean when present"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":[],"is_handler_tool":false,"runtime":"r"}]}`, "tool_execution_results[0].runtime must be an array when present"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":[],"runtime":{}}]}`, "tool_execution_results[0].turn_count must be an integer"},
		{`{"messages":[],"tool_execution_results":[{"tool_name":"p","result":[],"parameters":[],"turn_count":1.0}],"tool_audit_events":[1]}`, "tool_execution_results[0].turn_count must be an integer"},
		{`{"messages":[],"tool_audit_events":[1],"tool_events":[1]}`, "tool_audit_events[0] must be an array"},
		{`{"messages":[],"tool_audit_events":[{}]}`, "tool_audit_events[0].type must be a non-empty string"},
		{`{"messages":[],"tool_audit_events":[{"type":"t"}]}`, "tool_audit_events[0].tool_name must be a non-empty string"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n"}]}`, "tool_audit_events[0].tool_call_id must be a non-empty string"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c"}]}`, "tool_audit_events[0].parameters_sha256 must be a non-empty string"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p"}]}`, "tool_audit_events[0].result_sha256 must be a non-empty string"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p","result_sha256":"r"}]}`, "tool_audit_events[0].schema_version must be an integer"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p","result_sha256":"r","schema_version":1}]}`, "tool_audit_events[0].turn_count must be an integer"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p","result_sha256":"r","schema_version":1,"turn_count":1,"error_type":1}]}`, "tool_audit_events[0].success must be a boolean"},
		{`{"messages":[],"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p","result_sha256":"r","schema_version":1,"turn_count":1,"success":false,"error_type":null}]}`, "tool_audit_events[0].error_type must be a string when present"},
		{`{"messages":[],"tool_events":["x"],"status":1}`, "tool_events[0] must be an array"},
		{`{"messages":[],"tool_events":[{}]}`, "tool_events[0].type must be a non-empty string"},
		{`{"messages":[],"tool_events":[{"type":"t"}]}`, "tool_events[0].tool_name must be a non-empty string"},
		{`{"messages":[],"tool_events":[{"type":"t","tool_name":"n"}]}`, "tool_events[0].tool_call_id must be a non-empty string"},
		{`{"messages":[],"tool_events":[{"type":"t","tool_name":"n","tool_call_id":"c","status":1}]}`, "tool_events[0].turn_count must be an integer"},
		{`{"messages":[],"tool_events":[{"type":"t","tool_name":"n","tool_call_id":"c","turn_count":1,"status":1,"metadata":1}]}`, "tool_events[0].status must be a string when present"},
		{`{"messages":[],"tool_events":[{"type":"t","tool_name":"n","tool_call_id":"c","turn_count":1,"status":"","metadata":1}]}`, "tool_events[0].metadata must be an array when present"},
		{`{"messages":[],"status":1,"budget":1}`, "status must be a string when present"},
		{`{"messages":[],"budget":1,"turn_count":"1"}`, "budget must be a string when present"},
		{`{"messages":[],"turn_count":"1","final_content":1}`, "turn_count must be an integer when present"},
		{`{"messages":[],"final_content":1,"usage":1}`, "final_content must be a string when present"},
		{`{"messages":[],"usage":1,"metadata":1}`, "usage must be an array when present"},
		{`{"messages":[],"metadata":1,"request_metadata":1}`, "metadata must be an array when present"},
		{`{"messages":[],"request_metadata":1,"provider_diagnostics":1}`, "request_metadata must be an array when present"},
		{`{"messages":[],"provider_diagnostics":null,"structured_output_diagnostics":1}`, "provider_diagnostics must be an array when present"},
		{`{"messages":[],"structured_output_diagnostics":1,"completed":1}`, "structured_output_diagnostics must be an array when present"},
		{`{"messages":[],"completed":1,"failure":1}`, "completed must be a boolean when present"},
		{`{"messages":[],"failure":1,"runtime_tool_pending":1}`, "failure must be an array when present"},
		{`{"messages":[],"failure":null}`, "failure must be an array when present"},
		{`{"messages":[],"failure":{"message":"m"}}`, "failure.type must be a non-empty string"},
		{`{"messages":[],"failure":{"type":"t","message":""}}`, "failure.message must be a non-empty string"},
		{`{"messages":[],"failure":{"type":"t","message":"m","turn_count":"1"}}`, "failure.turn_count must be an integer when present"},
		{`{"messages":[],"failure":{"type":"t","message":"m","turn_count":1},"runtime_tool_pending":"x"}`, "runtime_tool_pending must be an array when present"},
	} {
		if got := normalized(t, c.input); got != code+c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.input, got, code+c.want)
		}
	}
	for _, order := range []string{"structured_output", "provider_diagnostics"} {
		m := value.New().Set("messages", []any{}).Set("structured_output", math.NaN()).Set("structured_output_diagnostics", 1)
		if order == "provider_diagnostics" {
			m.Set("provider_diagnostics", 1)
		}
		reason := map[string]string{"structured_output": " must be JSON serializable", "provider_diagnostics": " must be an array when present"}[order]
		if _, err := result.Normalize(m); err == nil || err.Error() != code+order+reason {
			t.Errorf("%v", err)
		}
	}
	full := `{"schema":"agents-api.conversation-result","version":1,"messages":[],"tool_execution_results":[{"tool_name":"p","result":{"tool_name":""},"parameters":{},"is_handler_tool":true,"runtime":[],"turn_count":1}],` +
		`"tool_audit_events":[{"type":"t","tool_name":"n","tool_call_id":"c","parameters_sha256":"p","result_sha256":"r","schema_version":1,"turn_count":1,"success":true,"error_type":""}],` +
		`"tool_events":[],"status":"x","budget":"","turn_count":3,"final_content":"","usage":[],"metadata":{},"request_metadata":{},"provider_diagnostics":{},"structured_output":null,` +
		`"structured_output_diagnostics":[],"completed":true,"runtime_tool_pending":{},"own":{"k":1.0},"tool_observability":` + noCalls + `,"run_outcome":` + naturalOutcome + `}`
	if got := normalized(t, full); got != full {
		t.Errorf("got  %s\nwant %s", got, full)
	}
}

func TestInputStaysAsItWas(t *testing.T) {
	t.Parallel()
	const source = `{"messages":[{"role":"user"}],"tool_observability":1}`
	m := valuetest.Decode(t, source)
	if _, err := result.Normalize(m); err != nil {
		t.Fatal(err)
	}
	if valuetest.Write(m) != source {
		t.Errorf("the input became %s", valuetest.Write(m))
	}
}

func TestObservability(t *testing.T) {
	t.Parallel()
	event := func(typ, tool, id, metadata string) string {
		return `{"type":"` + typ + `","tool_name":"` + tool + `","tool_call_id":"` + id + `","turn_count":2,"metadata":` + metadata + `}`
	}
	call := func(n, tool, id, status, keys, count, rest string) string {
		return `{"sequence":` + n + `,"turn":2,"tool_call_id":"` + id + `","tool_name":"` + tool + `","status":"` + status + `","arguments":{"keys":` + keys + `,"count":` + count + `,"redacted":true}` + rest + `}`
	}
	const failed = `,"error":{"code":"agents_api_tool_execution_failed","message":"Tool execution failed."}`
	const rejected = `,"error":{"code":"agents_api_tool_call_rejected","message":"Tool call was rejected."}`
	execution := func(id, res string) string {
		return `{"tool_name":"x","tool_call_id":"` + id + `","result":` + res + `,"parameters":[],"turn_count":1}`
	}
	for name, c := range map[string]struct{ events, results, want string }{
		"a call waits":            {event("tool_call", "a", "1", `{"parameters":{"x":1,"y":2}}`), ``, call("1", "a", "1", "pending", `["x","y"]`, "2", "")},
		"keys of a list":          {event("tool_call", "a", "1", `{"parameters":["p","q"]}`), ``, call("1", "a", "1", "pending", `["0","1"]`, "2", "")},
		"no parameters":           {event("tool_call", "a", "1", `{"parameters":"x"}`), ``, call("1", "a", "1", "pending", `[]`, "0", "")},
		"success":                 {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":true}`), ``, call("1", "a", "1", "succeeded", `[]`, "0", "")},
		"success is strict":       {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":1}`), ``, call("1", "a", "1", "failed", `[]`, "0", failed)},
		"rejected is strict":      {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"rejected":"yes"}`), ``, call("1", "a", "1", "failed", `[]`, "0", failed)},
		"rejected":                {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"rejected":true,"success":false}`), ``, call("1", "a", "1", "rejected", `[]`, "0", rejected)},
		"rejected comes first":    {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"rejected":true,"success":true}`), ``, call("1", "a", "1", "rejected", `[]`, "0", "")},
		"a result without a call": {event("tool_result", "a", "1", `{"success":true}`), ``, ""},
		"a result of another":     {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "2", `{"success":true}`), ``, call("1", "a", "1", "pending", `[]`, "0", "")},
		"other events":            {event("tool_call", "a", "1", `{}`) + `,` + event("pending", "a", "1", `{}`) + `,` + event("approval_required", "a", "1", `{}`), ``, call("1", "a", "1", "pending", `[]`, "0", "")},
		"oldest first": {
			event("tool_call", "a", "1", `{}`) + `,` + event("tool_call", "b", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":true}`), ``,
			call("1", "a", "1", "succeeded", `[]`, "0", "") + `,` + call("2", "b", "1", "pending", `[]`, "0", ""),
		},
		"each result once, in order": {
			event("tool_call", "a", "1", `{}`) + `,` + event("tool_call", "b", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":true}`) + `,` + event("tool_result", "b", "1", `{"success":true}`),
			execution("2", `{"tool_name":"no"}`) + `,` + execution("1", `{"tool_name":"ns/a","result":"xx"}`) + `,` + execution("1", `{"tool_name":"ns/b","result":[]}`),
			call("1", "ns/a", "1", "succeeded", `[]`, "0", `,"result":{"type":"string","size":2}`) + `,` + call("2", "ns/b", "1", "succeeded", `[]`, "0", `,"result":{"type":"array","count":0}`),
		},
		"no shape of what failed": {
			event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{}`), execution("1", `{"tool_name":"ns/a","result":"secret"}`),
			call("1", "ns/a", "1", "failed", `[]`, "0", failed),
		},
		"no shape of nothing": {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":true}`), execution("1", `{"tool_name":""}`), call("1", "a", "1", "succeeded", `[]`, "0", "")},
		"null has a shape":    {event("tool_call", "a", "1", `{}`) + `,` + event("tool_result", "a", "1", `{"success":true}`), execution("1", `{"result":null}`), call("1", "a", "1", "succeeded", `[]`, "0", `,"result":{"type":"null"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := result.Normalize(valuetest.Decode(t, `{"messages":[],"tool_events":[`+c.events+`],"tool_execution_results":[`+c.results+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := valuetest.Write(m.At("tool_observability")), `{"version":1,"calls":[`+c.want+`]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	outcome := func(status, completed, reason, retryable, rest string) string {
		return `{"schema":"agents-api.run-outcome","version":1,"status":"` + status + `","completed":` + completed + `,"stop_reason":"` + reason + `","retryable":` + retryable + rest + `}`
	}
	for _, c := range []struct{ raw, res, want string }{
		{`null`, `{}`, naturalOutcome},
		{`"completed"`, `{}`, naturalOutcome},
		{`[]`, `[]`, naturalOutcome},
		{`{"status":" FAILED "}`, `{}`, outcome("failed", "false", "provider_error", "true", "")},
		{`{"status":"nope"}`, `{"status":"Stalled"}`, outcome("stalled", "false", "stalled", "false", "")},
		{`{"status":"completed","completed":false}`, `{}`, outcome("completed", "false", "completed", "false", "")},
		{`{"completed":0}`, `{"completed":true}`, outcome("incomplete", "false", "incomplete", "false", "")},
		{`{"completed":"yes"}`, `{"completed":false}`, naturalOutcome},
		{`{"completed":null}`, `{"completed":true}`, outcome("incomplete", "false", "incomplete", "false", "")},
		{`{}`, `{"completed":false}`, outcome("incomplete", "false", "incomplete", "false", "")},
		{`{}`, `{"completed":null}`, naturalOutcome},
		{`{}`, `{"completed":false,"status":"odd"}`, outcome("incomplete", "false", "odd", "false", "")},
		{`{}`, `{"status":"odd"}`, outcome("completed", "true", "natural", "false", "")},
		{`{"stop_reason":" Own Reason "}`, `{"status":"failed"}`, outcome("failed", "false", "own reason", "true", "")},
		{`{"stop_reason":5}`, `{}`, outcome("completed", "true", "5", "false", "")},
		{`{"stop_reason":" "}`, `{}`, naturalOutcome},
		{`{}`, `{"status":"budget_exceeded","budget":"Turns "}`, outcome("budget_exceeded", "false", "max_turns", "true", "")},
		{`{}`, `{"status":"budget_exceeded","budget":"tokens"}`, outcome("budget_exceeded", "false", "budget_exceeded", "true", "")},
		{`{"status":"completed"}`, `{"status":"budget_exceeded","budget":"turns"}`, outcome("completed", "true", "max_turns", "true", "")},
		{`{"status":"cancelled"}`, `{"status":"budget_exceeded"}`, outcome("cancelled", "false", "budget_exceeded", "false", "")},
		{`{}`, `{"status":"runtime_tool_pending"}`, outcome("runtime_tool_pending", "false", "runtime_tool_pending", "false", "")},
		{`{}`, `{"status":"approval_required"}`, outcome("approval_required", "false", "approval_required", "false", "")},
		{`{}`, `{"status":"interrupted"}`, outcome("interrupted", "false", "interrupted", "false", "")},
		{`{}`, `{"status":"cancelled","failure":{"a":1}}`, outcome("cancelled", "false", "cancelled", "false", `,"failure":{"a":1}`)},
		{`{}`, `{"status":"completed","completed":false}`, outcome("incomplete", "false", "completed", "false", "")},
		{`{"retryable":0}`, `{"status":"failed"}`, outcome("failed", "false", "provider_error", "false", "")},
		{`{"retryable":"1"}`, `{}`, outcome("completed", "true", "natural", "true", "")},
		{`{"retryable":null,"status":"failed"}`, `{}`, outcome("failed", "false", "provider_error", "false", "")},
		{`{}`, `{"failure":"text"}`, outcome("failed", "false", "provider_error", "true", "")},
		{`{}`, `{"failure":null}`, naturalOutcome},
		{`{}`, `{"failure":{"type":"t","3":"dropped"}}`, outcome("failed", "false", "provider_error", "true", `,"failure":{"type":"t"},"provider_error":{"type":"t"}`)},
		{
			`{"failure":{"own":1},"provider_error":{"p":1,"0":2},"assertions":{"a":1,"1":2},"metadata":{"m":1,"7":8}}`, `{"failure":{"type":"t"}}`,
			outcome("failed", "false", "provider_error", "true", `,"failure":{"own":1},"assertions":{"a":1},"provider_error":{"p":1},"metadata":{"m":1}`),
		},
		{`{"failure":"s","assertions":"s","provider_error":"s","metadata":"s","stop_reason":"x"}`, `{"failure":{"type":"t"}}`, outcome("failed", "false", "x", "true", `,"failure":{"type":"t"}`)},
		{`{"failure":["a"],"assertions":[]}`, `{}`, outcome("completed", "true", "natural", "false", `,"failure":{},"assertions":{}`)},
		{`{"status":"budget_exceeded"}`, `{}`, outcome("budget_exceeded", "false", "budget_exceeded", "false", "")},
	} {
		if got := valuetest.Write(result.Outcome(valuetest.Decode(t, c.raw), valuetest.Decode(t, c.res))); got != c.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.raw, c.res, got, c.want)
		}
	}
	for _, status := range []string{"completed", "failed", "runtime_tool_pending", "approval_required", "budget_exceeded", "stalled", "cancelled", "interrupted", "incomplete"} {
		if got := result.Outcome(map[string]any{"status": status}, nil).At("status"); got != status {
			t.Errorf("%s became %v", status, got)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	whole := func(id, status, outputs, artifacts, evidence, logs, replay, provenance, times, failure, cancellation, metadata string) string {
		return `{"schema":"agents-api/run-result/v1","version":1,"run_id":"` + id + `","status":"` + status + `","outputs":` + outputs + `,"artifact_refs":` + artifacts + `,"evidence_refs":` + evidence +
			`,"logs":` + logs + `,"replay":` + replay + `,"provenance":` + provenance + `,"timestamps":` + times + `,"error":` + failure + `,"cancellation":` + cancellation + `,"metadata":` + metadata + `}`
	}
	empty := whole("", "running", "{}", "[]", "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}")
	for in, want := range map[string]string{
		`{}`: empty, `[]`: empty, `"s"`: empty,
		`{"run_id":[1],"outputs":"x","artifact_refs":"x","logs":5,"replay":1,"provenance":[1],"timestamps":"t","error":"e","cancellation":false,"metadata":null}`: empty,
		`{"run_id":" 5 ","status":" Succeeded "}`:       whole(" 5 ", "succeeded", "{}", "[]", "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"run_id":true,"outputs":{},"output":{"a":1}}`: whole("1", "running", "{}", "[]", "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"outputs":null,"output":{"b":1,"5":2}}`:       whole("", "running", `{"b":1}`, "[]", "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"outputs":{"a":1},"output":{"b":1}}`:          whole("", "running", `{"a":1}`, "[]", "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"replay":{"r":1,"0":1},"provenance":{"p":1,"0":1},"error":{"e":1,"0":1},"cancellation":{"c":1,"0":1},"metadata":{"m":1,"0":1}}`: whole("", "running", `{}`, "[]", "[]", "[]", `{"r":1}`, `{"p":1}`, "{}", `{"e":1}`, `{"c":1}`, `{"m":1}`),
		`{"artifact_refs":{"x":{"type":" f ","label":"  ","id":7,"url":null,"path":true,"mime_type":[],"sha256":"\u00a0","description":"d","extra":[1],"3":0},"y":"s","z":{"label":""},"l":[1]}}`: whole("", "running", `{}`,
			`[{"type":"f","id":"7","url":null,"path":"1","sha256":"`+"\u00a0"+`","description":"d","extra":[1]}]`, "[]", "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"evidence_refs":[{"url":" u "},{}]}`:                            whole("", "running", `{}`, "[]", `[{"url":"u"}]`, "[]", "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"logs":{"a":{"m":1,"0":2},"b":{"0":1},"c":"s","d":{"n":null}}}`: whole("", "running", `{}`, "[]", "[]", `[{"m":1},{"n":null}]`, "{}", "{}", "{}", "{}", "{}", "{}"),
		`{"timestamps":{"started_at":" s ","ended_at":"","other":"x","updated_at":null},"started_at":"no","ended_at":"no","updated_at":5}`: whole("", "running", `{}`, "[]", "[]", "[]", "{}", "{}", `{"started_at":"s","updated_at":"5"}`, "{}", "{}", "{}"),
	} {
		if got := valuetest.Write(result.Run(valuetest.Decode(t, in))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	final := func(text string) string {
		envelopes, err := message.NormalizeAll(valuetest.Decode(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return result.FinalContent(envelopes)
	}
	for in, want := range map[string]string{
		`[]`: "", `[{"role":"user","content":"q"}]`: "", `[{"content":"a"},{"content":"b"},{"role":"user","content":"c"}]`: "b",
		`[{"content":"a"},{"content":""},{"content":["b"]},{"content":"call","metadata":{"type":"tool_call"}}]`: "a",
		`[{"content":"a"},{"content":"e","metadata":{"error":1}}]`:                                              "e",
	} {
		if got := final(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	usage := result.NewUsage()
	if valuetest.Write(usage) != `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}` {
		t.Errorf("%s", valuetest.Write(usage))
	}
	add := func(turn string) { usage = result.AddUsage(usage, valuetest.Decode(t, turn).(*value.Map)) }
	add(`{"prompt_tokens":7,"total_tokens":9,"model":"a","cost":0.5,"big":9223372036854775807}`)
	add(`{"prompt_tokens":3,"model":"b","cost":0.25,"list":[1],"big":1}`)
	if got, want := valuetest.Write(usage), `{"prompt_tokens":10,"completion_tokens":0,"total_tokens":9,"model":"b","cost":0.75,"big":9223372036854775808,"list":[1]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`: "message", `{"interrupt_action":" Cancel "}`: "cancel", `{"action":"redirect"}`: "redirect", `{"interrupt_action":"message","action":"cancel"}`: "message",
		`{"interrupt_action":null,"action":"CANCEL"}`: "cancel", `{"interrupt_action":"stop"}`: "message", `{"interrupt_action":["cancel"]}`: "message",
	} {
		e, err := message.Text("user", "x", valuetest.Decode(t, in).(*value.Map))
		if got := result.InterruptAction(e); err != nil || got != want {
			t.Errorf("%s: %s %v", in, got, err)
		}
	}
}
