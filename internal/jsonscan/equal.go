package jsonscan

import "github.com/go-json-experiment/json/jsontext"

// Equal reports whether two texts encode the same JSON value. White space, the
// order of keys and string escapes are ignored. Numbers are compared as text,
// because no single Go type holds all of them exactly.
func Equal(a, b []byte) bool {
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
