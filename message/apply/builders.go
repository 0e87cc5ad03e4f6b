package apply

import (
	"context"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// The builders' arguments have types; as named arguments they are coerced the
// way a weakly typed caller's are.

func buildText(_ context.Context, input any) (any, error) {
	m := arguments(input)
	e, err := message.Text(value.Text(m.At("role")), m.At("content"), value.MapOrEmpty(m.At("metadata")))
	return built(e, err)
}

func buildToolCall(_ context.Context, input any) (any, error) {
	m := arguments(input)
	parameters := m.At("parameters")
	if !value.IsContainer(parameters) {
		parameters = value.New()
	}
	e, err := message.ToolCall(m.At("content"), value.Text(m.At("tool_name")), parameters, integer(m.At("turn")), value.MapOrEmpty(m.At("metadata")))
	return built(e, err)
}

// integer returns a scalar as an integer: a number cut towards zero, also
// one in a string, and 1 for true.
func integer(v any) int64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
	case value.Number:
		if i, ok := v.Int64(); ok {
			return i
		}
		return value.Truncate(v.Float64())
	case string:
		i, _, _ := value.Numeric(v)
		return i
	}
	return 0
}

func buildToolResult(_ context.Context, input any) (any, error) {
	m := arguments(input)
	e, err := message.ToolResult(m.At("content"), value.Text(m.At("tool_name")),
		value.MapOrEmpty(m.At("payload")), value.MapOrEmpty(m.At("metadata")))
	return built(e, err)
}

func buildApprovalRequired(_ context.Context, input any) (any, error) {
	m := arguments(input)
	e, err := message.ApprovalRequired(m.At("content"), value.MapOrEmpty(m.At("payload")), value.MapOrEmpty(m.At("metadata")))
	return built(e, err)
}

func built(e message.Envelope, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return e.Canonical(), nil
}
