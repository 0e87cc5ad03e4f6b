package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/server/access"
)

// obj is a JSON object while the document is put together.
type obj = map[string]any

func (a *API) openapi(c *call) error { return c.write(http.StatusOK, a.Document()) }

// Document describes every route as OpenAPI 3.1.
func (a *API) Document() map[string]any {
	paths := obj{}
	for _, rt := range append(a.routes(), keyRoutes...) {
		at, ok := paths[rt.path].(obj)
		if !ok {
			at = obj{}
			paths[rt.path] = at
		}
		at[strings.ToLower(rt.method)] = rt.operation()
	}
	return obj{
		"openapi": "3.1.0",
		"info": obj{
			"title": "Parley", "version": "1",
			"description": "Channels, envelopes, agents, tasks and audit of a Parley hub. Errors are problem+json with a code of the catalogue.",
			"license":     obj{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{obj{"url": "/"}},
		"security": []any{obj{"bearer": []any{}}, obj{}},
		"tags":     tags(),
		"paths":    paths,
		"components": obj{
			"securitySchemes": obj{"bearer": obj{"type": "http", "scheme": "bearer", "description": "a key made with parley keys add"}},
			"schemas":         schemas(),
			"responses":       obj{"Problem": problemResponse()},
		},
	}
}

func (rt route) operation() obj {
	op := obj{
		"operationId": rt.name,
		"summary":     rt.says,
		"tags":        []any{rt.tag()},
		"responses":   rt.responses(),
	}
	if rt.role == access.Anonymous {
		op["security"] = []any{obj{}}
	}
	if params := rt.parameters(); params != nil {
		op["parameters"] = params
	}
	if rt.path == importPath {
		op["requestBody"] = obj{"required": true, "content": obj{"application/jsonl": obj{"schema": ref(rt.body)}}}
	} else if rt.body != "" {
		op["requestBody"] = obj{"required": !rt.bodyOptional(), "content": obj{"application/json": obj{"schema": ref(rt.body)}}}
	}
	return op
}

// tag is the first part of the path.
func (rt route) tag() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(rt.path, "/v1/"), "/")
	return strings.TrimSuffix(name, ".json")
}

func (rt route) parameters() []any {
	var params []any
	for _, part := range strings.Split(rt.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, obj{
				"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": obj{"type": "string"},
			})
		}
	}
	for _, p := range rt.query {
		schema := obj{"type": p.kind}
		if p.kind == "array" {
			schema["items"] = obj{"type": "string"}
		}
		params = append(params, obj{"name": p.name, "in": "query", "description": p.says, "schema": schema})
	}
	if rt.stream {
		params = append(params, header("Last-Event-ID", "the id of the last event that was received: the stream goes on after it"))
	}
	if rt.name == "send" || rt.name == "ask" {
		params = append(params, header("Idempotency-Key", "the same as idempotency_key in the body"))
	}
	if rt.name == "chat" {
		params = append(params, header("Idempotency-Key", "the same as run_id in the body"))
	}
	return params
}

func header(name, says string) obj {
	return obj{"name": name, "in": "header", "description": says, "schema": obj{"type": "string"}}
}

func (rt route) responses() obj {
	success := obj{"description": "done"}
	content := obj{}
	if rt.answer == "Archive" {
		content["application/x-tar"] = obj{"schema": obj{"type": "string", "contentMediaType": "application/x-tar"}}
	} else if rt.answer == "Export" {
		for _, kind := range exportForms {
			content[kind[0]] = obj{"schema": obj{"type": "string"}}
		}
		content["application/json"] = obj{"schema": list(ref("Message"))}
	} else if rt.answer != "" {
		content["application/json"] = obj{"schema": ref(rt.answer)}
	}
	if rt.stream {
		content["text/event-stream"] = obj{"schema": obj{"type": "string", "description": streamSays}}
	}
	if len(content) > 0 {
		success["content"] = content
	}
	return obj{strconv.Itoa(rt.status): success, "default": obj{"$ref": "#/components/responses/Problem"}}
}

const streamSays = "Events named envelope, request or audit carry one entry as JSON, and its position as their id; " +
	"live is an envelope that is not of the history; gap says that the position asked for no longer exists, and where the stream goes on. " +
	"A watch has an object with its topic as data of each event: hello, envelope, live, request, audit, row, agent, summary, sample, gap, bye; " +
	"the id of an event names the place in every exact topic. " +
	"A chat session has created, started, appended, replaced, compacted, described and ended, with their positions as ids, and, live, delta and reset. " +
	"Lines that begin with a colon only keep the connection."

func tags() []any {
	says := [][2]string{
		{"channels", "Conversations: ordered logs with rules."},
		{"events", "Envelopes of every channel."},
		{"agents", "Who takes part."},
		{"tasks", "What they work on."},
		{"requests", "What waits for somebody."},
		{"chat", "Sessions of a person or program with an agent."},
		{"audit", "What happened."},
		{"keys", "Who may connect, as what."},
		{"summary", "How many of what there are."},
		{"stats", "What the hub measured of itself."},
		{"watch", "One stream for several topics."},
		{"session", "Signing in with a browser."},
		{"sessions", "Browsers that are signed in."},
		{"backup", "A copy of everything."},
		{"import", "Conversations out of files."},
		{"health", "How the hub is."},
		{"openapi", "This document."},
	}
	list := make([]any, len(says))
	for i, tag := range says {
		list[i] = obj{"name": tag[0], "description": tag[1]}
	}
	return list
}

func ref(name string) obj { return obj{"$ref": "#/components/schemas/" + name} }

func problemResponse() obj {
	return obj{
		"description": "refused: what, why, and what would be accepted",
		"content":     obj{"application/problem+json": obj{"schema": ref("Problem")}},
	}
}

// bodyOptional reports whether an empty body is as good as an empty object.
func (rt route) bodyOptional() bool {
	return rt.body == "Closing" || rt.body == "Cancelling" || rt.body == "NewChatSession"
}
