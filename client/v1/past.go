package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Step is one turn of a workflow, with the transition that decided who was next.
type Step struct {
	Sequence  uint64    `json:"sequence"`
	Envelope  string    `json:"envelope_id"`
	CreatedAt time.Time `json:"created_at"`
	Turn      int       `json:"turn"`
	Speaker   string    `json:"speaker_id"`
	By        string    `json:"by"` // finish, handoff, rule or default
	Rule      *int      `json:"rule"`
	Tool      string    `json:"tool"`
	Decision  struct {
		Speaker *string `json:"speaker_id"`
		End     bool    `json:"end"`
		Reason  *string `json:"reason"`
	} `json:"decision"`
	Because    *Explained `json:"because"`
	PassedOver []struct {
		Rule    int       `json:"rule"`
		Because Explained `json:"because"`
	} `json:"passed_over"`
	Changed []struct {
		Key    string          `json:"key"`
		Before json.RawMessage `json:"before"`
		After  json.RawMessage `json:"after"`
	} `json:"changed"`
}

// Explained is a condition with what it read.
type Explained struct {
	Name  string `json:"name"`
	Says  string `json:"says"`
	Holds bool   `json:"holds"`
	Read  []struct {
		What     string          `json:"what"`
		Value    json.RawMessage `json:"value"`
		Sequence uint64          `json:"sequence"`
		SenderID string          `json:"sender_id"`
	} `json:"read"`
	Of []Explained `json:"of"`
}

// Path lists the turns of a workflow. The query has after, before and limit.
func (c *Client) Path(ctx context.Context, channel string, query url.Values) (*Page[Step], error) {
	return list[Step](ctx, c, "channels/"+url.PathEscape(channel)+"/path", "steps", query)
}

// Past is a channel as it was after an event.
type Past struct {
	At struct {
		Sequence  uint64    `json:"sequence"`
		CreatedAt time.Time `json:"created_at"`
	} `json:"at"`
	State       string          `json:"state"`
	CloseReason *string         `json:"close_reason"`
	Folded      json.RawMessage `json:"folded_state"`
	Turn        *ExpectedTurn   `json:"turn"`
	Context     []struct {
		Key      string          `json:"key"`
		Value    json.RawMessage `json:"value"`
		Sequence uint64          `json:"sequence"`
		SenderID string          `json:"sender_id"`
	} `json:"context"`

	Raw json.RawMessage `json:"-"`
}

// StateAt shows a channel as it was after the event with a sequence; 0 is before
// the first, nil the newest.
func (c *Client) StateAt(ctx context.Context, channel string, at *uint64) (*Past, error) {
	path := channelPath(channel) + "/state"
	if at != nil {
		path += "?at=" + strconv.FormatUint(*at, 10)
	}
	past, raw, err := get[Past](ctx, c, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	past.Raw = raw
	return past, nil
}
