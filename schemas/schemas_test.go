package schemas_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/apply"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/sample"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/schemas"
)

func TestNames(t *testing.T) {
	t.Parallel()
	want := []string{
		"agent-answer", "agent-tools", "agent-turn", "agh-envelope", "compaction-item", "conversation-result", "external-message",
		"message", "message.approval_required", "message.delta", "message.error", "message.final_result",
		"message.input_required", "message.multimodal_part", "message.text", "message.tool_call", "message.tool_result",
		"payload.approval_required", "payload.delta", "payload.multimodal_part", "payload.tool_call", "payload.tool_result",
		"provider-message", "run-outcome", "run-result",
	}
	if diff := cmp.Diff(want, schemas.Names()); diff != "" {
		t.Error(diff)
	}
	list, err := schemas.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(want) {
		t.Fatalf("%d of %d are listed", len(list), len(want))
	}
	for i, info := range list {
		id := "https://parley-hub.github.io/schemas/" + want[i] + ".json"
		if info.Name == "agh-envelope" {
			id = "https://agh.dev/schemas/network/v0/envelope.schema.json"
		}
		if info.Name != want[i] || info.ID != id || info.Title == "" {
			t.Errorf("got %+v", info)
		}
		text, err := schemas.Text(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		if head.Schema != "https://json-schema.org/draft/2020-12/schema" || head.ID != info.ID {
			t.Errorf("%s: got %+v", info.Name, head)
		}
	}
	for _, kind := range message.Types() {
		if name, err := schemas.Resolve(string(kind)); err != nil || name != "message."+string(kind) {
			t.Errorf("%s: got %s, %v", kind, name, err)
		}
	}
	for name, want := range map[string]string{
		"message": "message", "message.json": "message", "https://parley-hub.github.io/schemas/run-result.json": "run-result",
		"https://agh.dev/schemas/network/v0/envelope.schema.json": "agh-envelope",
	} {
		if got, err := schemas.Resolve(name); err != nil || got != want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	_, err = schemas.Text("nope")
	if !errors.Is(err, schemas.ErrUnknown) || !strings.Contains(err.Error(), `"nope"; there are agent-answer, agent-tools, agent-turn, agh-envelope, `) {
		t.Errorf("got %v", err)
	}
	if err := schemas.Validate("nope", []byte("{}")); !errors.Is(err, schemas.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

const good = `{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"hi","payload":{},"metadata":{}}`

func TestMessageSchema(t *testing.T) {
	t.Parallel()
	if err := schemas.Validate("message", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, where string }{
		"schema":      {`"agents-api.message"`, `"other"`, "/schema: "},
		"version":     {`"version":1`, `"version":"1"`, "/version: "},
		"type":        {`"text"`, `"multimodal"`, "/type: "},
		"role":        {`"user"`, `""`, "/role: "},
		"content":     {`"hi"`, `5`, "/content: "},
		"payload":     {`"payload":{}`, `"payload":[]`, "/payload: "},
		"metadata":    {`"metadata":{}`, `"metadata":null`, "/metadata: "},
		"id":          {`}}`, `},"id":""}`, "/id: "},
		"created_at":  {`}}`, `},"created_at":5}`, "/created_at: "},
		"updated_at":  {`}}`, `},"updated_at":null}`, "/updated_at: "},
		"other keys":  {`}}`, `},"name":"x"}`, "/: additional properties 'name' not allowed"},
		"a missing":   {`"role":"user",`, ``, "/: missing property 'role'"},
		"a duplicate": {`}}`, `},"role":"x"}`, "not valid JSON: "},
		"a rest":      {`}}`, `}} {}`, "not valid JSON: text follows the value"},
		"no JSON":     {`}}`, `}`, "not valid JSON: "},
	} {
		err := schemas.Validate("message", []byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil {
			t.Errorf("%s: not refused", name)
			continue
		}
		if lines := schemas.Problems(err); len(lines) != 1 || !strings.HasPrefix(lines[0], c.where) {
			t.Errorf("%s: got %q, want %q", name, lines, c.where)
		}
	}
}

func TestPayloadSchemas(t *testing.T) {
	t.Parallel()
	const action = `{"action_id":"a","kind":"k","summary":"s","preview":{},"apply_input":{},"created_at":"now"`
	for _, c := range []struct {
		name, doc string
		ok        bool
	}{
		{"payload.tool_call", `{"tool_name":"t","parameters":{},"turn":1}`, true},
		{"payload.tool_call", `{"tool_name":"t","parameters":[]}`, false},
		{"payload.tool_call", `{"tool_name":"","parameters":{}}`, false},
		{"payload.tool_call", `{"tool_name":"t","parameters":{},"turn":0}`, false},
		{"payload.tool_result", `{"tool_name":"t","success":true,"turn":1,"tool_data":[],"media":[],"error":null}`, true},
		{"payload.tool_result", `{"success":true}`, false},
		{"payload.tool_result", `{"tool_name":"t","success":"yes"}`, false},
		{"payload.approval_required", action + `,"status":"pending"}`, true},
		{"payload.approval_required", action + `,"status":"maybe"}`, false},
		{"payload.approval_required", `{"action_id":"a"}`, false},
		{"payload.delta", `{"index":0,"kind":"text"}`, true},
		{"payload.delta", `{"index":-1,"kind":"text"}`, false},
		{"payload.delta", `{"index":0,"kind":"smell"}`, false},
		{"payload.multimodal_part", `{"parts":[` + good + `]}`, true},
		{"payload.multimodal_part", `{"parts":[1]}`, false},
	} {
		if err := schemas.Validate(c.name, []byte(c.doc)); (err == nil) != c.ok {
			t.Errorf("%s: %s: got %v", c.name, c.doc, err)
		}
	}
}

// What the builders and the providers write keeps the payload's contract.
func TestWhatIsWrittenKeepsThePayloadContract(t *testing.T) {
	t.Parallel()
	check := func(name string, e message.Envelope, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		validate(t, "message."+strings.TrimPrefix(name, "payload."), e)
		payload, err := e.Payload.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Validate(name, payload); err != nil {
			t.Errorf("%s: %s: %v", name, payload, err)
		}
	}
	call, err := message.ToolCall("", "t", value.New(), 1, nil)
	check("payload.tool_call", call, err)
	result, err := message.ToolResult("x", "t", value.New().Set("success", true), nil)
	check("payload.tool_result", result, err)
	check("payload.delta", provider.Delta(provider.DeltaToolCall, 0, "{", "t", "c1"), nil)
	merged, err := message.Coalesce([]any{value.New().Set("content", "a"), value.New().Set("content", "b")})
	if err != nil {
		t.Fatal(err)
	}
	check("payload.multimodal_part", merged[0], nil)
}

func validate(t interface {
	Helper()
	Errorf(string, ...any)
}, name string, e message.Envelope,
) {
	t.Helper()
	text, err := e.MarshalJSON()
	if err == nil {
		err = schemas.Validate(name, text)
	}
	if err != nil {
		t.Errorf("%s: %s: %v", name, text, err)
	}
}

// produces says which schema what an operation gives is valid against.
var produces = map[string]string{
	"normalize": "message", "renormalize_provider": "message", "normalize_many": "message", "coalesce": "message",
	"build_text": "message", "build_tool_call": "message", "build_tool_result": "message", "build_approval_required": "message",
	"to_provider_message": "provider-message", "to_provider_messages": "provider-message",
	"conversation_result": "conversation-result", "run_result": "run-result", "run_outcome": "run-outcome",
	"compaction_item": "compaction-item", "compaction_item_from_message": "compaction-item",
	"external_message": "external-message",
}

// TestVectors runs every vector and validates what it gives, messages against
// the schema of their type too.
func TestVectors(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../message/testdata/agent-message-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]string{}
	var in bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(source))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var vector struct{ Name, Op string }
		if err := json.Unmarshal(lines.Bytes(), &vector); err != nil {
			t.Fatal(err)
		}
		ops[vector.Name] = vector.Op
		in.Write(lines.Bytes())
		in.WriteByte('\n')
	}
	// The vectors have no input that is required.
	ops["input"] = "normalize"
	in.WriteString(`{"name":"input","op":"normalize","input":{"version":1,"type":"input_required","data":{"prompt":"?"}}}`)
	var out bytes.Buffer
	if err := apply.Apply(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	results := bufio.NewScanner(&out)
	results.Buffer(nil, 16<<20)
	for results.Scan() {
		var result struct {
			Name   string          `json:"name"`
			Output json.RawMessage `json:"output"`
		}
		if err := json.Unmarshal(results.Bytes(), &result); err != nil {
			t.Fatal(err)
		}
		name, ok := produces[ops[result.Name]]
		if !ok || result.Output == nil {
			continue
		}
		for _, doc := range documents(t, result.Output) {
			checked[name]++
			if err := schemas.Validate(name, doc); err != nil {
				t.Errorf("%s: %s: %v", result.Name, doc, err)
			}
			if name != "message" {
				continue
			}
			var head struct{ Type string }
			if err := json.Unmarshal(doc, &head); err != nil {
				t.Fatal(err)
			}
			checked["message."+head.Type]++
			if err := schemas.Validate(head.Type, doc); err != nil {
				t.Errorf("%s: %s: %v", result.Name, doc, err)
			}
			for _, other := range message.Types() {
				if string(other) != head.Type && schemas.Validate(string(other), doc) == nil {
					t.Errorf("%s: a %s passes for a %s", result.Name, head.Type, other)
				}
			}
		}
	}
	for _, name := range schemas.Names() {
		if checked[name] == 0 && !strings.HasPrefix(name, "payload.") && !strings.HasPrefix(name, "agent-") && name != "agh-envelope" {
			t.Errorf("no vector gives a %s", name)
		}
	}
	if checked["message"] < 100 {
		t.Errorf("only %d messages were checked", checked["message"])
	}
}

func documents(t *testing.T, output json.RawMessage) []json.RawMessage {
	t.Helper()
	if output[0] != '[' {
		return []json.RawMessage{output}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(output, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// FuzzNormalizeGivesWhatTheSchemaAccepts: whatever is not refused is valid.
func FuzzNormalizeGivesWhatTheSchemaAccepts(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"version":"1abc","type":"tool_call","data":[1,{"a":1e400}],"role":" ","content":{},"id":"0"}`))
	f.Add([]byte(`{"metadata":{"type":"tool_result","success":null},"content":[],"created_at":"x"}`))
	f.Add(sample.Typical())
	for line := range bytes.Lines(sample.Conversation()) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := message.NormalizeJSON(data)
		if err != nil {
			return
		}
		validate(t, "message", e)
		validate(t, string(e.Type), e)
		projected, err := e.Provider().MarshalJSON()
		if err == nil {
			err = schemas.Validate("provider-message", projected)
		}
		if err != nil {
			t.Errorf("%s: %v", projected, err)
		}
	})
}
