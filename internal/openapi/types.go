package openapi

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AnyOf is a value that has one of several types; nil is JSON's null.
type AnyOf []any

// Types makes schemas of Go types. A struct is described once, under its name.
type Types struct {
	Schemas Object                  // by name
	Known   map[reflect.Type]Object // schemas of types that say nothing of their JSON
	Suffix  string                  // of the names of structs
	Member  func(string) string     // the name of a member in the document; nil: its own
}

// Of describes a value's type. An answer always has the members that are not left out
// when they are empty.
func (t *Types) Of(value any) Object { return t.value(value, false, nil) }

// Request describes a value's type as a body of which only some members are needed.
func (t *Types) Request(value any, needs []string) Object { return t.value(value, true, needs) }

func (t *Types) value(value any, request bool, needs []string) Object {
	forms, ok := value.(AnyOf)
	if !ok {
		return t.schema(reflect.TypeOf(value), request, needs)
	}
	all := []any{}
	for _, one := range forms {
		all = append(all, t.schema(reflect.TypeOf(one), request, needs))
	}
	return Object{"anyOf": all}
}

var (
	anyType  = reflect.TypeFor[jsontext.Value]()
	timeType = reflect.TypeFor[time.Time]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

func (t *Types) schema(of reflect.Type, request bool, needs []string) Object {
	if of == nil {
		return Object{"type": "null"}
	}
	if known := t.Known[of]; known != nil {
		return known
	}
	switch {
	case of == anyType:
		return Object{}
	case of == timeType:
		return Object{"type": "string", "format": "date-time"}
	case of.Kind() == reflect.Pointer:
		return t.schema(of.Elem(), request, needs)
	case of.Implements(textType), of.Kind() == reflect.String:
		return Object{"type": "string"}
	case of.Kind() == reflect.Slice:
		return Object{"type": "array", "items": t.schema(of.Elem(), request, needs)}
	case of.Kind() == reflect.Map:
		return Object{"type": "object", "additionalProperties": t.schema(of.Elem(), request, nil)}
	case of.Kind() == reflect.Struct:
		return t.structure(of, request, needs)
	case of.Kind() == reflect.Bool:
		return Object{"type": "boolean"}
	}
	return Object{"type": "integer"}
}

func (t *Types) structure(of reflect.Type, request bool, needs []string) Object {
	name := strings.ToUpper(of.Name()[:1]) + strings.TrimSuffix(of.Name()[1:], "Shape") + t.Suffix
	if t.Schemas[name] == nil {
		described := Object{"type": "object"}
		t.Schemas[name] = described // ends a type that holds itself
		properties, always := Object{}, map[string]bool{}
		t.members(of, request, properties, always)
		if !request {
			needs = nil
			for member, is := range always {
				if is {
					needs = append(needs, member)
				}
			}
		}
		described["properties"] = properties
		if len(needs) > 0 {
			described["required"] = slices.Sorted(slices.Values(needs))
		}
	}
	return Ref(name)
}

// members adds the members of a struct; its own hide those of embedded ones.
func (t *Types) members(of reflect.Type, request bool, properties Object, always map[string]bool) {
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			t.members(f.Type, request, properties, always)
		}
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		if t.Member != nil {
			name = t.Member(name)
		}
		properties[name] = t.schema(f.Type, request, nil)
		always[name] = !strings.Contains(options, "omit")
	}
}
