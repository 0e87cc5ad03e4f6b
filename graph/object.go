package graph

import (
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object taken apart, with its place for errors.
type object struct {
	path string
	list []member
}

type member struct {
	name  string
	value jsontext.Value
}

func members(path, what string, raw jsontext.Value) (object, error) {
	o := object{path: path}
	if raw.Kind() != jsontext.KindBeginObject {
		return o, refuse(path, "%s must be a JSON object, not %s", what, kindOf(raw))
	}
	err := eachMember(raw, func(name []byte, value jsontext.Value) {
		o.list = append(o.list, member{string(name), value})
	})
	if err != nil {
		return o, refuse(path, "%v", err)
	}
	return o, nil
}

func elements(path string, raw jsontext.Value) ([]jsontext.Value, error) {
	if raw.Kind() != jsontext.KindBeginArray {
		return nil, refuse(path, "must be an array, not %s", kindOf(raw))
	}
	var items []jsontext.Value
	if err := eachItem(raw, func(value jsontext.Value) { items = append(items, value) }); err != nil {
		return nil, refuse(path, "%v", err)
	}
	return items, nil
}

func (o object) get(name string) (jsontext.Value, bool) {
	for _, m := range o.list {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func (o object) need(name string) (jsontext.Value, error) {
	value, ok := o.get(name)
	if !ok {
		return nil, refuse(o.path, "lacks '%s'", name)
	}
	return value, nil
}

func (o object) text(name string) (string, error) {
	value, err := o.need(name)
	if err != nil {
		return "", err
	}
	if value.Kind() != jsontext.KindString {
		path := name
		if o.path != "" {
			path = o.path + "." + name
		}
		return "", refuse(path, "must be a string, not %s", kindOf(value))
	}
	return textOf(value), nil
}

// node reads {"name": …, "args": {…}}; args may be left out.
func node(path, what string, raw jsontext.Value) (name string, args jsontext.Value, err error) {
	o, err := members(path, what, raw)
	if err != nil {
		return "", nil, err
	}
	if name, err = o.text("name"); err != nil {
		return "", nil, err
	}
	args, ok := o.get("args")
	if !ok {
		args = jsontext.Value("{}")
	}
	return name, args, nil
}
