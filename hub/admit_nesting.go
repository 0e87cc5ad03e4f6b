package hub

import (
	"bytes"

	"github.com/parley-hub/parley/fault"
)

// maxNesting is how deep a payload or a channel's knobs may nest. Clients read
// JSON recursively, and one value too deep would take the connection, and so
// the channel, from everybody in it. It leaves a dialect room for its frame.
const maxNesting = 250

// tooDeep refuses valid JSON that nests deeper than clients can read.
func tooDeep(what string, data []byte) error {
	// Most values have too few brackets to nest deep.
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= maxNesting {
		return nil
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxNesting {
				return fault.New(fault.TooLarge, "%s nests deeper than %d", what, maxNesting)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}
