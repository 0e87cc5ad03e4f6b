package hpd

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/openapi"
)

// idNames are the names of the ids in a path, by the segment before them.
var idNames = map[string]string{
	"agents": "agentId", "sessions": "sessionId", "branches": "branchId", "threads": "threadId", "runs": "runtimeRunId", "content": "contentId",
}

// openAPIPath returns a route's path with names for its ids.
func openAPIPath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if s == "{}" {
			segments[i] = "{" + idNames[segments[i-1]] + "}"
		}
	}
	return strings.Join(segments, "/")
}

// openAPI describes every route under both names. It uses the table that serves the
// routes.
func (s *Server) openAPI(c *call) error {
	named := object{"Problem": problemSchema, "Event": eventSchema}
	surfaces := []*openapi.Types{
		{Schemas: named, Known: knownSchemas},
		{Schemas: named, Known: knownSchemas, Suffix: "OfThreads", Member: wire.Threads.Member},
	}
	described := bodiesOf()
	doc := &openapi.Document{
		Title: "HPD hosted API", Version: wire.Version,
		Description: "Sessions, branches, runs and events. docs/hpd-routes.md says who may call what.",
		URL:         s.cfg.Prefix, Paths: object{}, Components: object{"schemas": named},
	}
	for i, r := range s.routes {
		for j, types := range surfaces {
			path := r.path
			switch onThreads := j == int(wire.Threads); {
			case onThreads && !strings.Contains(path, "/branches"):
				continue
			case onThreads:
				path = strings.ReplaceAll(path, "/branches", "/threads")
			case strings.HasSuffix(path, "/thread-graph"):
				types = surfaces[wire.Threads]
			}
			path = openAPIPath(path)
			operation := described[r.method+" "+r.path].operation(types, path)
			operation["summary"], operation["operationId"] = r.says, "op"+strconv.Itoa(i)+"s"+strconv.Itoa(j)
			doc.Add(r.method, path, operation)
		}
	}
	return c.write(http.StatusOK, doc.Object())
}

// operation describes a route on a surface.
func (b body) operation(types *openapi.Types, path string) object {
	parameters := openapi.PathParameters(path)
	for _, p := range b.query {
		parameters = append(parameters, openapi.Query(p.name, p.kind, p.says))
	}
	done := object{"description": http.StatusText(b.status)}
	switch {
	case b.kind != "":
		done["content"] = openapi.Content(b.kind, object{"type": "string"})
	case b.out != nil:
		done["content"] = openapi.Content("application/json", types.Of(b.out))
	}
	operation := object{"parameters": parameters, "responses": object{
		strconv.Itoa(b.status): done,
		"default":              object{"description": "Refused.", "content": openapi.Content(wire.ProblemType, openapi.Ref("Problem"))},
	}}
	if b.in != nil {
		kind := "application/json"
		if _, isForm := b.in.(form); isForm {
			kind = "multipart/form-data"
		}
		operation["requestBody"] = object{"required": !b.optional, "content": openapi.Content(kind, types.Request(b.in, b.needs))}
	}
	return operation
}

// knownSchemas are the schemas of placeholder types.
var knownSchemas = map[reflect.Type]object{
	reflect.TypeFor[event](): openapi.Ref("Event"),
	reflect.TypeFor[form]():  {"type": "object", "required": []string{"file"}, "properties": object{"file": object{"type": "string", "format": "binary"}}},
}

var (
	eventSchema = object{
		"type": "object", "required": []string{"type"}, "description": "An event; docs/hpd-events.md lists the types and their members.",
		"properties": object{"version": object{"type": "string"}, "type": object{"type": "string"}},
	}
	problemSchema = object{
		"type": "object", "required": []string{"type", "title", "status", "errors"},
		"properties": object{
			"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
			"errors": object{"type": "object", "additionalProperties": object{"type": "array", "items": object{"type": "string"}}},
			"result": object{"description": "What became of a response; of the responses routes only."},
		},
	}
)
