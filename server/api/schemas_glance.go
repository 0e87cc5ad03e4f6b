package api

import "maps"

// glanceSchemas are the entries of lists, summaries and streams.
func glanceSchemas() obj {
	person := obj{"agent_id": text, "name": text, "kind": oneOf("agent", "human", "remote_agent"), "online": flag}
	turn := maps.Clone(person)
	maps.Copy(turn, obj{"since": instant, "handed_at": maybeTime, "due_at": maybeTime, "overdue": flag})
	value := obj{"type": []any{"number", "null"}}
	return obj{
		"Person": fieldsOf(person),
		"Turn":   fieldsOf(turn),
		"Last":   fieldsOf(obj{"sequence": number, "at": instant, "sender_id": text, "event_type": text, "text": text}),
		"Expectation": fieldsOf(obj{"name": text, "on_violation": text, "seconds": obj{"type": "number"}, "waits": list(fieldsOf(obj{
			"agent_id": maybe, "since": instant, "due_at": instant, "fired_at": maybeTime,
		}))}),
		"Row": fieldsOf(obj{
			"channel_id": text, "title": text, "type": text, "state": oneOf("pending", "active", "closing", "closed", "expired"),
			"close_reason": text, "labels": labels, "participants": list(ref("Person")), "created_at": instant, "closed_at": maybeTime,
			"expires_at": maybeTime, "length": number, "position": text, "last": orNull(ref("Last")), "turn": orNull(ref("Turn")),
			"turns": obj{
				"anyOf":       []any{obj{"type": "null"}, fieldsOf(obj{"taken": number, "most": maybeNumber})},
				"description": "null where turns are not counted, and of channels that have ended",
			},
			"requests_open": number, "quarantined": flag,
		}),
		"TurnPage": fieldsOf(obj{"next": text, "prev": text, "names": labels, "turns": list(fieldsOf(obj{
			"channel_id": text, "title": text, "type": text, "envelope_id": maybe, "since": instant, "handed_at": maybeTime, "due_at": maybeTime, "overdue": flag,
		}))}),
		"CursorPage": fieldsOf(obj{"next": text, "prev": text, "channels": list(fieldsOf(obj{
			"channel_id": text, "readers": list(fieldsOf(obj{"reader": text, "envelope_id": maybe})),
		}))}),
		"Summary": fieldsOf(obj{
			"at": instant, "position": text, "admitted_1m": number, "refused_1m": number,
			"turns_failed": obj{"type": "integer", "description": "turns that agents reported as failed, since the hub was started"},
			"slow_cut_10m": obj{"type": "integer", "description": "readers cut off in ten minutes, over all dialects"},
			"channels": fieldsOf(obj{
				"pending": number, "active": number, "overdue": number, "waiting_for_people": number, "quarantined": number,
				"by_type": obj{"type": "object", "additionalProperties": number},
			}),
			"agents":   fieldsOf(obj{"registered": number, "online": number, "people": number}),
			"tasks":    fieldsOf(obj{"created": number, "running": number}),
			"requests": fieldsOf(obj{"open": number, "due_within_5m": number, "overdue": number}),
		}),
		"Stats": fieldsOf(obj{
			"step": obj{"type": "number", "description": "seconds"}, "at": list(instant),
			"series": obj{"type": "object", "additionalProperties": list(value)},
		}),
		"ClosingMany": requestOf(obj{
			"filter": requestOf(obj{
				"agent": text, "type": text, "state": list(text), "label": list(text), "q": text, "waiting_for": text, "overdue": flag,
				"channel_ids": obj{"type": "array", "items": text, "description": "these channels, in place of the other members"},
			}),
			"reason": text, "dry_run": flag,
			"expect": obj{"type": "integer", "description": "how many channels are to be closed; needed unless it is a dry run"},
			"after":  obj{"type": "string", "description": "next of the call before"},
		}, "filter"),
		"ClosedMany": fieldsOf(obj{
			"matched": number, "closed": number, "next": text,
			"failed": list(fieldsOf(obj{"channel_id": text, "code": text, "detail": text})),
		}),
		"WatchTopics": requestOf(obj{"topics": list(text)}, "topics"),
	}
}
