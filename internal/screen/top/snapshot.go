// Package top shows what a hub does: a model for bubbletea, and the snapshots
// that it draws. The model makes no calls itself; a Hub makes them.
package top

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/request"
)

// most is how many entries of a list are asked for.
const most = "200"

// Snapshot is a hub at one moment. A nil figure is not known.
type Snapshot struct {
	At          time.Time `json:"at"`
	URL         string    `json:"url"`
	Version     string    `json:"version"`
	StartedAt   time.Time `json:"started_at"`
	Admitted    *float64  `json:"admitted_per_second"`
	Delivered   *float64  `json:"delivered_per_second"`
	SyncP99     *float64  `json:"sync_p99_seconds"`
	DataBytes   *float64  `json:"data_bytes"`
	DiskFree    *float64  `json:"disk_free_bytes"`
	Connections *float64  `json:"connections"`

	Channels []Channel `json:"channels"`
	Requests []Request `json:"requests"`
	Agents   []Agent   `json:"agents"`
	Refusals []Refusal `json:"refusals"`
}

// Channel is a channel that has not ended.
type Channel struct {
	ID      string    `json:"channel_id"`
	Title   string    `json:"title"`
	Type    string    `json:"type"`
	State   string    `json:"state"`
	Length  uint64    `json:"length"`
	Rate    *float64  `json:"rate"` // envelopes a second since the snapshot before
	Turn    string    `json:"turn"` // whose turn it is, by name
	DueAt   time.Time `json:"due_at,omitzero"`
	Overdue bool      `json:"overdue"`
	LastAt  time.Time `json:"last_at"`
	Who     []string  `json:"participants"` // by name
}

// Request is a request that is open.
type Request struct {
	ID      string    `json:"request_id"`
	Kind    string    `json:"kind"`
	Channel string    `json:"channel_id"`
	AskedBy string    `json:"asked_by"`
	For     string    `json:"for"`
	Title   string    `json:"title"`
	AskedAt time.Time `json:"asked_at"`
	DueAt   time.Time `json:"due_at,omitzero"`
	Choices []string  `json:"choices"`
	Digest  string    `json:"digest,omitempty"` // of the action that is asked for
}

// Agent is an identity.
type Agent struct {
	ID       string    `json:"agent_id"`
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Online   bool      `json:"online"`
	Inbox    int64     `json:"inbox_depth"`
	Turns    int       `json:"turns_waiting"`
	Channels int       `json:"open_channels"`
	SeenAt   time.Time `json:"last_seen_at,omitzero"`
}

// Refusal counts what was refused with one code since the hub was started.
type Refusal struct {
	Where string   `json:"where"` // posts, or door: before the hub saw it
	Code  string   `json:"code"`
	Total int64    `json:"total"`
	Rate  *float64 `json:"rate"` // a second since the snapshot before
}

// Take takes a snapshot of a hub. Before is the snapshot that rates are
// counted from; nil: none are known.
func Take(ctx context.Context, hub *v1.Client, before *Snapshot) (*Snapshot, error) {
	health, err := hub.Health(ctx)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{At: time.Now(), URL: hub.URL(), Version: health.Version, StartedAt: health.StartedAt}
	if err := s.takeStats(ctx, hub); err != nil {
		return nil, err
	}
	s.Refusals = refusalsOf(health)
	if err := s.takeChannels(ctx, hub); err != nil {
		return nil, err
	}
	requests, err := hub.Requests(ctx, url.Values{"state": {string(request.Open)}, "sort": {"due"}, "limit": {most}})
	if err != nil {
		return nil, err
	}
	s.Requests = make([]Request, len(requests.Items))
	for i := range requests.Items {
		s.Requests[i] = requestOf(&requests.Items[i], requests.Names)
	}
	agents, err := hub.Agents(ctx, url.Values{"sort": {"pending"}, "limit": {most}})
	if err != nil {
		return nil, err
	}
	s.Agents = make([]Agent, len(agents.Items))
	for i := range agents.Items {
		s.Agents[i] = agentOf(&agents.Items[i])
	}
	s.since(before)
	return s, nil
}

