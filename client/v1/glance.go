package v1

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-hub/parley/client/v1/wire"
)

type (
	// Person is somebody who takes part.
	Person = wire.Person
	// ExpectedTurn is whose turn it is in a channel.
	ExpectedTurn = wire.ExpectedTurn
	// Last is the last event of a channel that the caller may see.
	Last = wire.Last
	// Row is a channel as lists show it.
	Row = wire.Row
	// Summary counts what there is; for an agent's key, what concerns the agent.
	Summary = wire.Summary
)

// Rows lists channels as rows. The query has the parameters of the list.
func (c *Client) Rows(ctx context.Context, query url.Values) (*Page[Row], error) {
	with := url.Values{"form": {"row"}}
	maps.Copy(with, query)
	return list[Row](ctx, c, "channels", "channels", with)
}

// Turn is a turn that waits for an identity.
type Turn struct {
	Channel    string     `json:"channel_id"`
	Title      string     `json:"title"`
	Type       string     `json:"type"`
	EnvelopeID string     `json:"envelope_id"` // to answer; empty before anyone has spoken
	Since      time.Time  `json:"since"`
	HandedAt   *time.Time `json:"handed_at"`
	DueAt      *time.Time `json:"due_at"`
	Overdue    bool       `json:"overdue"`
}

// Turns lists the turns that an identity, by name or id, is to take, the first due first.
// The query has after and limit. Listing does not count as handing over.
func (c *Client) Turns(ctx context.Context, agent string, query url.Values) (*Page[Turn], error) {
	return list[Turn](ctx, c, "agents/"+url.PathEscape(agent)+"/turns", "turns", query)
}

// ReadUpTo is how far the readers of an identity have acknowledged a channel.
type ReadUpTo struct {
	Channel string `json:"channel_id"`
	Readers []struct {
		Reader     string `json:"reader"`      // empty: the identity's own connection
		EnvelopeID string `json:"envelope_id"` // empty: it has acknowledged nothing yet
	} `json:"readers"`
}

// Cursors lists the positions of an identity's readers. The query has after and limit.
func (c *Client) Cursors(ctx context.Context, agent string, query url.Values) (*Page[ReadUpTo], error) {
	return list[ReadUpTo](ctx, c, "agents/"+url.PathEscape(agent)+"/cursors", "channels", query)
}

// Summary counts what there is.
func (c *Client) Summary(ctx context.Context) (*Summary, error) {
	s := &Summary{}
	return s, c.Call(ctx, http.MethodGet, "/v1/summary", nil, s)
}

// Stats are the hub's measurements, oldest first. A nil value is not known.
type Stats struct {
	Step   float64               `json:"step"` // seconds
	At     []time.Time           `json:"at"`
	Series map[string][]*float64 `json:"series"`
}

// Stats returns the hub's measurements. The query has series, since and step.
func (c *Client) Stats(ctx context.Context, query url.Values) (*Stats, error) {
	s := &Stats{}
	return s, c.Call(ctx, http.MethodGet, "/v1/stats?"+query.Encode(), nil, s)
}

// Health is the state of a hub: since when it runs, and what it refused since then.
type Health struct {
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	Stats     struct {
		Refused       map[string]int64 `json:"refused"`         // posts, by code
		RefusedAtDoor map[string]int64 `json:"refused_at_door"` // requests and connections, by reason
	} `json:"stats"`
	Cluster *struct { // nil: the hub is not in a cluster
		Name    string `json:"name"`
		Node    string `json:"node"` // the serving node, which answers
		Shards  int    `json:"shards"`
		Waiting string `json:"waiting"` // why nothing is acknowledged at the moment
		Nodes   []struct {
			Name    string `json:"name"`
			Address string `json:"address"`
			Version string `json:"version"`
			Role    string `json:"role"` // serving, standby, joining
			Lag     uint64 `json:"lag"`  // batches
		} `json:"nodes"`
	} `json:"cluster"`
}

// Health returns the state of the hub.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	h := &Health{}
	return h, c.Call(ctx, http.MethodGet, "/v1/health", nil, h)
}

// Watch streams several topics at once and calls visit with every frame, as Follow
// does: see GET /v1/watch. When the connection breaks, it resumes all exact topics;
// conflated ones send their current values.
func (c *Client) Watch(ctx context.Context, topics []string, visit func(Frame) error) error {
	return c.Follow(ctx, "/v1/watch?"+url.Values{"topic": topics}.Encode(), "", visit)
}

// ChangeWatch replaces the conflated topics of a watch, which its frame hello
// names.
func (c *Client) ChangeWatch(ctx context.Context, id string, topics []string) error {
	return c.Call(ctx, http.MethodPut, "/v1/watch/"+url.PathEscape(id), map[string]any{"topics": topics}, nil)
}

// Closing selects channels and says how many are to be closed. Filter has the
// parameters of GET /v1/channels: agent, type, state, label, q, waiting_for and
// overdue.
type Closing struct {
	Filter map[string]any `json:"filter"`
	Reason string         `json:"reason"`
	Expect *int           `json:"expect,omitempty"`
	DryRun bool           `json:"dry_run"`
	After  string         `json:"after,omitempty"`
}

// Closed is the result of CloseChannels.
type Closed struct {
	Matched int `json:"matched"`
	Closed  int `json:"closed"`
	Failed  []struct {
		Channel string `json:"channel_id"`
		Code    string `json:"code"`
		Detail  string `json:"detail"`
	} `json:"failed"`
	Next string `json:"next"` // continue after this one; empty: no more match
}

// CloseChannels closes the channels that a filter selects, at most 1,000.
func (c *Client) CloseChannels(ctx context.Context, closing Closing) (*Closed, error) {
	done := &Closed{}
	return done, c.Call(ctx, http.MethodPost, "/v1/channels/close", closing, done)
}

// Export downloads a channel as jsonl, messages or markdown. The caller closes it.
func (c *Client) Export(ctx context.Context, channel, form string) (io.ReadCloser, error) {
	return c.Download(ctx, "/v1/channels/"+url.PathEscape(channel)+"/export?form="+url.QueryEscape(form))
}
