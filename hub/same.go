package hub

import "github.com/go-json-experiment/json/jsontext"

// sameJSON reports whether two texts are the same JSON value: space, the order
// of keys and how a string is escaped do not count. Numbers are compared as
// they are written, because no reading of them is exact for all.
func sameJSON(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	canonical := func(text []byte) (string, bool) {
		v := jsontext.Value(text).Clone()
		err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
		return string(v), err == nil
	}
	one, ok := canonical(a)
	if !ok {
		return false
	}
	other, ok := canonical(b)
	return ok && one == other
}
