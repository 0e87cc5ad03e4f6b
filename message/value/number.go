package value

import (
	"math"
	"strconv"
	"strings"
)

// Number is a JSON number as its token was written. Tokens that are not JSON
// numbers (NaN and the infinities of a host) are representable, so that a rule
// may drop them, but are refused by [Check] and by encoding.
type Number string

// Tokens that JSON cannot represent.
const (
	notANumber  Number = "NAN"
	infinite    Number = "INF"
	negInfinite Number = "-INF"
)

// Int returns the number i.
func Int[T ~int | ~int64](i T) Number { return Number(strconv.FormatInt(int64(i), 10)) }

// Float returns the number f, in the shortest form that reads back as f, with a
// fraction so that it stays a float.
func Float(f float64) Number {
	switch {
	case math.IsNaN(f):
		return notANumber
	case math.IsInf(f, 1):
		return infinite
	case math.IsInf(f, -1):
		return negInfinite
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return Number(text)
}

// Int64 returns the number as an integer: a token without fraction and exponent
// that fits. 1.0 and 1e0 are floats.
func (n Number) Int64() (int64, bool) {
	if n == "" || n[0] == '+' {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// Float64 returns the nearest float; only rules that ask for one use it.
func (n Number) Float64() float64 {
	f, _ := strconv.ParseFloat(string(n), 64)
	return f
}

// valid reports whether the token is a JSON number.
func (n Number) valid() bool {
	s := strings.TrimPrefix(string(n), "-")
	digits := countDigits(s)
	if digits == 0 || (digits > 1 && s[0] == '0') {
		return false
	}
	s = s[digits:]
	if rest, ok := strings.CutPrefix(s, "."); ok {
		digits = countDigits(rest)
		if digits == 0 {
			return false
		}
		s = rest[digits:]
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && countDigits(s) == len(s)
}

// MarshalJSON writes the token.
func (n Number) MarshalJSON() ([]byte, error) { return Append(nil, n) }

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
