package hpd

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// schemas are the named types of a document, as one surface names their members.
type schemas struct {
	surface wire.Surface
	named   object
}

// suffix tells the types of the thread surface from the others.
func (d *schemas) suffix() string {
	if d.surface == wire.Threads {
		return "OfThreads"
	}
	return ""
}

var (
	rawType   = reflect.TypeFor[wire.Raw]()
	timeType  = reflect.TypeFor[time.Time]()
	eventType = reflect.TypeFor[event]()
	formType  = reflect.TypeFor[form]()
	textType  = reflect.TypeFor[encoding.TextMarshaler]()
)

// of describes a value that a route takes or answers.
func (d *schemas) of(value any, request bool, needs []string) object {
	forms, ok := value.(anyOf)
	if !ok {
		return d.schema(reflect.TypeOf(value), request, needs)
	}
	list := []object{}
	for _, one := range forms {
		if one == nil {
			list = append(list, object{"type": "null"})
			continue
		}
		list = append(list, d.schema(reflect.TypeOf(one), request, needs))
	}
	return object{"anyOf": list}
}

// schema describes a type; a struct is described once, under its name.
func (d *schemas) schema(t reflect.Type, request bool, needs []string) object {
	switch {
	case t == rawType:
		return object{}
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == eventType:
		d.named["Event"] = object{
			"type": "object", "required": []string{"type"}, "description": "An event; docs/hpd-events.md lists the types and their members.",
			"properties": object{"version": object{"type": "string"}, "type": object{"type": "string"}},
		}
		return object{"$ref": "#/components/schemas/Event"}
	case t == formType:
		return object{"type": "object", "required": []string{"file"}, "properties": object{"file": object{"type": "string", "format": "binary"}}}
	case t.Kind() == reflect.Pointer:
		return d.schema(t.Elem(), request, needs)
	case t.Implements(textType):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem(), request, needs)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem(), request, nil)}
	case reflect.Struct:
		return d.structure(t, request, needs)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

func (d *schemas) structure(t reflect.Type, request bool, needs []string) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:] + d.suffix()
	if d.named[name] == nil {
		d.named[name] = object{} // ends a type that holds itself
		properties, required := object{}, []string{}
		d.members(t, request, properties, &required)
		described := object{"type": "object", "properties": properties}
		if request {
			required = needs
		}
		if len(required) > 0 {
			described["required"] = slices.Sorted(slices.Values(required))
		}
		d.named[name] = described
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// members collects the members of a struct, those of embedded ones included. An
// answer always has what is not left out when it is empty.
func (d *schemas) members(t reflect.Type, request bool, into object, required *[]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			d.members(field.Type, request, into, required)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		name = d.surface.Member(name)
		into[name] = d.schema(field.Type, request, nil)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}
