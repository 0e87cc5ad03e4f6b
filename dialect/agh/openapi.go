package agh

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/sse"
)

// object is a JSON object of the document.
type object = map[string]any

// anyOf is a member of an answer that has one of several shapes.
type anyOf []any

// openAPI describes every route, from the table that serves them.
func (c *call) openAPI() error { return c.answer(http.StatusOK, document()) }

func document() object {
	d := &describing{schemas: object{}}
	paths := object{}
	for _, o := range operations() {
		item, ok := paths[o.path].(object)
		if !ok {
			item = object{}
			paths[o.path] = item
		}
		item[strings.ToLower(o.method)] = d.operation(&o)
	}
	d.schema(reflect.TypeFor[failure]())
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "AGH network", "version": wire.Protocol,
			"description": "Peers, threads, direct rooms and work of AGH networks.", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"bearer": []any{}}, object{}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer", "description": "a key made with parley keys add"}},
			"schemas":         d.schemas,
		},
	}
}

func (d *describing) operation(o *operation) object {
	op := object{"operationId": o.name, "summary": o.says, "responses": d.responses(o)}
	params := []any{}
	for part := range strings.SplitSeq(o.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, p := range o.query {
		params = append(params, object{"name": p.name, "in": "query", "description": p.says, "schema": object{"type": p.kind}})
	}
	if o.stream {
		params = append(params, object{"name": "Last-Event-ID", "in": "header", "description": "go on behind this position", "schema": object{"type": "string"}})
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if o.body != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(o.body))}}}
	}
	return op
}

const streamSays = "Events named message carry one message as JSON, and the position behind it as their id; " +
	"gap says that the position asked for is no longer there, and where the stream goes on. Lines that begin with a colon keep the connection."

func (d *describing) responses(o *operation) object {
	done := object{"description": "Done."}
	switch {
	case o.stream:
		done["content"] = object{sse.ContentType: object{"schema": object{"type": "string", "description": streamSays}}}
	case o.answer != nil:
		shape := object{"type": "object"}
		if len(o.answer) > 0 {
			properties, required := object{}, []any{}
			for name, value := range o.answer {
				properties[name] = d.value(value)
				required = append(required, name)
			}
			shape["properties"], shape["required"] = properties, required
		}
		done["content"] = object{"application/json": object{"schema": shape}}
	}
	return object{
		strconv.Itoa(o.status): done,
		"default": object{
			"description": "Refused: what, why, and what would be accepted.",
			"content":     object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}},
		},
	}
}

// describing collects the schemas of named types.
type describing struct{ schemas object }

func (d *describing) value(v any) object {
	list, ok := v.(anyOf)
	if !ok {
		return d.schema(reflect.TypeOf(v))
	}
	all := []any{}
	for _, one := range list {
		all = append(all, d.schema(reflect.TypeOf(one)))
	}
	return object{"anyOf": all}
}

var anyValue = reflect.TypeFor[jsontext.Value]()

// schema describes a type; a struct is described once, under its name.
func (d *describing) schema(t reflect.Type) object {
	switch {
	case t == anyValue:
		return object{}
	case t.Kind() == reflect.Pointer:
		return d.schema(t.Elem())
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case t.Kind() == reflect.Struct:
		name := strings.TrimSuffix(strings.ToUpper(t.Name()[:1])+t.Name()[1:], "Shape")
		if d.schemas[name] == nil {
			d.schemas[name] = object{} // ends a type that holds itself
			d.schemas[name] = d.object(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

func (d *describing) object(t reflect.Type) object {
	properties, required := object{}, map[string]bool{}
	d.members(t, properties, required)
	must := []any{}
	for _, name := range fieldOrder(t) {
		if required[name] {
			must = append(must, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": must}
}

// members adds the members of a struct; its own hide those of embedded ones.
func (d *describing) members(t reflect.Type, properties object, required map[string]bool) {
	for f := range fieldsOf(t) {
		if f.Anonymous {
			d.members(f.Type, properties, required)
		}
	}
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		properties[name] = d.schema(f.Type)
		required[name] = !strings.Contains(options, "omit")
	}
}

func fieldOrder(t reflect.Type) (names []string) {
	for f := range fieldsOf(t) {
		if f.Anonymous {
			names = append(names, fieldOrder(f.Type)...)
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}
