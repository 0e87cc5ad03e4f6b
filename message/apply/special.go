package apply

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/message/value"
)

// unsupported represents a value that JSON cannot hold, such as a handle.
type unsupported struct{}

// maxSpecialDepth bounds how deep a placeholder may nest; it is more than any
// rule lets pass.
const maxSpecialDepth = 20000

// replace replaces placeholders by their values.
func replace(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = replace(item)
		}
		return list
	case *value.Map:
		if special, ok := v.At("$special").(string); ok && v.Len() == 1 {
			if replaced, ok := specialValue(special); ok {
				return replaced
			}
		}
		m := value.New()
		for key, item := range v.All() {
			m.Set(key, replace(item))
		}
		return m
	default:
		return v
	}
}

func specialValue(name string) (any, bool) {
	switch name {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	case "invalid_utf8":
		return "caf\xe9", true
	case "unsupported":
		return unsupported{}, true
	}
	depth, ok := strings.CutPrefix(name, "depth:")
	n, err := strconv.Atoi(depth)
	if !ok || err != nil || n < 1 {
		return nil, false
	}
	nested := []any{}
	for range min(n, maxSpecialDepth) - 1 {
		nested = []any{nested}
	}
	return nested, true
}

// rescue finds name and op of a request that could not be read, as far as it
// can be read at all.
func rescue(text []byte) (name any, op string) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, ""
	}
	_, _ = dec.ReadToken()
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return name, op
		}
		field := key.String()
		raw, err := dec.ReadValue()
		if err != nil {
			return name, op
		}
		switch field {
		case "name":
			name = value.Parse(raw)
		case "op":
			op = value.Text(value.Parse(raw))
		}
	}
	return name, op
}
