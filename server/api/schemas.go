package api

import (
	"maps"
	"slices"

	"github.com/parley-hub/parley/fault"
)

// Schemas that others are built from.
var (
	text        = obj{"type": "string"}
	number      = obj{"type": "integer"}
	flag        = obj{"type": "boolean"}
	maybe       = obj{"type": []any{"string", "null"}}
	maybeNumber = obj{"type": []any{"integer", "null"}}
	counts      = obj{"type": "object", "additionalProperties": number}
	object      = obj{"type": "object", "additionalProperties": true}
	labels      = obj{"type": "object", "additionalProperties": text}
	instant     = obj{"type": "string", "format": "date-time"}
	maybeTime   = obj{"type": []any{"string", "null"}, "format": "date-time"}
)

func list(items any) obj { return obj{"type": "array", "items": items} }

func orNull(schema obj) obj { return obj{"anyOf": []any{obj{"type": "null"}, schema}} }

func oneOf(values ...any) obj { return obj{"enum": values} }

// How many entries a list has in all.
var (
	total      = obj{"type": []any{"integer", "null"}, "description": "how many the filters select in all; null unless count is asked for. Counting is bounded: channels that have not ended are known by type, of other lists at most 1,000 are counted"}
	totalExact = obj{"type": "boolean", "description": "false: there are at least total"}
)

// fieldsOf is an object in which all properties are required.
func fieldsOf(properties obj) obj {
	required := slices.Sorted(maps.Keys(properties))
	return obj{"type": "object", "required": required, "properties": properties}
}

