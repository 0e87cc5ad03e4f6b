package hub

import (
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// maxNesting is how deep a payload or a channel's knobs may nest. Clients read
// JSON recursively, and one value too deep would take the connection, and so
// the channel, from everybody in it. It leaves a dialect room for its frame.
const maxNesting = 250

// tooDeep refuses valid JSON that nests deeper than clients can read.
func tooDeep(what string, data []byte) error {
	if jsonscan.Deeper(data, maxNesting) {
		return fault.New(fault.TooLarge, "%s nests deeper than %d", what, maxNesting)
	}
	return nil
}
