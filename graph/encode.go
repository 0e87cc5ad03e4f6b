package graph

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MarshalJSON writes the graph's object form, every key present, in the order
// initial_speaker, transitions, default_target, max_turns. Loading it again
// gives an equal graph.
func (g *Graph) MarshalJSON() ([]byte, error) {
	out, err := jsontext.AppendQuote([]byte(`{"initial_speaker":`), g.initial)
	if err != nil {
		return nil, refuse("initial_speaker", "%v", err)
	}
	out = append(out, `,"transitions":[`...)
	for i, t := range g.transitions {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendTransition(out, t); err != nil {
			return nil, refuse("transitions["+strconv.Itoa(i)+"]", "%v", err)
		}
	}
	out = append(out, `],"default_target":`...)
	if out, err = appendNode(out, g.fallback); err != nil {
		return nil, refuse("default_target", "%v", err)
	}
	out = append(out, `,"max_turns":`...)
	if g.capped {
		out = strconv.AppendInt(out, int64(g.maxTurns), 10)
	} else {
		out = append(out, "null"...)
	}
	return append(out, '}'), nil
}

func appendTransition(out []byte, t Transition) ([]byte, error) {
	out, err := appendNode(append(out, `{"when":`...), t.When)
	if err != nil {
		return nil, err
	}
	if out, err = appendNode(append(out, `,"then":`...), t.Then); err != nil {
		return nil, err
	}
	out = strconv.AppendInt(append(out, `,"priority":`...), int64(t.Priority), 10)
	return append(out, '}'), nil
}

func appendNode(out []byte, node interface{ Name() string }) ([]byte, error) {
	if node == nil {
		return nil, refuse("", "a nested condition is missing")
	}
	out, err := jsontext.AppendQuote(append(out, `{"name":`...), node.Name())
	if err != nil {
		return nil, err
	}
	args, err := encodeArgs(node)
	if err != nil {
		return nil, err
	}
	out = append(append(out, `,"args":`...), args...)
	return append(out, '}'), nil
}

// encodeArgs writes a node's fields. Strings and numbers inside raw values
// stay as they were written.
func encodeArgs(node interface{ Name() string }) (jsontext.Value, error) {
	if isPrivate(reflect.TypeOf(node)) {
		return jsontext.Value("{}"), nil // which the library would refuse
	}
	args, err := json.Marshal(node, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, err
	}
	if jsontext.Value(args).Kind() != jsontext.KindBeginObject {
		return nil, refuse("", "the args of '%s' are not an object", node.Name())
	}
	return args, nil
}

// isPrivate reports whether a type is a struct with nothing to show.
func isPrivate(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// Dumps writes the graph's text form as AG2 does: keys sorted at every level,
// ", " and ": " between tokens, and nothing but ASCII.
func (g *Graph) Dumps() (string, error) {
	raw, err := g.MarshalJSON()
	if err != nil {
		return "", err
	}
	t, err := parseTree(raw)
	if err != nil {
		return "", refuse("", "%v", err)
	}
	return string(t.appendSorted(nil)), nil
}

func (t tree) appendSorted(out []byte) []byte {
	switch t.kind {
	case jsontext.KindBeginArray:
		out = append(out, '[')
		for i, item := range t.items {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = item.appendSorted(out)
		}
		return append(out, ']')
	case jsontext.KindBeginObject:
		out = append(out, '{')
		for i, name := range slices.Sorted(maps.Keys(t.members)) {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = append(appendASCII(out, name), ": "...)
			out = t.members[name].appendSorted(out)
		}
		return append(out, '}')
	case jsontext.KindString:
		return appendASCII(out, t.text)
	}
	return append(out, t.text...)
}

// appendASCII quotes a string with every other character escaped.
func appendASCII(out []byte, s string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, s) // s was read from valid JSON
	for _, c := range string(quoted) {
		if c < 0x7f {
			out = append(out, byte(c))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			out = appendEscape(out, unit)
		}
	}
	return out
}

func appendEscape(out []byte, c uint16) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
}
