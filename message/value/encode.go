package value

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting bounds recursion over values of a host; decoding has the same
// bound.
const maxNesting = 10000

var errDeep = errors.New("value: nested more than 10000 deep; flatter data is needed")

// Append writes v as JSON, without white space and with minimal escapes.
func Append(dst []byte, v any) ([]byte, error) { return appendValue(dst, v, 0) }

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxNesting {
		return dst, errDeep
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return jsontext.AppendQuote(dst, v)
	case Number:
		if !v.valid() {
			return dst, fmt.Errorf("value: %q is not a JSON number", string(v))
		}
		return append(dst, v...), nil
	case []any:
		return appendList(dst, v, depth)
	case *Map:
		return appendMap(dst, v, depth)
	default:
		if converted := Of(v); kindOf(converted) != kindForeign {
			return appendValue(dst, converted, depth)
		}
		return dst, fmt.Errorf("value: a %T is not a JSON value", v)
	}
}

func appendList(dst []byte, list []any, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, v, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, m *Map, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	first := true
	for key, v := range m.All() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if dst, err = jsontext.AppendQuote(dst, key); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, v, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// MarshalJSON writes the map with its keys in order.
func (m *Map) MarshalJSON() ([]byte, error) { return Append(nil, m) }
