package api

import "maps"

func sessionSchemas() obj {
	session := obj{"id": text, "key": text, "created_at": instant, "expires_at": instant, "address": text}
	signedIn := maps.Clone(session)
	signedIn["proof"] = obj{"type": "string", "description": "to be sent in the header Parley-Session; shown this once"}
	listed := maps.Clone(session)
	listed["current"] = obj{"type": "boolean", "description": "whether it is the one that asks"}
	return obj{
		"Session": fieldsOf(obj{
			"role": oneOf("operator", "reader", "agent", "anonymous"), "agent": maybe, "agent_id": maybe, "key": maybe,
			"via": obj{"enum": []any{"loopback", "bearer", "session", nil}}, "expires_at": maybeTime,
			"may":        obj{"type": "array", "items": text, "description": "the operations, by their ids, that the role does not rule out"},
			"keys_exist": flag, "now": instant,
			"hub": fieldsOf(obj{"version": text, "name": text, "started_at": instant, "epoch": text}),
		}),
		"SignIn":      requestOf(obj{"token": text, "code": text}),
		"SignedIn":    fieldsOf(signedIn),
		"SessionCode": fieldsOf(obj{"code": text, "expires_at": instant}),
		"SessionInfo": fieldsOf(listed),
		"SessionList": fieldsOf(obj{"sessions": list(ref("SessionInfo"))}),
	}
}
