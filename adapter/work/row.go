package work

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Row is what lists show of a conversation. Its entry's key says where it is and
// when it was last active; other members are absent when they are zero.
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

// WorkRow is what is shown of a piece of work.
type WorkRow struct {
	Channel string
	ID      string // of the conversation
	WorkID  string
	Work    Work
}

// ParseWorkRow reads a row.
func ParseWorkRow(value []byte) (WorkRow, error) {
	var raw struct {
		Channel string   `json:"channel"`
		ID      string   `json:"id"`
		WorkID  string   `json:"work_id"`
		Work    workJSON `json:"work"`
	}
	if err := json.Unmarshal(value, &raw); err != nil {
		return WorkRow{}, fmt.Errorf("work: row of a piece of work: %w", err)
	}
	w, err := raw.Work.work()
	return WorkRow{raw.Channel, raw.ID, raw.WorkID, w}, err
}

// Where is the place of a message.
type Where struct {
	Channel string `json:"channel"`
	ID      string `json:"id"` // of the conversation
	TS      int64  `json:"ts"`
	Seq     uint64 `json:"seq"`
	// What the message made of its work: the states before and after. Now is
	// empty if it was about none, and Was if it opened it.
	Was string `json:"was"`
	Now string `json:"now"`
}

// ParseWhere reads a place.
func ParseWhere(value []byte) (Where, error) {
	var w Where
	if err := json.Unmarshal(value, &w); err != nil {
		return w, fmt.Errorf("work: place of a message: %w", err)
	}
	return w, nil
}

// ParseSeq reads the value of a message's entry.
func ParseSeq(value []byte) (uint64, error) { return strconv.ParseUint(string(value), 10, 64) }

// What the keys of entries begin with; see the table at the top of index.go.

// ActivityPrefix is of the rows of a channel's conversations, newest first.
func ActivityPrefix(channel string) string { return prefixActivity + channel + "/" }

// ActivityKey is of a conversation's row, given the value of its NameKey.
func ActivityKey(channel, newest, id string) string {
	return ActivityPrefix(channel) + newest + "/" + id
}

// NameKey leads to when a conversation was last active.
func NameKey(channel, id string) string { return prefixName + channel + "/" + id }

// MessagePrefix is of a conversation's messages by time and id.
func MessagePrefix(channel, id string) string { return prefixMessage + channel + "/" + id + "/" }

// IDPrefix is of where the messages of an id are, of whichever sender.
func IDPrefix(id string) string { return prefixID + inKey(id) + between }

// IDKey is of where the message of a sender is.
func IDKey(id, from string) string { return IDPrefix(id) + inKey(from) }

// WorkKey is of a piece of work's row.
func WorkKey(id string) string { return prefixWork + id }

// SpeakerPrefix is of who has spoken in a channel's threads.
func SpeakerPrefix(channel string) string { return prefixSpeaker + channel + "/" }

// RoomsPrefix is of the direct rooms of a peer, newest first; what follows is
// as in ActivityPrefix.
func RoomsPrefix(channel, peer string) string { return prefixPeer + channel + "/" + peer + "/" }

// ToldPrefix is of what a peer of a channel is told alone; an empty peer
// selects what all are told.
func ToldPrefix(channel, peer string) string {
	peer = cmp.Or(peer, everyone)
	return prefixTold + channel + "/" + inKey(peer) + "/"
}

// Told is the place of a message that somebody is told, in the log of its
// conversation.
type Told struct {
	Seq uint64 `json:"seq"`
}

// ParseTold reads a place.
func ParseTold(value []byte) (Told, error) {
	var t Told
	if err := json.Unmarshal(value, &t); err != nil {
		return t, fmt.Errorf("work: what a peer is told: %w", err)
	}
	return t, nil
}
