package value

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendPHP writes v as PHP's json_encode does, byte for byte, because sizes
// and ids are computed over that text. It returns false where json_encode
// fails: for what Check refuses.
func AppendPHP(dst []byte, v any) ([]byte, bool) {
	if Check(v, 0) != nil {
		return dst, false
	}
	return appendPHP(dst, v), true
}

// PHPSize returns the length of AppendPHP's text, and 0 where there is none.
func PHPSize(v any) int {
	text, ok := AppendPHP(nil, v)
	if !ok {
		return 0
	}
	return len(text)
}

func appendPHP(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendPHPString(dst, v)
	case Number:
		return appendPHPNumber(dst, v)
	case []any:
		return appendPHPList(dst, v)
	case *Map:
		return appendPHPMap(dst, v)
	default:
		return append(dst, "null"...)
	}
}

func appendPHPList(dst []byte, list []any) []byte {
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPHP(dst, item)
	}
	return append(dst, ']')
}

func appendPHPMap(dst []byte, m *Map) []byte {
	if IsList(m) {
		list, _ := Values(m)
		return appendPHPList(dst, list)
	}
	separator := byte('{')
	for key, item := range m.All() {
		dst = append(dst, separator)
		dst = appendPHPString(dst, key)
		dst = append(dst, ':')
		dst = appendPHP(dst, item)
		separator = ','
	}
	return append(dst, '}')
}

func appendPHPNumber(dst []byte, n Number) []byte {
	if _, ok := n.Int64(); ok {
		return append(dst, n...)
	}
	digits, point, negative := decimal(n.Float64(), 0)
	return append(dst, layout(digits, point, negative, 17, 'e')...)
}

func appendPHPString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch r {
		case '"', '\\', '/':
			dst = append(dst, '\\', byte(r))
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = appendPHPRune(dst, r)
		}
	}
	return append(dst, '"')
}

func appendPHPRune(dst []byte, r rune) []byte {
	if r >= ' ' && r < utf8.RuneSelf {
		return append(dst, byte(r))
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		dst = appendHex(dst, unit)
	}
	return dst
}

func appendHex(dst []byte, unit uint16) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}

// decimal returns the significant digits of f and where the point stands among
// them: f is 0.DIGITS × 10^point. With no precision the digits are the fewest
// that read back as f.
func decimal(f float64, precision int) (digits string, point int, negative bool) {
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	text, negative = strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(text, "e")
	digits = strings.TrimRight(strings.Replace(mantissa, ".", "", 1), "0")
	if digits == "" {
		return "0", 1, negative
	}
	point, _ = strconv.Atoi(exponent)
	return digits, point + 1, negative
}

// layout writes digits as PHP does: plain between 0.0001 and width digits,
// else with a fraction, a signed exponent and no padding.
func layout(digits string, point int, negative bool, width int, exponent byte) string {
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	switch {
	case point > width || point < -3:
		b.WriteByte(digits[0])
		b.WriteByte('.')
		b.WriteString(cmp.Or(digits[1:], "0"))
		b.WriteByte(exponent)
		if point > 0 {
			b.WriteByte('+')
		}
		b.WriteString(strconv.Itoa(point - 1))
	case point <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -point))
		b.WriteString(digits)
	case len(digits) <= point:
		b.WriteString(digits)
		b.WriteString(strings.Repeat("0", point-len(digits)))
	default:
		b.WriteString(digits[:point])
		b.WriteByte('.')
		b.WriteString(digits[point:])
	}
	return b.String()
}

// SortKeys sorts the keys of every object that is not a list, at every depth, for
// hashing: bytewise, but integers by size, as the peer whose ids must match
// holds them as numbers.
func SortKeys(v any) any {
	switch v := v.(type) {
	case []any:
		sorted := make([]any, len(v))
		for i, item := range v {
			sorted[i] = SortKeys(item)
		}
		return sorted
	case *Map:
		sorted := v.Clone()
		if !IsList(v) {
			slices.SortStableFunc(sorted.members, func(a, b Member) int { return compareKeys(a.Key, b.Key) })
		}
		for i := range sorted.members {
			sorted.members[i].Value = SortKeys(sorted.members[i].Value)
		}
		return sorted
	default:
		return v
	}
}

func compareKeys(a, b string) int {
	if IsIntKey(a) && IsIntKey(b) {
		i, _ := strconv.ParseInt(a, 10, 64)
		j, _ := strconv.ParseInt(b, 10, 64)
		if i < j {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
