package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/internal/openapi"
	"github.com/parley-hub/parley/server/access"
)

// obj is a JSON object while the document is put together.
type obj = map[string]any

func (a *API) openapi(c *call) error { return c.write(http.StatusOK, a.Document()) }

// Document describes every route as OpenAPI 3.1.
func (a *API) Document() map[string]any {
	d := &openapi.Document{
		Title: "Parley", Version: "1",
		Description: "Channels, envelopes, agents, tasks and audit of a Parley hub. Errors are problem+json with a code of the catalogue.",
		URL:         "/", Paths: obj{}, Components: obj{"schemas": schemas(), "responses": problemResponses()},
	}
	for _, rt := range append(a.routes(), keyRoutes...) {
		d.Add(rt.method, rt.path, rt.operation())
	}
	doc := d.Object()
	doc["tags"] = tags()
	return doc
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
	if params := rt.parameters(); len(params) > 0 {
		op["parameters"] = params
	}
	if rt.path == importPath {
		op["requestBody"] = obj{"required": true, "content": openapi.Content("application/jsonl", ref(rt.body))}
	} else if rt.body != "" {
		op["requestBody"] = obj{"required": !rt.bodyOptional(), "content": openapi.Content("application/json", ref(rt.body))}
	}
	return op
}

// tag is the first part of the path.
func (rt route) tag() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(rt.path, "/v1/"), "/")
	return strings.TrimSuffix(name, ".json")
}

func (rt route) parameters() []any {
	params := openapi.PathParameters(rt.path)
	for _, p := range rt.query {
		query := openapi.Query(p.name, p.kind, p.says)
		if p.kind == "integer" {
			query["schema"].(obj)["minimum"] = p.least()
		}
		params = append(params, query)
	}
	if rt.stream {
		params = append(params, openapi.Header("Last-Event-ID", "the id of the last event that was received: the stream goes on after it"))
	}
	if rt.name == "send" || rt.name == "ask" {
		params = append(params, openapi.Header("Idempotency-Key", "the same as idempotency_key in the body"))
	}
	if rt.name == "chat" {
		params = append(params, openapi.Header("Idempotency-Key", "the same as run_id in the body"))
	}
	return params
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
	all := obj{strconv.Itoa(rt.status): success, "default": obj{"$ref": "#/components/responses/Problem"}}
	for _, r := range refusals {
		if r.of(rt) {
			all[strconv.Itoa(r.status)] = obj{"$ref": "#/components/responses/" + r.name}
		}
	}
	return all
}

// refusals are the answers that clients meet most; the others are the default.
var refusals = []struct {
	status     int
	name, says string
	of         func(route) bool
}{
	{http.StatusBadRequest, "BadRequest", "the request is not understood, or a value in it is refused; detail says which", func(route) bool { return true }},
	{http.StatusUnauthorized, "Unauthorized", "a key is needed, or the one that was shown is not known", func(rt route) bool { return rt.role != access.Anonymous }},
	{http.StatusForbidden, "Forbidden", "the key may not do this, or not for this identity", func(rt route) bool { return rt.role != access.Anonymous }},
	{http.StatusNotFound, "NotFound", "there is none of this id or name, or the key may not see it", func(rt route) bool { return strings.Contains(rt.path, "{") }},
	{http.StatusConflict, "Conflict", "not now: it is somebody else's turn, it has ended, or the name or key is taken", func(rt route) bool { return rt.method != http.MethodGet }},
	{http.StatusTooManyRequests, "TooManyRequests", "more than a limit allows; Retry-After says when to try again", func(rt route) bool { return rt.role != access.Anonymous }},
}

func problemResponses() obj {
	all := obj{"Problem": problemResponse("refused: what, why, and what would be accepted")}
	for _, r := range refusals {
		all[r.name] = problemResponse(r.says)
	}
	return all
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

func ref(name string) obj { return openapi.Ref(name) }

func problemResponse(says string) obj {
	return obj{"description": says, "content": openapi.Content("application/problem+json", ref("Problem"))}
}

// bodyOptional reports whether an empty body counts as an empty object.
func (rt route) bodyOptional() bool {
	return rt.body == "Closing" || rt.body == "Cancelling" || rt.body == "NewChatSession"
}
