package api

// chatSchemas are the bodies and answers of chats.
func chatSchemas() obj {
	session := obj{
		"session_id": text, "workspace_type": text, "workspace_id": text, "owner_type": text, "owner_key": text, "user_id": number,
		"agent_slug": text, "title": text, "metadata": object, "provider": text, "model": text, "provider_response_id": maybe,
		"context": text, "mode": text, "created_at": text, "updated_at": text, "last_read_at": maybe, "expires_at": maybe,
	}
	whole := obj{"messages": list(ref("Message"))}
	for name, schema := range session {
		whole[name] = schema
	}
	return obj{
		"Chat": requestOf(obj{
			"as": text, "agent": text, "message": text, "session_id": text, "run_id": text, "input_messages": list(object),
		}),
		"ChatAnswer": obj{
			"type": "object", "required": []any{"session_id", "run_id", "reply", "status", "completed"},
			"properties": obj{
				"session_id": text, "run_id": text, "reply": text, "status": text, "completed": flag, "run_outcome": object, "metadata": object,
			},
		},
		"ChatSessionPage": obj{
			"type": "object", "required": []any{"sessions"},
			"properties": obj{"sessions": list(fieldsOf(session)), "next": text},
		},
		"NewChatSession": requestOf(obj{"as": text, "agent": text, "metadata": object}),
		"ChatSession":    fieldsOf(obj{"session": fieldsOf(whole)}),
		"ChatTitle":      requestOf(obj{"as": text, "title": text}, "title"),
		"ChatDeleted":    fieldsOf(obj{"deleted": flag}),
	}
}

// budgetSchemas are the bodies and answers of budgets.
func budgetSchemas() obj {
	limits := requestOf(obj{"tokens": number, "nano_dollars": number, "turns": number, "nanoseconds": number})
	prices := requestOf(obj{"input_nano_dollars": number, "output_nano_dollars": number})
	return obj{
		"Budget": obj{
			"type": "object", "required": []any{"limits", "prices", "spent"},
			"properties": obj{
				"limits": limits, "prices": prices,
				"spent": obj{
					"type": "object", "required": []any{"version", "tokens", "nano_dollars", "turns"},
					"properties": obj{"version": number, "tokens": number, "nano_dollars": number, "turns": number, "since": instant},
				},
				"open": list(obj{
					"type": "object", "required": []any{"grant_id", "by", "input", "prices"},
					"properties": obj{"grant_id": text, "by": text, "task": text, "input": number, "output": number, "prices": prices},
				}),
			},
		},
		"BudgetSetting": requestOf(obj{"limits": limits, "prices": prices}, "limits"),
		"GrantRequest":  requestOf(obj{"task": text, "turn": flag, "input": number, "output": number, "prices": prices}),
		"Grant":         obj{"type": "object", "properties": obj{"grant_id": text, "output": number, "until": instant}},
		"GrantUse":      requestOf(obj{"task": text, "input": number, "output": number}),
	}
}