// requestOf is an object that has no other properties.
func requestOf(properties obj, required ...any) obj {
	schema := obj{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// schemas returns the schemas of bodies and answers, by the names in routes.
func schemas() obj {
	all := obj{}
	for _, part := range []obj{channelSchemas(), eventSchemas(), agentSchemas(), requestSchemas(), sessionSchemas(), pastSchemas(), glanceSchemas(), chatSchemas(), budgetSchemas(), otherSchemas()} {
		maps.Copy(all, part)
	}
	return all
}

func channelSchemas() obj {
	metadata := obj{
		"channel_id": text, "manifest": ref("Manifest"), "creator_id": text, "participants": list(ref("Participant")),
		"state": oneOf("pending", "active", "closing", "closed", "expired"), "created_at": instant,
		"expires_at": maybeTime, "closed_at": maybeTime, "close_reason": text, "parent_channel_id": maybe,
		"knobs": object, "labels": labels, "required_acks": maybeNumber,
		"pending_acks": list(text), "rejected_by": list(text),
	}
	shown := maps.Clone(metadata)
	maps.Copy(shown, obj{
		"folded_state":          obj{"type": []any{"object", "null"}, "additionalProperties": true, "description": "what the adapter made of the log; null if that adapter is not loaded"},
		"expected_next_speaker": maybe, "length": number, "position": text, "warnings": list(text), "names": labels,
		"turn": orNull(ref("Turn")), "expectations": list(ref("Expectation")), "requests_open": number, "last": orNull(ref("Last")),
	})
	return obj{
		"Metadata": fieldsOf(metadata),
		"Channel":  fieldsOf(shown),
		"ChannelPage": fieldsOf(obj{
			"channels": list(obj{"anyOf": []any{ref("Metadata"), ref("Row")}}), "next": text, "prev": text, "names": labels, "position": text,
			"total": total, "total_exact": totalExact,
		}),
		"Participant": fieldsOf(obj{"agent_id": text, "role": text, "order": number, "joined_at": instant}),
		"Manifest": fieldsOf(obj{
			"type": text, "version": number, "knobs_schema": object, "default_view_policy": text,
			"participants": fieldsOf(obj{"min": number, "max": maybeNumber, "roles": list(text)}),
			"expectations": list(fieldsOf(obj{
				"name": text, "on_violation": text, "params": object, "applies_to": obj{"type": []any{"array", "null"}, "items": text},
			})),
		}),
		"Opening": requestOf(obj{
			"creator": text, "type": text, "version": number, "participants": list(text), "required_acks": maybeNumber,
			"ttl": obj{"type": []any{"string", "integer", "null"}}, "knobs": object, "labels": labels, "intent": text,
		}, "type", "participants"),
		"Closing": requestOf(obj{"reason": text}),
		"ViewEvent": obj{
			"type": "object", "required": []any{"role", "text"}, "properties": obj{
				"role": text, "text": text, "elided": number, "envelope_id": text, "reply_to": text, "replies": list(ref("ViewEvent")),
			},
		},
		"View": fieldsOf(obj{"view": text, "as": text, "events": list(ref("ViewEvent"))}),
	}
}

func eventSchemas() obj {
	return obj{
		"Event": fieldsOf(obj{
			"position": text, "sequence": number, "envelope_id": text, "channel_id": text, "sender_id": text,
			"audience": obj{"type": []any{"array", "null"}, "items": text}, "event_type": text, "event_data": object,
			"causation_id": maybe, "task_id": maybe, "trace_id": maybe, "priority": text, "depth": number,
			"idempotency_key": maybe, "ttl_seconds": maybeNumber, "created_at": instant,
		}),
		"EventPage": fieldsOf(obj{"events": list(ref("Event")), "next": text, "more": flag}),
		"ChannelEventPage": fieldsOf(obj{
			"events": list(ref("Event")), "next": text, "more": flag, "prev": text, "first": text,
			"scanned": obj{"type": "integer", "description": "how many events were read for the page"},
		}),
		"Send": requestOf(obj{
			"sender": text, "text": text, "event_type": text, "event_data": object, "audience": list(text),
			"causation_id": text, "task_id": text, "priority": text, "idempotency_key": text, "ttl_seconds": number,
		}),
		"Sent":   fieldsOf(obj{"envelope_id": text}),
		"Live":   requestOf(obj{"sender": text, "event_type": text, "event_data": object, "causation_id": text}),
		"Bundle": obj{"type": "string", "description": "what a channel's export gives as form=bundle"},
		"Imported": fieldsOf(obj{
			"home_id": maybe, "contents": number,
			"channels": list(fieldsOf(obj{"channel_id": text, "imported_from": text, "envelopes": number})),
		}),
	}
}

func agentSchemas() obj {
	amount := obj{"type": []any{"number", "null"}}
	limits := fieldsOf(obj{
		"max_concurrent_channels": number, "max_concurrent_tasks": number, "delegation_depth": number,
		"channel_ttl_default": text, "task_ttl_default": text,
		"rate":  fieldsOf(obj{"per_minute": number, "burst": number}),
		"inbox": fieldsOf(obj{"max_pending": number, "overflow": text, "high_water": maybeNumber}),
	})
	return obj{
		"Message": obj{
			"type": "object", "required": []any{"schema", "version", "type", "role", "content", "payload", "metadata"},
			"properties": obj{
				"schema": obj{"const": "agents-api.message"}, "version": obj{"const": 1}, "type": text, "role": text,
				"content": obj{"type": []any{"string", "array", "object"}, "items": obj{}, "additionalProperties": true}, "payload": object, "metadata": object,
				"id": text, "created_at": text, "updated_at": text,
			},
		},
		"Messages": fieldsOf(obj{"as": text, "messages": list(ref("Message"))}),
		"Agent": fieldsOf(obj{
			"passport": ref("Passport"), "resume": ref("Resume"), "rule": ref("Rule"), "skill_md": maybe,
			"operator_rule": obj{"anyOf": []any{obj{"type": "null"}, ref("OperatorRule")}}, "effective_limits": limits,
			"online": flag, "inbox_depth": number, "last_seen_at": maybeTime, "open_channels": number,
			"connections":   list(fieldsOf(obj{"dialect": text, "address": text, "since": instant})),
			"turns_waiting": number, "oldest_turn_at": maybeTime,
		}),
		"AgentPage": fieldsOf(obj{"agents": list(ref("Agent")), "next": text, "prev": text, "total": number, "total_exact": totalExact}),
		"Passport": fieldsOf(obj{
			"name": text, "owner": text, "provider": maybe, "model": maybe, "region": maybe, "kind": maybe, "hub_id": maybe,
			"version": number, "agent_id": text, "created_at": instant,
			"cost": obj{"anyOf": []any{
				obj{"type": "null"}, fieldsOf(obj{"input_per_mtok": amount, "output_per_mtok": amount, "latency_tier": maybe}),
			}},
			"auth": fieldsOf(obj{"scheme": text, "issuer": maybe, "audience": maybe, "key_fingerprint": maybe, "claim": object}),
		}),
		"Resume": fieldsOf(obj{
			"claimed_capabilities": list(text), "domains": list(text), "summary": text, "version": number, "last_updated": text,
			"examples": list(fieldsOf(obj{
				"title": text, "outcome": text, "task_id": maybe, "channel_id": maybe, "when": maybe, "note": text,
			})),
			"observed": obj{"type": "object", "additionalProperties": fieldsOf(obj{
				"n": number, "completed": number, "failed": number, "expired": number, "p50_latency_ms": maybeNumber,
			})},
		}),
		"Rule": fieldsOf(obj{
			"version": number,
			"access": fieldsOf(obj{
				"inbound_from": list(text), "outbound_to": list(text),
				"channel_types": fieldsOf(obj{"initiate": list(text), "accept": list(text)}),
			}),
			"limits": limits,
		}),
		"Registration": requestOf(obj{
			"name": text, "kind": oneOf("agent", "human", "remote_agent"), "summary": text, "capabilities": list(text),
		}),
		"OperatorRule": requestOf(obj{
			"access": requestOf(obj{
				"inbound_from": list(text), "outbound_to": list(text),
				"channel_types": requestOf(obj{"initiate": list(text), "accept": list(text)}),
			}),
			"limits": requestOf(obj{
				"max_concurrent_channels": number, "max_concurrent_tasks": number, "delegation_depth": number,
				"rate": requestOf(obj{"per_minute": number, "burst": number}), "inbox": requestOf(obj{"max_pending": number}),
			}),
		}),
	}
}

func requestSchemas() obj {
	choice := obj{"type": "object", "required": []any{"id"}, "properties": obj{"id": text, "label": text, "consequence": text}, "additionalProperties": false}
	trigger := obj{"type": "object", "required": []any{"envelope_id"}, "properties": obj{"envelope_id": text, "sequence": number}, "additionalProperties": false}
	action := obj{"name": text, "arguments": obj{}}
	shown := maps.Clone(action)
	shown["digest"] = text
	asked := obj{
		"kind": text, "asked_by": text, "for": text, "due_at": instant, "if_nobody_answers": text, "agents_may_answer": flag,
		"title": text, "body": text, "choices": list(choice), "trigger": trigger, "run_id": text,
	}
	asking := maps.Clone(asked)
	maps.Copy(asking, obj{"idempotency_key": text, "action": obj{"type": "object", "required": []any{"name"}, "properties": action, "additionalProperties": false}})
	maps.Copy(asked, obj{
		"request_id": text, "channel_id": text, "channel_title": text, "asked_at": instant, "state": oneOf("open", "answered", "expired", "cancelled"), "reason": text,
		"action": obj{"type": "object", "required": []any{"name", "digest"}, "properties": shown},
		"answer": obj{"type": "object", "required": []any{"by", "at", "envelope_id"}, "properties": obj{
			"choice": text, "text": text, "note": text, "at": instant, "envelope_id": text,
			"by": obj{"type": "object", "properties": obj{"agent_id": text, "key": text, "connection": text}},
		}},
		"similar": obj{"type": "object", "required": []any{"approved", "denied"}, "properties": obj{"approved": number, "denied": number, "last": instant}},
	})
	return obj{
		"Asking":      requestOf(asking, "kind", "title"),
		"Answer":      requestOf(obj{"choice": text, "text": text, "as": text, "note": text, "digest": text}),
		"RequestPage": fieldsOf(obj{"requests": list(ref("Request")), "next": text, "prev": text, "position": text, "names": labels, "total": total, "total_exact": totalExact}),
		"Request": obj{
			"type": "object", "properties": asked,
			"required": []any{"request_id", "kind", "channel_id", "asked_by", "asked_at", "state", "title"},
		},
	}
}

func otherSchemas() obj {
	key := obj{"id": text, "role": oneOf("operator", "reader", "agent"), "agent": text, "created": instant}
	fresh := maps.Clone(key)
	fresh["token"] = text
	return obj{
		"Cancelling": requestOf(obj{"by": text, "reason": text}),
		"Task": fieldsOf(obj{
			"task_id": text, "owner_id": text, "created_at": instant, "started_at": maybeTime, "completed_at": maybeTime,
			"expires_at": maybeTime, "last_progress_at": maybeTime, "progress": object, "result": obj{}, "error": text, "channel_id": maybe,
			"state": oneOf("created", "running", "completed", "failed", "expired", "cancelled"),
			"spec":  fieldsOf(obj{"title": text, "description": text, "payload": object, "capability": maybe}),
		}),
		"TaskPage": fieldsOf(obj{"tasks": list(ref("Task")), "next": text, "prev": text, "total": total, "total_exact": totalExact}),
		"AuditRecord": obj{
			"type": "object", "required": []any{"at", "kind"}, "properties": obj{"at": instant, "kind": text},
			"additionalProperties": true, "description": "what else it has depends on its kind",
		},
		"AuditPage": fieldsOf(obj{"records": list(ref("AuditRecord")), "next": text, "prev": text, "position": text, "total": total, "total_exact": totalExact}),
		"Health": fieldsOf(obj{
			"version": text, "started_at": instant, "quarantined": labels,
			"hub": fieldsOf(obj{
				"active_channels": number, "registered_agents": number, "pending_inbox_total": number, "max_pending_inbox_depth": maybeNumber,
				"registered_listeners": number, "adapters_loaded": number, "audit_log_bytes": number, "telemetry_log_bytes": number,
			}),
			"stats": fieldsOf(obj{
				"channels_loaded": number, "bytes_folded": number, "live_lost": number, "loaded": number, "waiting": number,
				"refused": counts, "refused_at_door": counts, "followers": number,
			}),
			"cluster": orNull(fieldsOf(obj{
				"name": text, "node": text, "shards": number, "waiting": text,
				"nodes": list(fieldsOf(obj{
					"name": text, "address": text, "version": text, "role": oneOf("serving", "standby", "joining"), "lag": number,
				})),
			})),
		}),
		"KeyRequest": requestOf(obj{"role": oneOf("operator", "reader", "agent"), "agent": text, "token": text}),
		"Key":        obj{"type": "object", "required": []any{"created", "id", "role"}, "properties": key},
		"NewKey":     obj{"type": "object", "required": []any{"created", "id", "role"}, "properties": fresh},
		"KeyList":    fieldsOf(obj{"keys": list(ref("Key"))}),
		"OpenAPI":    object,
		"Problem": obj{
			"type": "object", "required": []any{"code", "detail", "status", "title", "type"}, "properties": obj{
				"type": text, "title": text, "status": number, "code": oneOf(codes()...), "detail": text,
				"reason":   oneOf(reasons()...),
				"details":  obj{"type": "object", "additionalProperties": text, "description": "what belongs to the reason"},
				"position": obj{"type": "string", "description": "where to start again; only with the code gap"},
				"request":  obj{"$ref": "#/components/schemas/Request", "description": "what became of the request; only with reasons that begin with request_"},
			},
		},
	}
}

func reasons() []any {
	var list []any
	for _, entry := range fault.Reasons() {
		list = append(list, string(entry.Reason))
	}
	return list
}

func codes() []any {
	var list []any
	for _, entry := range fault.Catalogue() {
		list = append(list, string(entry.Code))
	}
	return list
}
