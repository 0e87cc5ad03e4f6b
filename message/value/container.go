package value

import "strconv"

// IsContainer reports whether v is an array or an object.
func IsContainer(v any) bool {
	switch v.(type) {
	case []any, *Map:
		return true
	default:
		return false
	}
}

// Len returns the number of elements or members of a container, and 0 for others.
func Len(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case *Map:
		return v.Len()
	default:
		return 0
	}
}

// AsMap returns a container as a map: an array's elements are under
// "0", "1", ….
func AsMap(v any) (*Map, bool) {
	switch v := v.(type) {
	case []any:
		return fromList(v), true
	case *Map:
		return v, true
	default:
		return nil, false
	}
}

// MapOrEmpty is like AsMap, but returns an empty map for a value that is not a container.
func MapOrEmpty(v any) *Map {
	if m, ok := AsMap(v); ok {
		return m
	}
	return New()
}

// Values lists the values of a container in order, without their keys.
func Values(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case *Map:
		list := make([]any, 0, v.Len())
		for _, item := range v.All() {
			list = append(list, item)
		}
		return list, true
	default:
		return nil, false
	}
}

// IsList reports whether a container is a list to a peer that has one type for
// both: an array, or an object with the keys "0" … "n-1" in order.
func IsList(v any) bool {
	m, ok := v.(*Map)
	if !ok {
		_, ok := v.([]any)
		return ok
	}
	i := 0
	for key := range m.All() {
		if key != strconv.Itoa(i) {
			return false
		}
		i++
	}
	return true
}

// IsIntKey reports whether a peer with one type for arrays and objects reads
// the key as an integer.
func IsIntKey(key string) bool {
	digits := key
	if len(digits) > 1 && digits[0] == '-' {
		digits = digits[1:]
		if digits[0] == '0' {
			return false
		}
	}
	if digits == "" || (digits[0] == '0' && len(digits) > 1) || countDigits(digits) != len(digits) {
		return false
	}
	_, err := strconv.ParseInt(key, 10, 64)
	return err == nil
}

// StringKeys applies the string-key filter: it returns the members of an object
// whose keys are not integers. Nothing of an array remains.
func StringKeys(v any) *Map {
	filtered := New()
	m, _ := v.(*Map)
	for key, item := range m.All() {
		if !IsIntKey(key) {
			filtered.Set(key, item)
		}
	}
	return filtered
}
