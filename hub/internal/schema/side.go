package schema

import (
	"strconv"

	"github.com/go-json-experiment/json"
)

// SideRecord is one record of a channel's side log: the hub's bookkeeping, and
// envelopes that adapters keep out of the history.
type SideRecord struct {
	Kind  string   `json:"kind"`
	Agent string   `json:"agent,omitzero"`
	Fired []string `json:"fired,omitzero"`
	// Agents are the agents that a record of the lists is about.
	Agents []string `json:"agents,omitzero"`
	Due    int64    `json:"due,omitzero"`  // in nanoseconds; 0: removed
	Check  int64    `json:"look,omitzero"` // at the creation: when the expectations are first checked
	Name   string   `json:"name,omitzero"` // of a deadline
	Task   string   `json:"task,omitzero"`
	// Envelope is the binary record of a side envelope; After is the sequence of
	// the history before it.
	Envelope []byte `json:"envelope,omitzero"`
	After    uint64 `json:"after,omitzero"`
	// Asked is the sequence of the record by which a request was asked.
	Asked uint64 `json:"asked,omitzero"`
}

// Kinds of side records.
const (
	SideScheduled = "scheduled" // deadlines were set or moved; at the creation also the first activity
	SideOpened    = "opened"
	SideEnded     = "ended"
	SideFired     = "fired"    // expectations that fired, and fire no more
	SideHidden    = "hidden"   // a participant receives nothing until it speaks
	SideUnhidden  = "unhidden" // it spoke
	SideRemoved   = "removed"  // a participant may not speak any more
	SideDraft     = "draft"
	SideActive    = "active"   // the first content in a new minute
	SideCheck     = "look"     // when the expectations are next checked
	SideDeadline  = "deadline" // the adapter asked for a reminder
	SideTask      = "task"     // a task of the channel began
	SideTaskEnded = "task_ended"
	SideSeed      = "seed"     // a batch of a history that is older than the channel
	SideSeeded    = "seeded"   // the channel exists
	SideListed    = "listed"   // agents who now have the channel in their lists
	SideUnlisted  = "unlisted" // agents who no longer have it

	SideRequest      = "request"       // a request was asked; the name is its id
	SideRequestEnded = "request_ended" // the request was answered, expired or cancelled
)

// IsSeed reports whether a side record marks its batch as part of a seed. It
// compares bytes without decoding, because followers call it for every batch.
func IsSeed(data []byte) bool { return string(data) == `{"kind":"`+SideSeed+`"}` }

// Encode writes a side record.
func (r *SideRecord) Encode() ([]byte, error) { return json.Marshal(r) }

// EncodeScheduled writes the side record of a channel's creation: its first
// activity, and when its expectations are first checked. It avoids the encoder,
// because every opening writes one.
func EncodeScheduled(active, check int64) []byte {
	b := append(make([]byte, 0, 96), `{"kind":"`+SideScheduled+`","due":`...)
	b = strconv.AppendInt(b, active, 10)
	if check != 0 {
		b = strconv.AppendInt(append(b, `,"look":`...), check, 10)
	}
	return append(b, '}')
}

// DecodeSide reads a side record.
func DecodeSide(data []byte) (r SideRecord, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}
