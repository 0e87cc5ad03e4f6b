package wire

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// Registry holds the types that can be read: the built-in ones and the custom ones
// of an application. It may be changed only while a process starts.
type Registry struct {
	Table  *branch.Table
	codecs map[string]codec
}

// codec reads the payload of one type.
type codec struct {
	name    string
	need    []string // required members
	objects []string // members that are JSON objects
	zero    Payload
	read    func(data []byte) (Payload, error)
}

// NewRegistry returns a registry of the built-in types, with a given table or, for
// nil, a new one.
func NewRegistry(table *branch.Table) *Registry {
	if table == nil {
		table = branch.NewTable()
	}
	r := &Registry{Table: table, codecs: make(map[string]codec, len(builtin))}
	for _, c := range builtin {
		r.codecs[c.name] = c
	}
	return r
}

// codecOf returns the codec of a typed event from its struct.
func codecOf[T Payload]() codec {
	var zero T
	c := codec{name: zero.EventType(), zero: zero, read: func(data []byte) (Payload, error) {
		var payload T
		if p, ok := any(&payload).(interface{ preset() }); ok {
			p.preset()
		}
		if err := json.Unmarshal(data, &payload); err != nil {
			return nil, err
		}
		return payload, nil
	}}
	t := reflect.TypeFor[T]()
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Tag.Get("need") != "" {
			c.need = append(c.need, name)
		}
		if field.Tag.Get("object") != "" {
			c.objects = append(c.objects, name)
		}
	}
	return c
}

// Custom is the registration of an application's own event type.
type Custom struct {
	// Type is the name on the wire, such as CARGO_MANIFEST_READY.
	Type string
	// Read decodes a payload; nil keeps it as Opaque.
	Read func(data []byte) (Payload, error)
	// Persist stores events of the type; without it they are live only.
	Persist bool
}

// Register adds a custom type. It returns an error if the name is taken.
func (r *Registry) Register(c Custom) error {
	if err := r.Table.Register(c.Type, c.Persist); err != nil {
		return err
	}
	read := c.Read
	if read == nil {
		read = func(data []byte) (Payload, error) { return Opaque{c.Type, data}, nil }
	}
	r.codecs[c.Type] = codec{name: c.Type, read: read}
	return nil
}

// RegisterType adds a custom type that is a Go struct. Members with the tag
// need:"true" are required, and a Raw member with the tag object:"true" is an
// object.
func RegisterType[T Payload](r *Registry, persist bool) error {
	c := codecOf[T]()
	if c.name == "" {
		return fault.New(fault.Invalid, "%T does not name an event type; return one from EventType, such as %s", *new(T), TypeName(reflect.TypeFor[T]().Name()))
	}
	if err := r.Table.Register(c.name, persist); err != nil {
		return err
	}
	r.codecs[c.name] = c
	return nil
}

// TypeName derives an event's name from its class name: without a trailing Event,
// with an underscore between a lower-case letter and the capital that follows it.
func TypeName(class string) string {
	class = strings.TrimSuffix(class, "Event")
	var b strings.Builder
	for i, r := range class {
		if i > 0 && r >= 'A' && r <= 'Z' && class[i-1] >= 'a' && class[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// Zero returns an empty payload of a built-in type, or nil.
func Zero(name string) Payload {
	for _, c := range builtin {
		if c.name == name {
			return c.zero
		}
	}
	return nil
}
