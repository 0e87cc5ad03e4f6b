// Package openapi writes OpenAPI 3.1 documents: the frame that every interface of the
// hub has, and schemas of the Go types that its routes read and answer. What a route
// does and who may call it is decided elsewhere.
package openapi

import "strings"

// Object is a JSON object of a document.
type Object = map[string]any

// Document is a description of an interface.
type Document struct {
	Title, Version, Description string
	URL                         string // in front of the paths
	Paths                       Object
	Components                  Object // beside the security schemes
}

// Add adds an operation.
func (d *Document) Add(method, path string, operation Object) {
	item, ok := d.Paths[path].(Object)
	if !ok {
		item = Object{}
		d.Paths[path] = item
	}
	item[strings.ToLower(method)] = operation
}

// Object returns the whole document.
func (d *Document) Object() Object {
	d.Components["securitySchemes"] = Object{"bearer": Object{"type": "http", "scheme": "bearer", "description": "a key made with parley keys add"}}
	return Object{
		"openapi": "3.1.0",
		"info": Object{
			"title": d.Title, "version": d.Version, "description": d.Description,
			"license": Object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []any{Object{"url": d.URL}},
		"security":   []any{Object{"bearer": []any{}}, Object{}},
		"paths":      d.Paths,
		"components": d.Components,
	}
}

// Ref refers to a schema by its name.
func Ref(name string) Object { return Object{"$ref": "#/components/schemas/" + name} }

// Content returns a body of one media type.
func Content(media string, schema Object) Object { return Object{media: Object{"schema": schema}} }

// PathParameters returns the names in braces of a path.
func PathParameters(path string) []any {
	all := []any{}
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			all = append(all, Object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": Object{"type": "string"}})
		}
	}
	return all
}

// Query returns a parameter of the query. An array's items are strings.
func Query(name, kind, says string) Object {
	schema := Object{"type": kind}
	if kind == "array" {
		schema["items"] = Object{"type": "string"}
	}
	return Object{"name": name, "in": "query", "description": says, "schema": schema}
}

// Header returns a header of a request.
func Header(name, says string) Object {
	return Object{"name": name, "in": "header", "description": says, "schema": Object{"type": "string"}}
}
