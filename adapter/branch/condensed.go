package branch

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// MaxCondensed bounds one part of a condensed history, which is stored in an
// index entry.
const MaxCondensed = 48 << 10

// CondensedPrefix returns the prefix of the keys of a branch's condensed history.
// Its parts are in the order of the log.
func CondensedPrefix(channelID string) string { return "condensed/" + channelID + "/" }

// ParseCondensed reads an index entry.
func ParseCondensed(data []byte) (branch.Condensed, error) {
	var c branch.Condensed
	err := json.Unmarshal(data, &c)
	return c, err
}

func condensedEntry(m *channel.Metadata, e *envelope.Envelope) []channel.IndexEntry {
	var at struct {
		From uint64 `json:"from"`
	}
	if json.Unmarshal(e.Data, &at) != nil || at.From == 0 {
		return nil
	}
	return []channel.IndexEntry{{Key: CondensedPrefix(m.ID) + fmt.Sprintf("%016x", at.From), Value: e.Data}}
}
