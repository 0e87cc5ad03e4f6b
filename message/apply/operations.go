package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/bridge"
	"github.com/parley-hub/parley/message/compact"
	"github.com/parley-hub/parley/message/external"
	"github.com/parley-hub/parley/message/result"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// operation runs one operation on its input.
type operation func(ctx context.Context, input any) (any, error)

// Operations lists the names that Apply knows.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

func known() string { return strings.Join(Operations(), ", ") }

// messageOps take messages: input for them that is not JSON is a message that
// cannot be serialized.
var messageOps = map[string]bool{
	"normalize": true, "type": true, "to_provider_message": true, "renormalize_provider": true,
	"normalize_many": true, "to_provider_messages": true, "coalesce": true,
	"tool_pairs_validate": true, "tool_pairs_prune": true,
	"build_text": true, "build_tool_call": true, "build_tool_result": true, "build_approval_required": true,
	"compact": true, "compaction_boundary": true, "compaction_item_from_message": true,
}

var operations = map[string]operation{
	"normalize":            one(message.Normalize),
	"to_provider_message":  one(message.ToProvider),
	"type":                 typeOf,
	"normalize_many":       many(message.NormalizeAll),
	"to_provider_messages": many(message.ToProviderAll),
	"coalesce":             many(message.Coalesce),
	"tool_pairs_validate":  many(message.Orphans),
	"tool_pairs_prune":     one(message.Prune),
	"renormalize_provider": renormalize,

	"build_text":              buildText,
	"build_tool_call":         buildToolCall,
	"build_tool_result":       buildToolResult,
	"build_approval_required": buildApprovalRequired,

	"conversation_result": func(_ context.Context, input any) (any, error) { return orError(result.Normalize(input)) },
	"run_result":          func(_ context.Context, input any) (any, error) { return result.Run(input), nil },
	"run_control_status":  func(_ context.Context, input any) (any, error) { return result.ControlStatus(input), nil },
	"run_outcome": func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		return result.Outcome(m.At("outcome"), m.At("result")), nil
	},

	"compaction_policy": func(_ context.Context, input any) (any, error) {
		return compact.NormalizePolicy(input).Canonical(), nil
	},
	"compaction_boundary": func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		at, err := compact.Boundary(m.At("messages"), compact.NormalizePolicy(m.At("policy")))
		return value.Int(at), err
	},
	"compact":                      compaction,
	"compaction_item":              item("item", compact.NormalizeItem),
	"compaction_item_from_message": item("message", compact.ItemFromMessage),

	"external_message": one(external.Normalize),
	"external_client_context": func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		msg, err := external.Normalize(m.At("message"))
		if err != nil {
			return nil, err
		}
		source := external.SourceChannel
		if given := m.At("source"); given != nil {
			source = value.Text(given)
		}
		return msg.ClientContext(source, value.Text(m.At("client_name"))), nil
	},
	"idempotency_key": func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		key, ok := external.Key(value.Text(m.At("provider")), value.Text(m.At("message_id")))
		if !ok {
			return nil, nil
		}
		return key, nil
	},
	"channel_session_key": func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		return external.SessionKey(value.Text(m.At("connector_id")),
			value.Text(m.At("external_conversation_id")), value.Text(m.At("agent_slug"))), nil
	},
	"workspace_scope": one(transcript.ScopeFrom),
	"bridge_queue_item": one(func(input any) (bridge.Item, error) {
		return bridge.NewItem(input, time.Now())
	}),
	"webhook_signature": signature,
}

// arguments returns an operation's named arguments.
func arguments(input any) *value.Map { return value.MapOrEmpty(value.Of(input)) }

// one returns an operation whose result has a map form.
func one[T value.Source](run func(any) (T, error)) operation {
	return func(_ context.Context, input any) (any, error) {
		out, err := run(input)
		if err != nil {
			return nil, err
		}
		return out.Canonical(), nil
	}
}

// many is like one, for lists.
func many[T value.Source](run func(any) ([]T, error)) operation {
	return func(_ context.Context, input any) (any, error) {
		out, err := run(input)
		if err != nil {
			return nil, err
		}
		return value.List(out), nil
	}
}

func orError(m *value.Map, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func typeOf(_ context.Context, input any) (any, error) {
	t, err := message.TypeOf(input)
	return string(t), err
}

func renormalize(_ context.Context, input any) (any, error) {
	p, err := message.ToProvider(input)
	if err != nil {
		return nil, err
	}
	e, err := message.Normalize(p)
	return e.Canonical(), err
}

func item(argument string, run func(any, *int64) (compact.Item, error)) operation {
	return func(_ context.Context, input any) (any, error) {
		m := arguments(input)
		var index *int64
		if i, ok := value.Integer(m.At("index")); ok {
			index = &i
		}
		out, err := run(m.At(argument), index)
		return out.Canonical(), err
	}
}

// compaction runs compact with a summarizer whose answer is part of the input.
func compaction(ctx context.Context, input any) (any, error) {
	m := arguments(input)
	told := value.MapOrEmpty(m.At("summarizer"))
	summarize := func(context.Context, []message.Envelope, *value.Map) (any, error) {
		if text, ok := told.Get("throw"); ok {
			return nil, errors.New(value.Text(text))
		}
		return told.At("return"), nil
	}
	out, err := compact.Compact(ctx, m.At("messages"), compact.NormalizePolicy(m.At("policy")), summarize)
	if err != nil {
		return nil, err
	}
	return out.Canonical(), nil
}

func signature(_ context.Context, input any) (any, error) {
	m := arguments(input)
	options := value.MapOrEmpty(m.At("options"))
	s := external.NewSignature(value.Text(m.At("secret")))
	if prefix, ok := options.At("expected_prefix").(string); ok {
		s.Prefix = prefix
	}
	s.AllowRawHex = options.At("allow_raw_hex") == true
	return s.Valid([]byte(value.Text(m.At("body"))), value.Text(m.At("header"))), nil
}
