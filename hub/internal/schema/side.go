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
	// Agents are those of whom a record of the lists tells.
	Agents []string `json:"agents,omitzero"`
	Due    int64    `json:"due,omitzero"`  // in nanoseconds; 0: no longer
	Check  int64    `json:"look,omitzero"` // at the creation: when the expectations are checked first
	Name   string   `json:"name,omitzero"` // of a deadline
	Task   string   `json:"task,omitzero"`
	// Envelope is the binary record of a side envelope; After is the history's
	// sequence before it.
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
	SideHidden    = "hidden"   // a participant is told nothing until it speaks
	SideUnhidden  = "unhidden" // it spoke
	SideRemoved   = "removed"  // a participant may not speak any more
	SideDraft     = "draft"
	SideActive    = "active"   // something was said in a later minute than before
	SideCheck     = "look"     // when the expectations are checked next
	SideDeadline  = "deadline" // the adapter wants to be reminded
	SideTask      = "task"     // a task of the channel began
	SideTaskEnded = "task_ended"
	SideSeed      = "seed"     // a batch of a history that was there before the channel
	SideSeeded    = "seeded"   // the channel exists
	SideListed    = "listed"   // agents who have the channel in their lists
	SideUnlisted  = "unlisted" // agents who no longer have

	SideRequest      = "request"       // somebody asks; the name is the request's id
	SideRequestEnded = "request_ended" // it is answered, expired or cancelled
)

// IsSeed reports whether a side record marks its batch as part of a seed. It reads
// no more than that: followers ask it of every batch.
func IsSeed(data []byte) bool { return string(data) == `{"kind":"`+SideSeed+`"}` }

// Encode writes a side record.
func (r *SideRecord) Encode() ([]byte, error) { return json.Marshal(r) }

// EncodeScheduled writes the side record of a channel's creation: its first activity,
// and when its expectations are checked first. Every opening writes one.
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
