package api

// pastSchemas describe a channel as it was, its graph and its path.
func pastSchemas() obj {
	anyValue := obj{}
	return obj{
		"PastState": fieldsOf(obj{
			"at":    fieldsOf(obj{"sequence": number, "position": text, "envelope_id": text, "created_at": instant}),
			"state": oneOf("pending", "active", "closing", "closed", "expired"), "close_reason": maybe, "folded_state": anyValue,
			"turn": orNull(ref("Turn")),
			"participants": list(fieldsOf(obj{
				"agent_id": text, "role": text, "removed": flag,
				"hidden": obj{"type": "boolean", "description": "told nothing until it speaks; known of the newest moment only"},
			})),
			"context": list(fieldsOf(obj{"key": text, "value": anyValue, "sequence": number, "envelope_id": text, "sender_id": text})),
		}),
		// Nested conditions are optional: generators refuse a type that must contain
		// itself.
		"Explained": obj{"type": "object", "required": []any{"holds", "name", "read", "says"}, "properties": obj{
			"name": text, "says": text, "holds": flag,
			"read": list(fieldsOf(obj{"what": text, "value": anyValue, "sequence": number, "envelope_id": text, "sender_id": text})),
			"of":   list(ref("Explained")),
		}},
		"Step": fieldsOf(obj{
			"sequence": number, "envelope_id": text, "created_at": instant, "turn": number, "speaker_id": text,
			"by": oneOf("finish", "handoff", "rule", "default"), "rule": maybeNumber, "tool": text,
			"decision":    fieldsOf(obj{"speaker_id": maybe, "end": flag, "reason": maybe}),
			"because":     obj{"anyOf": []any{obj{"type": "null"}, ref("Explained")}},
			"passed_over": list(fieldsOf(obj{"rule": number, "because": ref("Explained")})),
			"changed":     list(fieldsOf(obj{"key": text, "before": anyValue, "after": anyValue})),
		}),
		"PathPage": fieldsOf(obj{"steps": list(ref("Step")), "next": text, "prev": text}),
		"Graph": fieldsOf(obj{
			"initial": text, "max_turns": maybeNumber,
			"nodes": list(obj{"type": "object", "required": []any{"id", "kind", "label", "taken", "current"}, "properties": obj{
				"id": text, "kind": oneOf("start", "agent", "abstract", "end"), "label": text, "agent_id": text, "taken": flag, "current": flag,
			}}),
			"edges": list(fieldsOf(obj{
				"id": text, "from": text, "to": text, "kind": oneOf("start", "rule", "default", "path"), "rule": maybeNumber,
				"label": text, "priority": number, "turns": list(number),
			})),
			"findings": list(fieldsOf(obj{"severity": text, "code": text, "path": text, "message": text})),
		}),
	}
}
