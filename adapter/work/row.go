package work

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Row is what lists show of a conversation. Its place and its last activity are in the
// entry's key; other members are absent if they are zero.
type Row struct {
	Channel       string   `json:"-"`
	ID            string   `json:"-"`
	LastAt        int64    `json:"-"`
	Peers         []string `json:"peers"` // of a direct room
	Root          string   `json:"root"`
	Title         string   `json:"title"`
	Opener        string   `json:"opener"`
	OpenedAt      int64    `json:"opened_at"`
	Preview       string   `json:"preview"`
	Messages      int      `json:"messages"`
	Speakers      int      `json:"speakers"`
	OpenWork      int      `json:"open_work"`
	Public        []int    `json:"public"` // of each type, in the order of types
	LastPublicAt  int64    `json:"last_public_at"`
	LastPublicID  string   `json:"last_public_id"`
	PublicPreview string   `json:"public_preview"`
	// Long are the texts that are too long for a row. The log has them.
	Long Texts `json:"long"`
}

// Texts is a set of the texts of a row.
type Texts uint8

// The texts of a row.
const (
	Title Texts = 1 << iota
	Preview
	PublicPreview
)

// Has reports whether a text is in the set.
func (t Texts) Has(text Texts) bool { return t&text != 0 }

// wasCut reports whether a text that Cut returned may be the beginning of a longer
// one.
func wasCut(s string) bool { return len(s) > MaxText-utf8.UTFMax }

// ParseRow reads a row, given its entry's key and value.
func ParseRow(key string, value []byte) (Row, error) {
	var r Row
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("work: row of a conversation: %w", err)
	}
	parts := strings.SplitN(key, "/", 4)
	if len(parts) != 4 {
		return r, fmt.Errorf("work: row of a conversation: the key %.150q has no channel, time and id", key)
	}
	newest, err := strconv.ParseInt(parts[2], 16, 64)
	if err != nil {
		return r, fmt.Errorf("work: row of a conversation: its time: %w", err)
	}
	r.Channel, r.LastAt, r.ID = parts[1], math.MaxInt64-newest, parts[3]
	// Rows of earlier versions hold the beginnings of long texts.
	for _, text := range [...]struct {
		value *string
		which Texts
	}{{&r.Title, Title}, {&r.Preview, Preview}, {&r.PublicPreview, PublicPreview}} {
		if wasCut(*text.value) {
			*text.value, r.Long = "", r.Long|text.which
		}
	}
	return r, nil
}
