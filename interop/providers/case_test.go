package providers_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

const (
	cases     = "../../message/provider/testdata/cases"
	providers = "../../message/provider"
)

// eachCase runs a check for every conversation that the mappings' own tests
// use.
func eachCase(t *testing.T, check func(t *testing.T, messages []message.Envelope)) {
	t.Helper()
	for name, in := range archives(t, cases) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var messages []message.Envelope
			for line := range bytes.Lines(in["messages.jsonl"]) {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				e, err := message.NormalizeJSON(line)
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, e)
			}
			check(t, messages)
		})
	}
}

// archives reads a folder's cases, their sections by name.
func archives(t *testing.T, dir string) map[string]map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	found := map[string]map[string][]byte{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string][]byte{}
		for _, f := range archive.Files {
			sections[f.Name] = f.Data
		}
		found[strings.TrimSuffix(filepath.Base(path), ".txtar")] = sections
	}
	return found
}

var tools = []provider.Tool{
	{Name: "harbour/tides", Description: "Tide tables", Parameters: value.New().
		Set("type", "object").
		Set("properties", value.New().Set("harbour", value.New().Set("type", "string")))},
	{Name: "weather"},
}

// decode reads JSON with an SDK's type.
func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("the SDK refuses it: %v: %s", err, data)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sameJSON requires that what went through an SDK's types is what we wrote.
func sameJSON(t *testing.T, ours, theirs []byte) {
	t.Helper()
	if diff := cmp.Diff(plain(t, ours), plain(t, theirs)); diff != "" {
		t.Errorf("the SDK understood something else (-ours +theirs):\n%s", diff)
	}
}

// plain is JSON without nulls and empty lists.
func plain(t *testing.T, data []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return prune(v)
}

func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		// A text and a list of one text are the same.
		if text, ok := v["content"].(string); ok && v["type"] == "tool_result" {
			v["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
		for key, item := range v {
			item = prune(item)
			list, isList := item.([]any)
			if item == nil || (isList && len(list) == 0) {
				delete(v, key)
				continue
			}
			v[key] = item
		}
	case []any:
		for i, item := range v {
			v[i] = prune(item)
		}
	}
	return v
}

// answered adds a result to each call: open ones are not sent.
func answered(t *testing.T, messages []message.Envelope) []message.Envelope {
	t.Helper()
	all := append([]message.Envelope{}, messages...)
	for _, e := range messages {
		if e.Type != message.TypeToolCall {
			continue
		}
		result, err := message.ToolResult("done", e.ToolName(), nil, value.New().Set("tool_call_id", e.ToolCallID()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, result)
	}
	return all
}

// floats replaces the numbers that an SDK, whose numbers are floats, would not
// give back; we do.
func floats(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("9007199254740993"), []byte("9007199254740992"))
	return bytes.ReplaceAll(data, []byte("1.50"), []byte("1.5"))
}

// said shows what messages say, without what only the provider's form has.
func said(messages []message.Envelope) []string {
	var list []string
	for _, e := range messages {
		line := e.Role + " " + string(e.Type)
		if e.Type == message.TypeToolCall {
			parameters, _ := value.Append(nil, e.Payload.At("parameters"))
			line += " " + e.ToolName() + " " + e.ToolCallID() + " " + string(parameters)
		}
		if e.Type == message.TypeToolResult {
			line += " " + e.ToolName() + " " + e.ToolCallID()
		}
		if text, ok := e.Text(); ok && text != "" {
			line += ": " + text
		}
		list = append(list, line)
	}
	return list
}
