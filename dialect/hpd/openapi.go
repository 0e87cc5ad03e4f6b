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
	paths := object{}
	for i, r := range s.routes {
		surfaces := []string{r.path}
		if strings.Contains(r.path, "/branches") {
			surfaces = append(surfaces, strings.ReplaceAll(r.path, "/branches", "/threads"))
		}
		for j, path := range surfaces {
			named, ids := openAPIPath(path)
			parameters := []object{}
			for _, id := range ids {
				parameters = append(parameters, object{"name": id, "in": "path", "required": true, "schema": object{"type": "string"}})
			}
			item, ok := paths[named].(object)
			if !ok {
				item = object{}
				paths[named] = item
			}
			item[strings.ToLower(r.method)] = object{
				"summary": r.says, "operationId": "op" + strconv.Itoa(i) + "s" + strconv.Itoa(j), "parameters": parameters,
				"responses": object{
					"2XX":     object{"description": "Done."},
					"default": object{"description": "Refused.", "content": object{wire.ProblemType: object{"schema": object{"$ref": "#/components/schemas/Problem"}}}},
				},
			}
		}
	}
	return c.write(http.StatusOK, object{
		"openapi": "3.1.0",
		"info":    object{"title": "HPD hosted API", "version": wire.Version},
		"servers": []object{{"url": s.cfg.Prefix}},
		"paths":   paths,
		"components": object{"schemas": object{"Problem": object{
			"type": "object", "required": []string{"title", "status", "errors"},
			"properties": object{
				"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
				"errors": object{"type": "object", "additionalProperties": object{"type": "array", "items": object{"type": "string"}}},
			},
		}}},
	})
}
