package hpd

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// names of the ids in a path, by the segment before them.
var idNames = map[string]string{
	"agents": "agentId", "sessions": "sessionId", "branches": "branchId", "threads": "threadId", "runs": "runtimeRunId", "content": "contentId",
}

// openAPIPath is a route's path with names for its ids.
func openAPIPath(path string) (named string, ids []string) {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if s == "{}" {
			name := idNames[segments[i-1]]
			segments[i], ids = "{"+name+"}", append(ids, name)
		}
	}
	return strings.Join(segments, "/"), ids
}

// openAPI describes every route under both names, from the table that serves
// them.
func (s *Server) openAPI(c *call) error {
	named := object{"Problem": problemSchema}
	surfaces := []*schemas{{wire.Branches, named}, {wire.Threads, named}}
	described := bodiesOf()
	paths := object{}
	for i, r := range s.routes {
		for j, d := range surfaces {
			path := r.path
			switch {
			case d.surface == wire.Threads && !strings.Contains(path, "/branches"):
				continue
			case d.surface == wire.Threads:
				path = strings.ReplaceAll(path, "/branches", "/threads")
			case strings.HasSuffix(path, "/thread-graph"):
				d = surfaces[wire.Threads]
			}
			at, ids := openAPIPath(path)
			item, ok := paths[at].(object)
			if !ok {
				item = object{}
				paths[at] = item
			}
			operation := d.operation(described[r.method+" "+r.path], ids)
			operation["summary"], operation["operationId"] = r.says, "op"+strconv.Itoa(i)+"s"+strconv.Itoa(j)
			item[strings.ToLower(r.method)] = operation
		}
	}
	return c.write(http.StatusOK, object{
		"openapi": "3.1.0",
		"info": object{
			"title": "HPD hosted API", "version": wire.Version,
			"description": "Sessions, branches, runs and events. docs/hpd-routes.md says who may call what.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []object{{"url": s.cfg.Prefix}},
		"security": []object{{"bearer": []string{}}, {}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer", "description": "a key made with parley keys add"}},
			"schemas":         named,
		},
	})
}

// operation describes a route on a surface.
func (d *schemas) operation(b body, ids []string) object {
	parameters := []object{}
	for _, id := range ids {
		parameters = append(parameters, object{"name": id, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range b.query {
		parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.says, "schema": object{"type": p.kind}})
	}
	done := object{"description": http.StatusText(b.status)}
	switch {
	case b.kind != "":
		done["content"] = object{b.kind: object{"schema": object{"type": "string"}}}
	case b.out != nil:
		done["content"] = object{"application/json": object{"schema": d.of(b.out, false, nil)}}
	}
	operation := object{
		"parameters": parameters,
		"responses": object{
			strconv.Itoa(b.status): done,
			"default":              object{"description": "Refused.", "content": object{wire.ProblemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}},
		},
	}
	if b.in != nil {
		kind := "application/json"
		if _, isForm := b.in.(form); isForm {
			kind = "multipart/form-data"
		}
		operation["requestBody"] = object{"required": !b.optional, "content": object{kind: object{"schema": d.of(b.in, true, b.needs)}}}
	}
	return operation
}

var problemSchema = object{
	"type": "object", "required": []string{"type", "title", "status", "errors"},
	"properties": object{
		"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
		"errors": object{"type": "object", "additionalProperties": object{"type": "array", "items": object{"type": "string"}}},
		"result": object{"description": "What became of a response; of the responses routes only."},
	},
}
