package value

import (
	"slices"
	"strconv"
)

// Equal compares as peers do that have one type for arrays and objects: by
// keys, an array's elements being under "0", "1", …, whatever the order.
// Numbers compare exactly if both are integers, else as floats.
func Equal(a, b any) bool {
	a, b = Of(a), Of(b)
	switch a := a.(type) {
	case Number:
		b, ok := b.(Number)
		return ok && equalNumbers(a, b)
	case []any:
		return equalList(a, b)
	case *Map:
		return equalMap(a, b)
	case nil, bool, string:
		return a == b
	default:
		return false
	}
}

func equalNumbers(a, b Number) bool {
	i, iok := a.Int64()
	j, jok := b.Int64()
	if iok && jok {
		return i == j
	}
	return a.Float64() == b.Float64()
}

func equalList(a []any, b any) bool {
	if m, ok := b.(*Map); ok {
		return equalMap(m, a)
	}
	list, ok := b.([]any)
	return ok && slices.EqualFunc(a, list, Equal)
}

func equalMap(a *Map, b any) bool {
	if !IsContainer(b) || a.Len() != Len(b) {
		return false
	}
	list, isList := b.([]any)
	if isList {
		for i, item := range list {
			v, ok := a.Get(strconv.Itoa(i))
			if !ok || !Equal(v, item) {
				return false
			}
		}
		return true
	}
	for key, v := range a.All() {
		item, ok := b.(*Map).Get(key)
		if !ok || !Equal(v, item) {
			return false
		}
	}
	return true
}
