package agh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/hub"
)

// cause returns the hub's id of the envelope that a message names as its cause; empty:
// it is not stored in the same conversation.
func (sp *space) cause(ctx context.Context, e *wire.Envelope) string {
	if e.Causation == "" {
		return ""
	}
	page, err := sp.s.hub.Entries(ctx, hub.EntryQuery{Type: kindOf(e.Surface), Home: sp.home.ID, Prefix: work.IDPrefix(e.Causation), Limit: 10})
	if err != nil {
		return ""
	}
	for _, found := range page.Entries {
		where, err := work.ParseWhere(found.Value)
		if err != nil || where.Channel != e.Channel || where.ID != e.Container().ID {
			continue
		}
		for record, err := range sp.s.hub.Log(ctx, found.Channel, where.Seq, where.Seq) {
			if err == nil {
				return record.ID
			}
		}
	}
	return ""
}

// traced links the span of a message to the trace id that the message names. If that
// is not a W3C trace id, it links to its digest and puts the id into the state.
func traced(ctx context.Context, e *wire.Envelope) context.Context {
	if e.Trace == "" {
		return ctx
	}
	var of trace.SpanContextConfig
	id, err := trace.TraceIDFromHex(e.Trace)
	if err != nil {
		sum := sha256.Sum256([]byte(e.Trace))
		if id, err = trace.TraceIDFromHex(hex.EncodeToString(sum[:16])); err != nil {
			return ctx
		}
		if state, err := of.TraceState.Insert(wire.Dialect, e.Trace); err == nil { // if it is printable and not too long
			of.TraceState = state
		}
	}
	sum := sha256.Sum256([]byte(wire.RecordKey(e.From, e.ID)))
	of.TraceID, of.SpanID, of.Remote = id, trace.SpanID(sum[:8]), true
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(of))
}
