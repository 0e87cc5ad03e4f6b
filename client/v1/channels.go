package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Channel is a conversation: who takes part, and how far it is.
type Channel struct {
	ID       string `json:"channel_id"`
	Manifest struct {
		Type string `json:"type"`
	} `json:"manifest"`
	Creator      string            `json:"creator_id"`
	Participants []Participant     `json:"participants"`
	State        string            `json:"state"` // pending, active, closed or expired
	CreatedAt    time.Time         `json:"created_at"`
	ExpiresAt    *time.Time        `json:"expires_at"`
	CloseReason  string            `json:"close_reason"`
	PendingAcks  []string          `json:"pending_acks"` // who has not answered the invitation
	Labels       map[string]string `json:"labels"`
	Knobs        json.RawMessage   `json:"knobs"`
	Expected     *string           `json:"expected_next_speaker"`
	Folded       json.RawMessage   `json:"folded_state"`
	Length       uint64            `json:"length"`
	Position     string            `json:"position"`
	Warnings     []string          `json:"warnings"`
	Names        map[string]string `json:"names"` // of identities, by id

	Raw json.RawMessage `json:"-"` // the answer as the hub sent it; empty in a list
}

// Participant is a member of a channel.
type Participant struct {
	Agent string `json:"agent_id"`
	Role  string `json:"role"`
}

// Ended reports whether the channel takes no more envelopes.
func (ch *Channel) Ended() bool { return ch.State == "closed" || ch.State == "expired" }

// Name returns the name of an identity, or its id where the hub did not name it.
func (ch *Channel) Name(id string) string {
	if name, ok := ch.Names[id]; ok {
		return name
	}
	return id
}

// Opening is what OpenChannel asks for.
type Opening struct {
	Type         string            `json:"type"`
	Participants []string          `json:"participants"` // names or ids, without the creator
	Creator      string            `json:"creator"`      // name or id
	Intent       string            `json:"intent"`
	TTL          string            `json:"ttl,omitempty"`   // like 30m; "0" for ever; empty: the hub's default
	Knobs        json.RawMessage   `json:"knobs,omitempty"` // whom they name, by name or id
	Labels       map[string]string `json:"labels,omitempty"`
}

// OpenChannel opens a channel and returns when all participants have accepted.
func (c *Client) OpenChannel(ctx context.Context, o Opening) (*Channel, error) {
	return c.channel(ctx, http.MethodPost, "/v1/channels", o)
}

// Channels lists channels. The query has the parameters of GET /v1/channels:
// agent, type, state, label, newest, after, limit.
func (c *Client) Channels(ctx context.Context, query url.Values) (*Page[Channel], error) {
	return list[Channel](ctx, c, "channels", "channels", query)
}

// Channel returns one channel.
func (c *Client) Channel(ctx context.Context, id string) (*Channel, error) {
	return c.channel(ctx, http.MethodGet, channelPath(id), nil)
}

// CloseChannel closes a channel. One that has ended stays as it is.
func (c *Client) CloseChannel(ctx context.Context, id, reason string) (*Channel, error) {
	return c.channel(ctx, http.MethodPost, channelPath(id)+"/close", map[string]string{"reason": reason})
}

// DeleteChannel deletes a channel and everything in it. Its audit stays.
func (c *Client) DeleteChannel(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, channelPath(id), nil, nil)
}

func (c *Client) channel(ctx context.Context, method, path string, body any) (*Channel, error) {
	ch, raw, err := get[Channel](ctx, c, method, path, body)
	if err != nil {
		return nil, err
	}
	ch.Raw = raw
	return ch, nil
}

func channelPath(id string) string { return "/v1/channels/" + url.PathEscape(id) }
