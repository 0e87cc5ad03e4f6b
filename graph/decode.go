package graph

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var rawType = reflect.TypeFor[jsontext.Value]()

// Load reads a graph with the default registry.
func Load(raw []byte) (*Graph, error) { return Default().Load(raw) }

// Load reads a graph from its JSON object. Unknown keys of the graph, of a
// transition and of a node are ignored; unknown or missing args are refused.
// Errors are of type *Error.
func (r *Registry) Load(raw []byte) (*Graph, error) {
	if len(raw) > r.limits.Bytes {
		return nil, refuse("", "%d bytes; at most %d", len(raw), r.limits.Bytes)
	}
	source := jsontext.Value(raw).Clone()
	if err := source.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
		return nil, refuse("", "not valid JSON: %v", err)
	}
	d, err := loader{r}.definition(source)
	if err != nil {
		return nil, err
	}
	g, err := compile(d.mapAgents(interner()))
	if err != nil {
		return nil, err
	}
	g.source = string(source)
	return g, nil
}

// interner lets one graph keep each agent id once.
func interner() func(string) string {
	seen := map[string]string{}
	return func(s string) string {
		if first, ok := seen[s]; ok {
			return first
		}
		seen[s] = s
		return s
	}
}

// loader reads values that are known to be valid JSON without whitespace.
type loader struct{ *Registry }

func (l loader) definition(raw jsontext.Value) (Definition, error) {
	var d Definition
	top, err := members("", "a graph", raw)
	if err != nil {
		return d, err
	}
	if d.InitialSpeaker, err = top.text("initial_speaker"); err != nil {
		return d, err
	}
	if list, ok := top.get("transitions"); ok {
		if d.Transitions, err = l.transitions(list); err != nil {
			return d, err
		}
	}
	target, _ := top.get("default_target")
	if d.Default, err = l.target("default_target", target); err != nil {
		return d, err
	}
	if turns, ok := top.get("max_turns"); ok && turns.Kind() != jsontext.KindNull {
		n, err := integer("max_turns", turns)
		if err != nil {
			return d, err
		}
		d.MaxTurns = &n
	}
	return d, nil
}

func (l loader) transitions(raw jsontext.Value) ([]Transition, error) {
	items, err := elements("transitions", raw)
	if err != nil {
		return nil, err
	}
	if len(items) > l.limits.Transitions {
		return nil, refuse("transitions", "%d of them; at most %d", len(items), l.limits.Transitions)
	}
	list := make([]Transition, len(items))
	for i, item := range items {
		if list[i], err = l.transition(transitionPath(i), item); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l loader) transition(path string, raw jsontext.Value) (Transition, error) {
	var t Transition
	node, err := members(path, "a transition", raw)
	if err != nil {
		return t, err
	}
	when, err := node.need("when")
	if err != nil {
		return t, err
	}
	if t.When, err = l.condition(path+".when", when, 1); err != nil {
		return t, err
	}
	then, err := node.need("then")
	if err != nil {
		return t, err
	}
	if t.Then, err = l.target(path+".then", then); err != nil {
		return t, err
	}
	if priority, ok := node.get("priority"); ok {
		t.Priority, err = integer(path+".priority", priority)
	}
	return t, err
}

func (l loader) condition(path string, raw jsontext.Value, depth int) (Condition, error) {
	if depth > l.limits.Depth {
		return nil, refuse(path, "conditions nest deeper than %d", l.limits.Depth)
	}
	name, args, err := node(path, "a condition", raw)
	if err != nil {
		return nil, err
	}
	s, err := l.lookup(l.conditions, "condition", name, path)
	if err != nil {
		return nil, err
	}
	made, err := l.make(s, path, name, args, depth)
	if err != nil {
		return nil, err
	}
	return made.(Condition), nil
}

// target reads a node; null or nothing is the default end.
func (l loader) target(path string, raw jsontext.Value) (Target, error) {
	if raw == nil || raw.Kind() == jsontext.KindNull {
		return Terminate{Reason: DefaultReason}, nil
	}
	name, args, err := node(path, "a target", raw)
	if err != nil {
		return nil, err
	}
	s, err := l.lookup(l.targets, "target", name, path)
	if err != nil {
		return nil, err
	}
	made, err := l.make(s, path, name, args, 1)
	if err != nil {
		return nil, err
	}
	return made.(Target), nil
}

// make builds a node of the shape; its args must be exactly its fields.
func (l loader) make(s shape, path, name string, raw jsontext.Value, depth int) (any, error) {
	path += ".args"
	args, err := members(path, "args", raw)
	if err != nil {
		return nil, err
	}
	for _, arg := range args.list {
		if !slices.ContainsFunc(s.fields, func(f field) bool { return f.name == arg.name }) {
			return nil, refuse(path, "'%s' does not take '%s'; it takes %s", name, arg.name, s.args())
		}
	}
	made := reflect.New(s.kind)
	for _, f := range s.fields {
		value, ok := args.get(f.name)
		if ok {
			if err := l.fill(made.Elem().Field(f.index), f, path+"."+f.name, value, depth); err != nil {
				return nil, err
			}
			continue
		}
		if !f.optional {
			return nil, refuse(path, "'%s' lacks '%s'; it takes %s", name, f.name, s.args())
		}
		made.Elem().Field(f.index).Set(s.proto.Field(f.index))
	}
	return s.value(made), nil
}

// fill reads one arg into its field.
func (l loader) fill(into reflect.Value, f field, path string, value jsontext.Value, depth int) error {
	if value.Kind() == jsontext.KindNull && !f.nullable {
		return refuse(path, "must not be null")
	}
	if err := json.Unmarshal(value, into.Addr().Interface(), l.nested(path, depth)); err != nil {
		return argError(path, value, err)
	}
	return nil
}

// nested resolves the conditions inside a node's args.
func (l loader) nested(path string, depth int) json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, into *Conditions) error {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		items, err := elements(path, raw)
		if err != nil {
			return err
		}
		list := make(Conditions, len(items))
		for i, item := range items {
			if list[i], err = l.condition(fmt.Sprintf("%s[%d]", path, i), item, depth+1); err != nil {
				return err
			}
		}
		*into = list
		return nil
	}))
}

// argError says what was wrong with an arg in the graph's own words.
func argError(path string, value jsontext.Value, err error) error {
	if ours, ok := errors.AsType[*Error](err); ok {
		if ours.Path == "" {
			return refuse(path, "%s", ours.Message)
		}
		return ours
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && semantic.GoType != nil {
		if cause := semantic.Err; cause != nil && !errors.Is(cause, strconv.ErrSyntax) && !errors.Is(cause, strconv.ErrRange) {
			return refuse(path, "%v", cause)
		}
		return refuse(path, "must be %s, not %s", goKind(semantic.GoType), excerpt(value))
	}
	return refuse(path, "%v", err)
}

// goKind names a field's type as JSON would.
func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	if t.ConvertibleTo(reflect.TypeFor[int64]()) {
		return "a number that fits " + t.String()
	}
	return "a " + t.String()
}

func integer(path string, raw jsontext.Value) (int, error) {
	n, err := strconv.Atoi(string(raw))
	if err != nil || raw.Kind() != jsontext.KindNumber {
		return 0, refuse(path, "must be an integer of at most 64 bits, not %s", excerpt(raw))
	}
	return n, nil
}

// excerpt shows a value in an error without repeating all of it.
func excerpt(raw jsontext.Value) string {
	if len(raw) > 40 {
		return kindOf(raw)
	}
	return string(raw)
}
