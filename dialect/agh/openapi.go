package agh

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/openapi"
	"github.com/parley-hub/parley/internal/sse"
)

type (
	object = openapi.Object
	anyOf  = openapi.AnyOf
)

// openAPI describes every route, from the table that serves them.
func (c *call) openAPI() error {
	types := &openapi.Types{Schemas: object{}}
	types.Of(failure{})
	d := &openapi.Document{
		Title: "AGH network", Version: wire.Protocol, Description: "Peers, threads, direct rooms and work of AGH networks.",
		URL: "/", Paths: object{}, Components: object{"schemas": types.Schemas},
	}
	for _, o := range operations() {
		d.Add(o.method, o.path, o.described(types))
	}
	return c.answer(http.StatusOK, d.Object())
}

func (o *operation) described(types *openapi.Types) object {
	op := object{"operationId": o.name, "summary": o.says, "responses": o.responses(types)}
	params := openapi.PathParameters(o.path)
	for _, p := range o.query {
		params = append(params, openapi.Query(p.name, p.kind, p.says))
	}
	if o.stream {
		params = append(params, openapi.Header("Last-Event-ID", "go on behind this position"))
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if o.body != nil {
		op["requestBody"] = object{"required": true, "content": openapi.Content("application/json", types.Of(o.body))}
	}
	return op
}

const streamSays = "Events named message carry one message as JSON, and the position behind it as their id; " +
	"gap says that the position asked for is no longer there, and where the stream goes on. Lines that begin with a colon keep the connection."

func (o *operation) responses(types *openapi.Types) object {
	done := object{"description": "Done."}
	switch {
	case o.stream:
		done["content"] = openapi.Content(sse.ContentType, object{"type": "string", "description": streamSays})
	case o.answer != nil:
		shape := object{"type": "object"}
		if len(o.answer) > 0 {
			properties := object{}
			for name, value := range o.answer {
				properties[name] = types.Of(value)
			}
			shape["properties"], shape["required"] = properties, slices.Sorted(maps.Keys(o.answer))
		}
		done["content"] = openapi.Content("application/json", shape)
	}
	return object{
		strconv.Itoa(o.status): done,
		"default": object{
			"description": "Refused: what, why, and what would be accepted.",
			"content":     openapi.Content("application/json", openapi.Ref("Failure")),
		},
	}
}
