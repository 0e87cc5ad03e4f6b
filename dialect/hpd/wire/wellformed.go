package wire

import "bytes"

// WellFormed replaces escapes of half a surrogate pair, such as `\ud83d`, by the
// replacement character, as every UTF-8 encoder does. JSON's grammar allows such
// escapes, and JSON.stringify writes them if a text was cut within a character. A
// client whose answer is refused for that would receive no more events. Text
// without such escapes is returned unchanged.
func WellFormed(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	var out []byte // allocated when something is replaced
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			i++
			continue
		}
		unit, ok := escapedUnit(data[i:])
		switch {
		case !ok:
			i += 2 // the escape of one character
			continue
		case unit < 0xd800 || unit > 0xdfff:
			i += unitLen
			continue
		}
		if unit < 0xdc00 {
			if low, ok := escapedUnit(data[min(i+unitLen, len(data)):]); ok && low >= 0xdc00 && low <= 0xdfff {
				i += 2 * unitLen
				continue
			}
		}
		if out == nil {
			out = bytes.Clone(data)
		}
		copy(out[i:], `\ufffd`)
		i += unitLen
	}
	if out == nil {
		return data
	}
	return out
}

const unitLen = len(`\u0000`)

// escapedUnit returns the UTF-16 unit whose escape begins the text.
func escapedUnit(data []byte) (unit uint16, ok bool) {
	if len(data) < unitLen || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, c := range data[2:unitLen] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}
