package work

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
)

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
	// The states of the message's work before and after it. Now is empty if it has no
	// work, and Was if it opened the work.
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

// Told is the place, in the log of its conversation, of a message that is delivered to
// a peer.
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
