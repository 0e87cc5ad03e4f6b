package api

// chatSchemas are what chats are asked and answered with.
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
