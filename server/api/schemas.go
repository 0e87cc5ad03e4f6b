package api

import (
	"maps"
	"slices"

	"github.com/parley-hub/parley/fault"
)

// Schemas of what goes in and out, by the names that routes use.

func schemas() obj {
	text, number, flag := obj{"type": "string"}, obj{"type": "integer"}, obj{"type": "boolean"}
	maybe := obj{"type": []any{"string", "null"}}
	maybeNumber := obj{"type": []any{"integer", "null"}}
	object := obj{"type": "object"}
	list := func(items any) obj { return obj{"type": "array", "items": items} }
	labels := obj{"type": "object", "additionalProperties": text}
	event := fieldsOf(obj{
		"position": text, "sequence": number, "envelope_id": text, "channel_id": text, "sender_id": text,
		"audience": obj{"type": []any{"array", "null"}, "items": text}, "event_type": text, "event_data": object,
		"causation_id": maybe, "task_id": maybe, "trace_id": maybe, "priority": text, "depth": number,
		"idempotency_key": maybe, "ttl_seconds": maybeNumber, "created_at": timeSchema(),
	})
	metadata := obj{
		"channel_id": text, "manifest": object, "creator_id": text, "participants": list(object),
		"state": obj{"enum": []any{"pending", "active", "closing", "closed", "expired"}}, "created_at": timeSchema(),
		"expires_at": maybe, "closed_at": maybe, "close_reason": text, "parent_channel_id": maybe,
		"knobs": object, "labels": labels, "required_acks": maybeNumber,
		"pending_acks": list(text), "rejected_by": list(text),
	}
	shown := obj{
		"folded_state": obj{"type": []any{"object", "null"}}, "expected_next_speaker": maybe,
		"length": number, "position": text, "warnings": list(text), "names": labels,
	}
	for k, v := range metadata {
		shown[k] = v
	}
	viewEvent := obj{
		"type": "object", "required": []any{"role", "text"}, "properties": obj{
			"role": text, "text": text, "elided": number, "envelope_id": text, "replies": list(ref("ViewEvent")),
		},
	}
	return obj{
		"Event":         event,
		"EventPage":     fieldsOf(obj{"events": list(ref("Event")), "next": text, "more": flag}),
		"WideEventPage": fieldsOf(obj{"events": list(ref("Event")), "next": text, "more": flag}),
		"Metadata":      fieldsOf(metadata),
		"Channel":       fieldsOf(shown),
		"ChannelPage":   fieldsOf(obj{"channels": list(ref("Metadata")), "next": text, "names": labels}),
		"Opening": obj{"type": "object", "required": []any{"type", "participants"}, "additionalProperties": false, "properties": obj{
			"creator": text, "type": text, "version": number, "participants": list(text), "required_acks": maybeNumber,
			"ttl": obj{"type": []any{"string", "integer", "null"}}, "knobs": object, "labels": labels, "intent": text,
		}},
		"Closing": obj{"type": "object", "additionalProperties": false, "properties": obj{"reason": text}},
		"Send": obj{"type": "object", "additionalProperties": false, "properties": obj{
			"sender": text, "text": text, "event_type": text, "event_data": object, "audience": list(text),
			"causation_id": text, "task_id": text, "priority": text, "idempotency_key": text, "ttl_seconds": number,
		}},
		"Cancelling": obj{"type": "object", "additionalProperties": false, "properties": obj{"by": text, "reason": text}},
		"Task": fieldsOf(obj{
			"task_id": text, "owner_id": text, "spec": object, "state": text, "created_at": maybe, "started_at": maybe,
			"completed_at": maybe, "expires_at": maybe, "last_progress_at": maybe, "progress": object, "result": obj{},
			"error": text, "channel_id": maybe,
		}),
		"TaskPage":  fieldsOf(obj{"tasks": list(ref("Task")), "next": text}),
		"Sent":      fieldsOf(obj{"envelope_id": text}),
		"ViewEvent": viewEvent,
		"View":      fieldsOf(obj{"view": text, "as": text, "events": list(ref("ViewEvent"))}),
		"Agent": fieldsOf(obj{
			"passport": object, "resume": object, "rule": object, "skill_md": maybe, "online": flag, "inbox_depth": number,
		}),
		"AgentPage": fieldsOf(obj{"agents": list(ref("Agent")), "next": text}),
		"AuditPage": fieldsOf(obj{"records": list(object), "next": text, "position": text}),
		"Health":    fieldsOf(obj{"version": text, "hub": object, "stats": object, "quarantined": labels}),
		"OpenAPI":   object,
		"Problem": fieldsOf(obj{
			"type": text, "title": text, "status": number, "code": obj{"enum": codes()}, "detail": text,
		}),
	}
}

// fieldsOf is an object that always has all of its properties.
func fieldsOf(properties obj) obj {
	required := slices.Sorted(maps.Keys(properties))
	return obj{"type": "object", "required": required, "properties": properties}
}

func timeSchema() obj { return obj{"type": "string", "format": "date-time"} }

func codes() []any {
	var list []any
	for _, entry := range fault.Catalogue() {
		list = append(list, string(entry.Code))
	}
	return list
}
