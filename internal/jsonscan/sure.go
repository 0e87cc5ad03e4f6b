package jsonscan

import (
	"encoding/binary"
	"unicode/utf8"
)

// sure reports whether data is certainly what Check takes. It handles what
// nearly every text consists of, and takes less time than the library, which
// also has to say what is wrong. False means nothing: the library decides.
func sure(data []byte, depth int) bool {
	end, ok := sureValue(data, SkipSpace(data, 0), depth)
	return ok && SkipSpace(data, end) == len(data)
}

// sureValue returns the position after the value that begins at i.
func sureValue(data []byte, i, depth int) (int, bool) {
	if i >= len(data) {
		return i, false
	}
	switch c := data[i]; {
	case c == '"':
		return sureString(data, i+1)
	case c == '{':
		return sureObject(data, i+1, depth-1)
	case c == '[':
		return sureArray(data, i+1, depth-1)
	case c == '-' || c >= '0' && c <= '9':
		return sureNumber(data, i)
	case c == 'n':
		return sureLiteral(data, i, "null")
	case c == 't':
		return sureLiteral(data, i, "true")
	case c == 'f':
		return sureLiteral(data, i, "false")
	}
	return i, false
}

func sureLiteral(data []byte, i int, literal string) (int, bool) {
	end := i + len(literal)
	return end, end <= len(data) && string(data[i:end]) == literal
}

// mostNames is how many names of one object are compared; an object with more is
// left to the library, which hashes them.
const mostNames = 24

// sureObject reads from after the opening brace to after the closing one.
func sureObject(data []byte, i, depth int) (int, bool) {
	if depth < 0 {
		return i, false
	}
	var names [mostNames]struct{ begin, end int }
	var seen uint64 // a bit for each name, by its length and ends
	n := 0
	if i = SkipSpace(data, i); i < len(data) && data[i] == '}' {
		return i + 1, true
	}
	for i < len(data) && data[i] == '"' {
		begin := i + 1
		end := begin
		for end < len(data) && plainASCII[data[end]] {
			end++
		}
		if end >= len(data) || data[end] != '"' || n == mostNames {
			return i, false // an escape, other letters, or not closed
		}
		name := data[begin:end]
		bit := uint64(1)
		if len(name) > 0 {
			bit <<= (uint(name[0]) + 3*uint(name[len(name)-1]) + 7*uint(len(name)) + 5*uint(name[len(name)/2])) & 63
		}
		if seen&bit != 0 {
			for _, other := range names[:n] {
				if string(data[other.begin:other.end]) == string(name) {
					return i, false
				}
			}
		}
		seen |= bit
		names[n].begin, names[n].end = begin, end
		n++
		if i = end + 1; i < len(data) && data[i] != ':' {
			i = SkipSpace(data, i)
		}
		if i >= len(data) || data[i] != ':' {
			return i, false
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		var ok bool
		if i, ok = sureValue(data, i, depth); !ok {
			return i, false
		}
		if i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		switch {
		case i >= len(data):
			return i, false
		case data[i] == '}':
			return i + 1, true
		case data[i] != ',':
			return i, false
		}
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
	}
	return i, false
}

// sureArray reads from after the opening bracket to after the closing one.
func sureArray(data []byte, i, depth int) (int, bool) {
	if depth < 0 {
		return i, false
	}
	if i = SkipSpace(data, i); i < len(data) && data[i] == ']' {
		return i + 1, true
	}
	for {
		var ok bool
		if i, ok = sureValue(data, SkipSpace(data, i), depth); !ok {
			return i, false
		}
		i = SkipSpace(data, i)
		switch {
		case i >= len(data):
			return i, false
		case data[i] == ']':
			return i + 1, true
		case data[i] != ',':
			return i, false
		}
		i++
	}
}

// plainASCII are the bytes that stand for themselves in a string.
var plainASCII = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// sureString reads from after the opening quote to after the closing one.
func sureString(data []byte, i int) (int, bool) {
	for {
		for i+8 <= len(data) {
			// A byte of special has its high bit set if that of w is a quote, a
			// backslash, a control character or not ASCII; above such a byte it
			// may be set wrongly, which only costs time.
			w := binary.LittleEndian.Uint64(data[i:])
			quote, backslash := w^eachByte*'"', w^eachByte*'\\'
			special := (w - eachByte*' ') | (quote - eachByte) | (backslash - eachByte) | w
			if special&highBits != 0 {
				break
			}
			i += 8
		}
		for i < len(data) && plainASCII[data[i]] {
			i++
		}
		switch {
		case i >= len(data):
			return i, false
		case data[i] == '"':
			return i + 1, true
		case data[i] == '\\':
			size := escape(data[i:])
			if size == 0 {
				return i, false
			}
			i += size
		case data[i] < utf8.RuneSelf:
			return i, false
		default:
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				return i, false
			}
			i += size
		}
	}
}

// escape returns the length of the escape that text begins with; 0: it is
// wrong, or half of a surrogate pair.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	if len(text) < 6 {
		return 0
	}
	for _, c := range text[2:6] {
		if c < '0' || c > '9' && c|' ' < 'a' || c|' ' > 'f' {
			return 0
		}
	}
	if text[2]|' ' == 'd' && text[3] >= '8' {
		return 0
	}
	return 6
}

// sureNumber returns the position after the number that begins at i.
func sureNumber(data []byte, i int) (int, bool) {
	digits := func() bool {
		begin := i
		for i < len(data) && data[i] >= '0' && data[i] <= '9' {
			i++
		}
		return i > begin
	}
	if data[i] == '-' {
		i++
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if !digits() {
		return i, false
	}
	if i < len(data) && data[i] == '.' {
		if i++; !digits() {
			return i, false
		}
	}
	if i < len(data) && data[i]|' ' == 'e' {
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return i, false
		}
	}
	return i, true
}
