package value

import (
	"math"
	"strconv"
	"strings"
)

// Trim strips space, tab, line feed, carriage return, NUL and vertical tab at
// both ends, and nothing else: no form feed, no Unicode space.
func Trim(s string) string { return strings.Trim(s, " \t\n\r\x00\x0b") }

// Lower lowers ASCII letters only.
func Lower(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			lowered := []byte(s)
			for ; i < len(lowered); i++ {
				if lowered[i] >= 'A' && lowered[i] <= 'Z' {
					lowered[i] += 'a' - 'A'
				}
			}
			return string(lowered)
		}
	}
	return s
}

// Truthy reports whether a value counts as true: every value does except null,
// false, zero, "", "0" and empty containers.
func Truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != "" && v != "0"
	case Number:
		return v.Float64() != 0
	case []any, *Map:
		return Len(v) > 0
	default:
		return true
	}
}

// Text returns the scalar string of a value: a string as it is, true as "1", an
// integer in decimal, a float with at most 14 digits, and "" for the rest.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "1"
		}
		return ""
	case Number:
		if i, ok := v.Int64(); ok {
			return strconv.FormatInt(i, 10)
		}
		return floatText(v.Float64())
	default:
		return ""
	}
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return string(notANumber)
	case math.IsInf(f, 1):
		return string(infinite)
	case math.IsInf(f, -1):
		return string(negInfinite)
	}
	digits, point, negative := decimal(f, 14)
	return layout(digits, point, negative, 14, 'E')
}

// Integer returns an integer value; floats are not integers, even whole ones.
func Integer(v any) (int64, bool) {
	n, ok := v.(Number)
	if !ok {
		return 0, false
	}
	return n.Int64()
}

// NonEmptyString returns a string that is not empty.
func NonEmptyString(v any) (string, bool) {
	s, ok := v.(string)
	return s, ok && s != ""
}

// LeadingInt reads a string the way a weakly typed peer does: white space, the
// longest number at its beginning, cut towards zero; 0 if there is none.
func LeadingInt(s string) int64 {
	s = strings.TrimLeft(s, numericSpace)
	length, whole := numberPrefix(s)
	return toInt(s[:length], whole)
}

// numericSpace is the white space that may surround numbers in strings.
const numericSpace = " \t\n\r\v\f"

// Numeric reads a string that is a number as a whole, white space around it
// allowed, and reports whether it is one.
func Numeric(s string) (i int64, f float64, ok bool) {
	s = strings.Trim(s, numericSpace)
	length, whole := numberPrefix(s)
	if length == 0 || length != len(s) {
		return 0, 0, false
	}
	f, _ = strconv.ParseFloat(s, 64)
	return toInt(s, whole), f, true
}

// Truncate cuts a float towards zero, and at the bounds of int64.
func Truncate(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(f)
	}
}

func toInt(number string, whole bool) int64 {
	if whole {
		i, _ := strconv.ParseInt(number, 10, 64) // cut at the bounds
		return i
	}
	f, _ := strconv.ParseFloat(number, 64)
	return Truncate(f)
}

// numberPrefix measures [+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)? at the start
// of s, and reports whether it is digits only.
func numberPrefix(s string) (length int, whole bool) {
	at := 0
	if at < len(s) && (s[at] == '+' || s[at] == '-') {
		at++
	}
	integer := countDigits(s[at:])
	at += integer
	whole = true
	fraction := 0
	if at < len(s) && s[at] == '.' {
		fraction = countDigits(s[at+1:])
		if integer+fraction > 0 {
			at += 1 + fraction
			whole = false
		}
	}
	if integer+fraction == 0 {
		return 0, false
	}
	if at < len(s) && (s[at] == 'e' || s[at] == 'E') {
		exponent := at + 1
		if exponent < len(s) && (s[exponent] == '+' || s[exponent] == '-') {
			exponent++
		}
		if digits := countDigits(s[exponent:]); digits > 0 {
			return exponent + digits, false
		}
	}
	return at, whole
}
