package result

import (
	"strconv"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// What every conversation result carries.
const (
	Schema  = "agents-api.conversation-result"
	Version = 1
)

// Normalize checks what a runner returned and brings every message in it, a
// plain row or an envelope, to its canonical form. Unknown fields pass
// through; tool_observability and run_outcome are always computed. The checks
// have a fixed order, and the first that fails is the *Error.
func Normalize(raw any) (*value.Map, error) {
	m, _ := value.Of(raw).(*value.Map)
	m = m.Clone()
	c := &checker{}
	c.constants(m)
	messages := c.messages(m)
	c.lists(m)
	c.optional(m)
	if c.err != nil {
		return nil, c.err
	}
	m.Set("messages", messages)
	m.Set("tool_observability", observe(m.At("tool_events"), m.At("tool_execution_results")))
	m.Set("run_outcome", Outcome(m.At("run_outcome"), m))
	return m, nil
}

// Messages returns the messages of a normalized result, in order.
func Messages(normalized *value.Map) ([]message.Envelope, error) {
	return message.NormalizeAll(normalized.At("messages"))
}

// checker keeps the first failure; the checks after it do nothing.
type checker struct{ err error }

func (c *checker) refuse(path, reason string) {
	if c.err == nil {
		c.err = &Error{Path: path, Reason: reason}
	}
}

// constants fills schema and version where the key is absent, and compares.
func (c *checker) constants(m *value.Map) {
	if !m.Has("schema") {
		m.Set("schema", Schema)
	}
	if !m.Has("version") {
		m.Set("version", value.Int(Version))
	}
	if m.At("schema") != Schema {
		c.refuse("schema", "must be "+Schema)
	}
	if i, ok := value.Integer(m.At("version")); !ok || i != Version {
		c.refuse("version", "must be "+strconv.Itoa(Version))
	}
}

// messages normalizes each message; an object keeps its keys.
func (c *checker) messages(m *value.Map) any {
	raw := m.At("messages")
	if !value.IsContainer(raw) {
		c.refuse("messages", "must be an array")
		return nil
	}
	normalized := value.New()
	for key, item := range value.MapOrEmpty(raw).All() {
		path := "messages[" + key + "]"
		if !value.IsContainer(item) {
			c.refuse(path, "must be an array")
			continue
		}
		e, err := message.Normalize(item)
		if err != nil && c.err == nil {
			c.err = &Error{Path: path, Reason: err.Error(), cause: err}
		}
		normalized.Set(key, e.Canonical())
	}
	if _, isList := raw.([]any); !isList {
		return normalized
	}
	list, _ := value.Values(normalized)
	return list
}

// lists checks the three lists of tool records, which may be absent.
func (c *checker) lists(m *value.Map) {
	names := []string{"tool_execution_results", "tool_audit_events", "tool_events"}
	for _, name := range names {
		if !m.Has(name) {
			m.Set(name, []any{})
		}
		if !value.IsContainer(m.At(name)) {
			c.refuse(name, "must be an array")
		}
	}
	for i, check := range []func(fields){execution, audit, toolEvent} {
		for key, item := range value.MapOrEmpty(m.At(names[i])).All() {
			path := names[i] + "[" + key + "]"
			if !value.IsContainer(item) {
				c.refuse(path, "must be an array")
				continue
			}
			check(fields{c: c, path: path + ".", m: value.MapOrEmpty(item)})
		}
	}
}

func execution(f fields) {
	f.text("tool_name")
	f.container("result")
	f.container("parameters")
	f.boolIfPresent("is_handler_tool")
	f.containerIfPresent("runtime")
	f.integer("turn_count")
}

func audit(f fields) {
	for _, key := range []string{"type", "tool_name", "tool_call_id", "parameters_sha256", "result_sha256"} {
		f.text(key)
	}
	f.integer("schema_version")
	f.integer("turn_count")
	f.boolean("success")
	f.stringIfPresent("error_type")
}

func toolEvent(f fields) {
	for _, key := range []string{"type", "tool_name", "tool_call_id"} {
		f.text(key)
	}
	f.integer("turn_count")
	f.stringIfPresent("status")
	f.containerIfPresent("metadata")
}

// optional checks the types of optional fields. A null counts as present.
func (c *checker) optional(m *value.Map) {
	f := fields{c: c, m: m}
	f.stringIfPresent("status")
	f.stringIfPresent("budget")
	f.integerIfPresent("turn_count")
	f.stringIfPresent("final_content")
	f.containerIfPresent("usage")
	f.containerIfPresent("metadata")
	f.containerIfPresent("request_metadata")
	f.containerIfPresent("provider_diagnostics")
	if v, ok := m.Get("structured_output"); ok && value.Check(v, 0) != nil {
		c.refuse("structured_output", "must be JSON serializable")
	}
	f.containerIfPresent("structured_output_diagnostics")
	f.boolIfPresent("completed")
	if v, ok := m.Get("failure"); ok {
		f.containerIfPresent("failure")
		failure := fields{c: c, path: "failure.", m: value.MapOrEmpty(v)}
		failure.text("type")
		failure.text("message")
		failure.integerIfPresent("turn_count")
	}
	f.containerIfPresent("runtime_tool_pending")
}
