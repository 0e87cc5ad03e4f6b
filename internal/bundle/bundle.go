// Package bundle reads and writes conversations as files: JSON lines that hold one
// channel, or a home with all its channels and content. The first line is a manifest, the
// last one a checksum of all before it. It knows no hub and no network.
//
//	{"parley_bundle":2,"exported_at":…,"hub":…,"channel":{…},"adapter":"workflow/1","fold_version":3,"envelopes":12}
//	{"envelope":{"sequence":1,"envelope_id":…,…}}
//	{"side":{"sequence":1,"envelope_id":…,…}}
//	…
//	{"end":{"sequence":12,"folded_state":{…},"expected":"…"}}
//	{"sha256":"…","lines":14}
//
// A side line is something that is kept beside the history, such as a request or its
// answer; its sequence is that of the envelope it follows. Format 1 has none.
//
// The manifest of a home says how many channels and contents follow; each channel
// begins with a line of its own that has what the manifest of one channel has.
package bundle

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Version is the format that is written, and the newest that is read.
const Version = 2

// Manifest is the first line.
type Manifest struct {
	Version    int       `json:"parley_bundle"`
	ExportedAt time.Time `json:"exported_at"`
	Hub        string    `json:"hub,omitzero"` // version of the hub that wrote it
	Home       *Home     `json:"home,omitzero"`
	Channels   int       `json:"channels"`
	Contents   int       `json:"contents"`
	Channel    `json:",inline"`
}

// Home is the home whose channels a bundle has.
type Home struct {
	ID   string `json:"home_id"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Channel begins a channel.
type Channel struct {
	Metadata    jsontext.Value    `json:"channel,omitzero"`
	Names       map[string]string `json:"names,omitzero"`   // of its participants, by id
	Adapter     string            `json:"adapter,omitzero"` // TYPE/VERSION
	FoldVersion int               `json:"fold_version,omitzero"`
	Envelopes   uint64            `json:"envelopes,omitzero"`
	Side        uint64            `json:"side_envelopes,omitzero"`
}

// Entry is an envelope of a channel's history, or of what is kept beside it.
type Entry struct {
	*envelope.Envelope
	Side bool
}

// End follows a channel's last envelope: what it folded to.
type End struct {
	Sequence uint64         `json:"sequence"`
	State    jsontext.Value `json:"folded_state,omitzero"`
	Expected string         `json:"expected,omitzero"` // who was to speak next
}

// Content begins a file of a home; its pieces follow.
type Content struct {
	ID        string    `json:"content_id"`
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	By        string    `json:"by,omitzero"`
	CreatedAt time.Time `json:"created_at"`
}

// sum is the last line.
type sum struct {
	SHA256 string `json:"sha256"`
	Lines  int    `json:"lines"` // this one included
}

// line is any line except the first.
type line struct {
	Channel  `json:",inline"`
	Envelope *stored  `json:"envelope,omitzero"`
	Side     *stored  `json:"side,omitzero"`
	End      *End     `json:"end,omitzero"`
	Content  *Content `json:"content,omitzero"`
	Piece    []byte   `json:"piece,omitzero"`
	Lines    int      `json:"lines,omitzero"`
	SHA256   string   `json:"sha256,omitzero"`
}

// stored is an envelope with everything that is stored of it.
type stored struct {
	Sequence  uint64         `json:"sequence"`
	ID        string         `json:"envelope_id"`
	Sender    string         `json:"sender_id"`
	Type      string         `json:"event_type"`
	Data      jsontext.Value `json:"event_data"`
	CreatedAt time.Time      `json:"created_at"`
	Audience  *[]string      `json:"audience,omitzero"`
	To        string         `json:"to,omitzero"`
	Causation string         `json:"causation_id,omitzero"`
	Task      string         `json:"task_id,omitzero"`
	Key       string         `json:"idempotency_key,omitzero"`
	Trace     string         `json:"trace_id,omitzero"`
	Priority  string         `json:"priority,omitzero"`
	Depth     int            `json:"depth,omitzero"`
	TTL       *int64         `json:"ttl_seconds,omitzero"`
	Origin    *origin        `json:"origin,omitzero"`
	Ext       jsontext.Value `json:"ext,omitzero"`
	Foreign   []byte         `json:"foreign,omitzero"`
}

type origin struct {
	Dialect string `json:"dialect"`
	ID      string `json:"id,omitzero"`
	Hops    int    `json:"hops,omitzero"`
}

func of(e *envelope.Envelope) (*stored, error) {
	s := &stored{
		Sequence: e.Seq, ID: e.ID, Sender: e.Sender, Type: e.Type, Data: jsontext.Value(e.Data).Clone(), CreatedAt: e.CreatedAt.UTC(),
		To: e.To, Causation: e.Causation, Task: e.Task, Key: e.Key, Trace: e.Trace, Priority: string(e.Priority), Depth: e.Depth,
		TTL: e.TTL, Ext: jsontext.Value(e.Ext).Clone(), Foreign: e.Foreign,
	}
	if e.Audience != nil {
		audience := append([]string{}, e.Audience...)
		s.Audience = &audience
	}
	if e.Origin != (envelope.Origin{}) {
		s.Origin = &origin{e.Origin.Dialect, e.Origin.ID, e.Origin.Hops}
	}
	// Values that were sent on several lines are written on one.
	for _, v := range []*jsontext.Value{&s.Data, &s.Ext} {
		if len(*v) > 0 {
			if err := v.Compact(); err != nil {
				return nil, fmt.Errorf("envelope %s: %w", e.ID, err)
			}
		}
	}
	return s, nil
}

func (s *stored) envelope() *envelope.Envelope {
	e := &envelope.Envelope{
		Seq: s.Sequence, ID: s.ID, Sender: s.Sender, Type: s.Type, Data: s.Data, CreatedAt: s.CreatedAt, To: s.To,
		Causation: s.Causation, Task: s.Task, Key: s.Key, Trace: s.Trace, Priority: envelope.Priority(s.Priority), Depth: s.Depth,
		TTL: s.TTL, Ext: s.Ext, Foreign: s.Foreign,
	}
	if s.Audience != nil {
		e.Audience = *s.Audience
	}
	if s.Origin != nil {
		e.Origin = envelope.Origin{Dialect: s.Origin.Dialect, ID: s.Origin.ID, Hops: s.Origin.Hops}
	}
	return e
}
