package program

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
)

// Bounds of a tools file.
const (
	maxTools          = 64
	defaultToolTime   = 30 * time.Second
	longestToolTime   = time.Hour
	defaultToolOutput = 64 << 10
	largestToolOutput = 1 << 20
)

// toolsForm is a file of tools that are programs (schema agent-tools).
type toolsForm struct {
	Tools []toolSpec `json:"tools"`
}

type toolSpec struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	Command     []string       `json:"command"`
	Timeout     string         `json:"timeout"`
	Output      int            `json:"max_output"`
	Confirm     bool           `json:"confirm"`
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Tools reads a file of tools that are programs. Each call starts a process
// that reads its arguments from standard input and prints its result;
// PARLEY_CALL_KEY names the call, and is the same when a turn is tried again.
// The options Dir, Env and Stderr apply to all of them.
func Tools(file []byte, o Options) ([]*agent.Tool, error) {
	var form toolsForm
	if err := json.Unmarshal(file, &form, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault.Wrap(fault.Invalid, err,
			`a tools file is like {"tools":[{"name":"tides","description":"…","parameters":{"type":"object"},"command":["tides"]}]}: %v (parley schema show agent-tools)`, err)
	}
	if len(form.Tools) == 0 || len(form.Tools) > maxTools {
		return nil, fault.New(fault.Invalid, "a tools file has 1 to %d tools, not %d", maxTools, len(form.Tools))
	}
	var tools []*agent.Tool
	seen := map[string]bool{}
	for i, s := range form.Tools {
		if !toolName.MatchString(s.Name) {
			return nil, fault.New(fault.Invalid, "tools[%d] has the name %.100q; it has 1 to 64 letters, digits, _ and -", i, s.Name)
		}
		if seen[s.Name] {
			return nil, fault.New(fault.Invalid, "the tool %q is given twice; give it once", s.Name)
		}
		seen[s.Name] = true
		tool, err := s.tool(o)
		if err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "the tool %q: %v", s.Name, err)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func (s toolSpec) tool(o Options) (*agent.Tool, error) {
	o.Timeout, o.Output = defaultToolTime, defaultToolOutput
	if s.Timeout != "" {
		d, err := time.ParseDuration(s.Timeout)
		if err != nil || d <= 0 || d > longestToolTime {
			return nil, fault.New(fault.Invalid, "timeout %.40q is not a time of at most %v, such as 10s", s.Timeout, longestToolTime)
		}
		o.Timeout = d
	}
	if s.Output < 0 || s.Output > largestToolOutput {
		return nil, fault.New(fault.Invalid, "max_output is 1 to %d bytes, not %d", largestToolOutput, s.Output)
	}
	if s.Output > 0 {
		o.Output = s.Output
	}
	accepts, err := schemaOf(s.Parameters)
	if err != nil {
		return nil, err
	}
	p, err := New(s.Command, o)
	if err != nil {
		return nil, err
	}
	return &agent.Tool{
		Name: s.Name, Description: s.Description, Parameters: s.Parameters, Confirm: s.Confirm,
		Run: func(ctx context.Context, call *agent.Call) (any, error) {
			arguments := []byte(call.Arguments)
			if len(arguments) == 0 {
				arguments = []byte("{}")
			}
			if err := checkArguments(accepts, arguments); err != nil {
				return nil, err
			}
			out, err := p.run(ctx, append(arguments, '\n'), "PARLEY_CALL_KEY="+call.Key)
			if err != nil {
				return nil, err
			}
			if !utf8.Valid(out) {
				return nil, fault.New(fault.Invalid, "the tool printed something that is not text")
			}
			return strings.TrimRight(string(out), "\n"), nil
		},
	}, nil
}

// offline refuses to read schemas from anywhere.
type offline struct{}

func (offline) Load(url string) (any, error) {
	return nil, errors.New("a tool's schema refers to " + url + ", which is not read; write it in place")
}

// schemaOf returns the schema that checks a tool's arguments; nil accepts any object.
func schemaOf(parameters jsontext.Value) (*jsonschema.Schema, error) {
	if len(parameters) == 0 {
		return nil, nil
	}
	if parameters.Kind() != '{' {
		return nil, fault.New(fault.Invalid, `parameters is a JSON Schema of an object, such as {"type":"object","properties":{}}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "parameters: %v", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(offline{})
	if err := c.AddResource("tool.json", doc); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "parameters: %v", err)
	}
	compiled, err := c.Compile("tool.json")
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "parameters is not a JSON Schema: %v", err)
	}
	return compiled, nil
}

// checkArguments refuses arguments that do not match a tool's schema.
func checkArguments(schema *jsonschema.Schema, arguments []byte) error {
	v := jsontext.Value(arguments)
	if !v.IsValid() || v.Kind() != '{' {
		return fault.New(fault.Invalid, "the arguments are not a JSON object")
	}
	if schema == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the arguments are not JSON: %v", err)
	}
	if err := schema.Validate(doc); err != nil {
		return fault.Wrap(fault.Invalid, err, "the arguments do not fit the tool's parameters: %v", err)
	}
	return nil
}
