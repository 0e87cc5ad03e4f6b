package program_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/agent/program"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/schemas"
)

// toolsFile returns a file with one tool, which this test binary plays.
func toolsFile(t *testing.T, change map[string]any, args ...string) []byte {
	t.Helper()
	tool := map[string]any{
		"name": "tides", "description": "The tides.", "command": append([]string{os.Args[0]}, args...),
		"parameters": json.RawMessage(`{"type":"object","properties":{"harbour":{"type":"string"}},"required":["harbour"]}`),
	}
	maps.Copy(tool, change)
	raw, err := json.Marshal(map[string]any{"tools": []any{tool}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func newTool(t *testing.T, as string, change map[string]any, args ...string) *agent.Tool {
	t.Helper()
	file := toolsFile(t, change, args...)
	if err := schemas.Validate("agent-tools", file); err != nil {
		t.Errorf("%s: %v", file, schemas.Problems(err))
	}
	tools, err := program.Tools(file, program.Options{Env: append(os.Environ(), role+"="+as)})
	if err != nil {
		t.Fatal(err)
	}
	return tools[0]
}

func call(t *testing.T, tool *agent.Tool, arguments string) (string, error) {
	t.Helper()
	result, err := tool.Run(t.Context(), &agent.Call{Call: turn.Call{Name: tool.Name, Arguments: arguments}, Key: "key-7"})
	text, _ := result.(string)
	return text, err
}

// A tool's program reads the arguments unchanged and knows the call's key, and
// what it prints is the result.
func TestAProgramAsATool(t *testing.T) {
	t.Parallel()
	tool := newTool(t, "echo", nil)
	if tool.Confirm || tool.Name != "tides" || !strings.Contains(string(tool.Parameters), "harbour") {
		t.Errorf("it is %+v", tool)
	}
	got, err := call(t, tool, `{"harbour":"Roscoff"}`)
	if err != nil || got != `key-7: {"harbour":"Roscoff"}` {
		t.Errorf("got %q, %v", got, err)
	}
	if !newTool(t, "echo", map[string]any{"confirm": true}).Confirm {
		t.Error("it needs no approval")
	}
	for _, arguments := range []string{`{"harbour":7}`, `{}`, ``, `[]`, `{"harbour"`} {
		if got, err := call(t, tool, arguments); fault.CodeOf(err) != fault.Invalid || got != "" {
			t.Errorf("%s: %q, %v", arguments, got, err)
		}
	}
}

func TestAToolIsBounded(t *testing.T) {
	t.Parallel()
	const fine = `{"harbour":"x"}`
	if _, err := call(t, newTool(t, "flood", map[string]any{"max_output": 5000}), fine); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "5000 bytes") {
		t.Errorf("too much: %v", err)
	}
	if _, err := call(t, newTool(t, "fail", nil), fine); fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "disk") {
		t.Errorf("failed: %v", err)
	}
	if _, err := call(t, newTool(t, "binary", nil), fine); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("not text: %v", err)
	}
	address, conns := held(t)
	if _, err := call(t, newTool(t, "family", map[string]any{"timeout": "1s"}, address, "stay"), fine); !strings.Contains(err.Error(), "did not end within 1s") {
		t.Errorf("too long: %v", err)
	}
	select {
	case conn := <-conns:
		defer conn.Close()
		dead(t, conn)
	default: // it never came so far
	}
}

// A tool that needs confirmation never runs unless somebody approves the call.
func TestAToolWaitsForApproval(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/ran"
	tool := newTool(t, "save", map[string]any{"confirm": true}, file)
	asked := 0
	model := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		if last := p.Messages[len(p.Messages)-1]; last.Role == agent.ToolResult {
			return &agent.Response{Text: last.Text}, nil
		}
		return &agent.Response{Calls: []turn.Call{{ID: "1", Name: "tides", Arguments: `{"harbour":"x"}`}}}, nil
	})
	a := agent.New(agenttest.New().Join("desk"), model, agent.Options{Tools: []*agent.Tool{tool}, NoNetworkTools: true, Confirm: func(context.Context, *agent.Call) error {
		asked++
		return fault.New(fault.AccessDenied, "denied")
	}})
	text, err := a.Ask(t.Context(), "go")
	if _, there := os.Stat(file); err != nil || !strings.Contains(text, "was not confirmed: denied") || asked != 1 || there == nil {
		t.Errorf("%q, %v, asked %d times, ran: %v", text, err, asked, there == nil)
	}
}

func TestWhatIsNoToolsFile(t *testing.T) {
	t.Parallel()
	two := `{"tools":[{"name":"a","command":["` + os.Args[0] + `"]},{"name":"a","command":["` + os.Args[0] + `"]}]}`
	for text, want := range map[string]string{
		``:                         "a tools file is like",
		`{"tools":[]}`:             "1 to 64 tools",
		`{"tols":[]}`:              "tols",
		`{"tools":[{}]}`:           "has the name",
		two:                        "given twice",
		`{"tools":[{"name":"a"}]}`: "there is no command",
		`{"tools":[{"name":"a","command":["no-such-program-at-all"]}]}`:                               "cannot be run",
		`{"tools":[{"name":"a","command":["x"],"timeout":"2h"}]}`:                                     "timeout",
		`{"tools":[{"name":"a","command":["x"],"timeout":"soon"}]}`:                                   "timeout",
		`{"tools":[{"name":"a","command":["x"],"max_output":9999999}]}`:                               "max_output",
		`{"tools":[{"name":"a","command":["x"],"parameters":[]}]}`:                                    "JSON Schema of an object",
		`{"tools":[{"name":"a","command":["x"],"parameters":{"type":7}}]}`:                            "not a JSON Schema",
		`{"tools":[{"name":"a","command":["x"],"parameters":{"$ref":"https://example.org/s.json"}}]}`: "which is not read",
		`{"tools":[{"name":"a","command":["x"],"parameters":{"$ref":"file:///etc/hostname"}}]}`:       "which is not read",
	} {
		if _, err := program.Tools([]byte(text), program.Options{}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
