package value

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Source is something that has a form as a map, such as an envelope.
type Source interface{ Canonical() *Map }

// List returns a list of sources as their maps.
func List[S Source](sources []S) []any {
	list := make([]any, len(sources))
	for i, s := range sources {
		list[i] = s.Canonical()
	}
	return list
}

// kindForeign is the kind of a Go value that JSON cannot represent.
const kindForeign = "foreign value"

// tooDeep replaces what nests deeper than any rule reads.
type tooDeep struct{}

// Of converts Go values (integers, floats, map[string]any, slices and a
// [Source]) to a value. It copies only what it changes. A Go value that JSON
// cannot represent is left unchanged: a rule may drop it, and [Check] refuses
// it. The keys of a Go map are sorted. Data must not contain itself.
func Of(v any) any {
	converted, _ := of(v, 0)
	return converted
}

// of also reports whether it changed anything.
func of(v any, depth int) (converted any, changed bool) {
	if depth > maxNesting {
		return tooDeep{}, true
	}
	switch v := v.(type) {
	case nil, bool, string, Number:
		return v, false
	case []any:
		return ofList(v, depth)
	case *Map:
		return ofMap(v, depth)
	case map[string]any:
		m := &Map{members: make([]Member, 0, len(v))}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			item, _ := of(v[key], depth+1)
			m.members = append(m.members, Member{Key: key, Value: item})
		}
		return m, true
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list, true
	case Source:
		converted, _ = of(v.Canonical(), depth)
		return converted, true
	default:
		return ofScalar(v), true
	}
}

func ofScalar(v any) any {
	switch v := v.(type) {
	case json.Number:
		return Number(v)
	case int:
		return Int(v)
	case int8:
		return Int(int64(v))
	case int16:
		return Int(int64(v))
	case int32:
		return Int(int64(v))
	case int64:
		return Int(v)
	case uint:
		return Number(strconv.FormatUint(uint64(v), 10))
	case uint8:
		return Int(int64(v))
	case uint16:
		return Int(int64(v))
	case uint32:
		return Int(int64(v))
	case uint64:
		return Number(strconv.FormatUint(v, 10))
	case float32:
		return Number(shortest32(v))
	case float64:
		return Float(v)
	default:
		return v
	}
}

// shortest32 keeps a float32 from getting digits of a float64.
func shortest32(f float32) string {
	if n := Float(float64(f)); !n.valid() {
		return string(n)
	}
	wide, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return string(Float(wide))
}

func ofList(list []any, depth int) (any, bool) {
	if list == nil {
		return emptyList, true
	}
	changed := false
	for i, v := range list {
		item, itemChanged := of(v, depth+1)
		if !itemChanged {
			continue
		}
		if !changed {
			list, changed = slices.Clone(list), true
		}
		list[i] = item
	}
	return list, changed
}

func ofMap(m *Map, depth int) (any, bool) {
	if m == nil {
		return nil, true
	}
	changed := false
	for i := range m.members {
		item, itemChanged := of(m.members[i].Value, depth+1)
		if !itemChanged {
			continue
		}
		if !changed {
			m, changed = m.Clone(), true
		}
		m.members[i].Value = item
	}
	return m, changed
}

// kindOf names the kind of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case Number:
		return "number"
	case []any:
		return "array"
	case *Map:
		return "object"
	default:
		return kindForeign
	}
}