// takeStats reads the newest of what the hub measured: a second without an fsync
// has no time of one.
func (s *Snapshot) takeStats(ctx context.Context, hub *v1.Client) error {
	wanted := map[string]**float64{
		"admitted": &s.Admitted, "delivered": &s.Delivered, "sync_p99": &s.SyncP99,
		"data_bytes": &s.DataBytes, "disk_free": &s.DiskFree, "connections": &s.Connections,
	}
	stats, err := hub.Stats(ctx, url.Values{"series": {strings.Join(slices.Sorted(maps.Keys(wanted)), ",")}, "step": {"1s"}})
	if err != nil {
		return err
	}
	for name, into := range wanted {
		for _, value := range slices.Backward(stats.Series[name]) {
			if *into = value; value != nil {
				break
			}
		}
	}
	return nil
}

// takeChannels lists the channels with the latest activity, and those that are
// due next.
func (s *Snapshot) takeChannels(ctx context.Context, hub *v1.Client) error {
	s.Channels = []Channel{}
	known := map[string]bool{}
	for _, q := range []url.Values{{"sort": {"activity"}, "newest": {"true"}, "limit": {most}}, {"sort": {"due"}, "limit": {most}}} {
		q["state"] = []string{"pending", "active", "closing"}
		page, err := hub.Rows(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if row := &page.Items[i]; !known[row.ID] {
				known[row.ID] = true
				s.Channels = append(s.Channels, channelOf(row))
			}
		}
	}
	return nil
}

func channelOf(row *v1.Row) Channel {
	c := Channel{ID: row.ID, Title: row.Title, Type: row.Type, State: row.State, Length: row.Length, LastAt: row.CreatedAt}
	if row.Last != nil {
		c.LastAt = row.Last.At
	}
	if row.Turn != nil {
		c.Turn, c.Overdue = cmp.Or(row.Turn.Name, row.Turn.ID), row.Turn.Overdue
		if row.Turn.DueAt != nil {
			c.DueAt = *row.Turn.DueAt
		}
	}
	c.Who = make([]string, len(row.Participants))
	for i, p := range row.Participants {
		c.Who[i] = cmp.Or(p.Name, p.ID)
	}
	c.Title = cmp.Or(c.Title, strings.Join(c.Who, ", "))
	return c
}

func requestOf(r *v1.Request, names map[string]string) Request {
	shown := Request{
		ID: r.ID, Kind: r.Kind, Channel: r.Channel, Title: r.Title, AskedAt: r.AskedAt, DueAt: r.DueAt,
		AskedBy: cmp.Or(names[r.AskedBy], r.AskedBy), For: cmp.Or(names[r.For], r.For), Choices: []string{},
	}
	for _, c := range r.Choices {
		shown.Choices = append(shown.Choices, c.ID)
	}
	if r.Action != nil {
		shown.Digest = r.Action.Digest
	}
	return shown
}

func agentOf(a *v1.Agent) Agent {
	shown := Agent{ID: a.Passport.ID, Name: a.Passport.Name, Kind: "agent", Online: a.Online, Inbox: a.Depth, Turns: a.TurnsWaiting, Channels: a.OpenChannels}
	if a.Passport.Kind != nil {
		shown.Kind = *a.Passport.Kind
	}
	if a.LastSeenAt != nil {
		shown.SeenAt = *a.LastSeenAt
	}
	return shown
}

func refusalsOf(h *v1.Health) []Refusal {
	list := []Refusal{}
	for where, counted := range map[string]map[string]int64{"posts": h.Stats.Refused, "door": h.Stats.RefusedAtDoor} {
		for code, n := range counted {
			list = append(list, Refusal{Where: where, Code: code, Total: n})
		}
	}
	slices.SortFunc(list, func(a, b Refusal) int { return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Code, b.Code)) })
	return list
}

// since computes what grew since an earlier snapshot of the same process.
func (s *Snapshot) since(before *Snapshot) {
	if before == nil || !before.StartedAt.Equal(s.StartedAt) || !s.At.After(before.At) {
		return
	}
	seconds := s.At.Sub(before.At).Seconds()
	rate := func(grown float64) *float64 { r := max(grown, 0) / seconds; return &r }
	lengths := map[string]uint64{}
	for _, c := range before.Channels {
		lengths[c.ID] = c.Length
	}
	for i := range s.Channels {
		if was, ok := lengths[s.Channels[i].ID]; ok {
			s.Channels[i].Rate = rate(float64(s.Channels[i].Length) - float64(was))
		}
	}
	for i := range s.Refusals {
		r := &s.Refusals[i]
		was := int64(0)
		for _, other := range before.Refusals {
			if other.Where == r.Where && other.Code == r.Code {
				was = other.Total
			}
		}
		r.Rate = rate(float64(r.Total - was))
	}
}
