package value

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Source is something that knows itself as a map, such as an envelope.
type Source interface{ Canonical() *Map }

// kindForeign names what no JSON value stands for.
const kindForeign = "foreign value"

// tooDeep stands for what lies deeper than any rule looks.
type tooDeep struct{}

// Of brings what Go code hands over (integers, floats, map[string]any, slices
// and what a [Source] stands for) to a value. It copies only what it changes.
// What no JSON value stands for is left as it is: a rule may drop it, and
// [Check] refuses it. The keys of a Go map are sorted. Data must not contain
// itself.
func Of(v any) any { return of(v, 0) }

func of(v any, depth int) any {
	if depth > maxNesting {
		return tooDeep{}
	}
	switch v := v.(type) {
	case nil, bool, string, Number:
		return v
	case []any:
		return ofList(v, depth)
	case *Map:
		if v == nil {
			return nil
		}
		return ofMap(v, depth)
	case map[string]any:
		m := &Map{members: make([]Member, 0, len(v))}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.members = append(m.members, Member{Key: key, Value: of(v[key], depth+1)})
		}
		return m
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case Source:
		return of(v.Canonical(), depth)
	default:
		return ofScalar(v)
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

// shortest32 keeps a float32 from growing digits it never had.
func shortest32(f float32) string {
	if n := Float(float64(f)); !n.valid() {
		return string(n)
	}
	wide, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return string(Float(wide))
}

func ofList(list []any, depth int) any {
	if list == nil {
		return emptyList
	}
	for i, v := range list {
		converted := of(v, depth+1)
		if same(converted, v) {
			continue
		}
		changed := slices.Clone(list)
		changed[i] = converted
		for j := i + 1; j < len(list); j++ {
			changed[j] = of(list[j], depth+1)
		}
		return changed
	}
	return list
}

func ofMap(m *Map, depth int) any {
	for i := range m.members {
		converted := of(m.members[i].Value, depth+1)
		if same(converted, m.members[i].Value) {
			continue
		}
		changed := m.Clone()
		changed.members[i].Value = converted
		for j := i + 1; j < len(changed.members); j++ {
			changed.members[j].Value = of(changed.members[j].Value, depth+1)
		}
		return changed
	}
	return m
}

// same says whether conversion gave back what it was given.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool, string, Number, *Map:
		return a == b
	case []any:
		list, ok := b.([]any)
		return ok && len(a) == len(list) && (len(a) == 0 && list != nil || len(a) > 0 && &a[0] == &list[0])
	case tooDeep:
		return false
	default:
		return true // foreign, and left alone
	}
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
