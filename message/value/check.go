package value

import (
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deep containers may nest for a value to count
// as serializable.
const MaxDepth = 512

// Check reports whether v, at its depth of nesting, can be written as JSON:
// valid UTF-8, real numbers, JSON values only, and no more than MaxDepth
// nested containers.
func Check(v any, depth int) error {
	switch v := v.(type) {
	case nil, bool:
		return nil
	case string:
		return checkText(v)
	case Number:
		if !v.valid() {
			return fmt.Errorf("%s is not a JSON number", string(v))
		}
		return nil
	case []any:
		if depth >= MaxDepth {
			return errNested
		}
		for _, item := range v {
			if err := Check(item, depth+1); err != nil {
				return err
			}
		}
		return nil
	case *Map:
		return checkMap(v, depth)
	default:
		return fmt.Errorf("a %T is not a JSON value", v)
	}
}

var errNested = fmt.Errorf("nested more than %d deep", MaxDepth)

func checkMap(m *Map, depth int) error {
	if depth >= MaxDepth {
		return errNested
	}
	for key, item := range m.All() {
		if err := checkText(key); err != nil {
			return err
		}
		if err := Check(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	return nil
}
