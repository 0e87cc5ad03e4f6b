package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// agentBody is an identity as it is shown: its profile, presence and inbox.
type agentBody struct {
	Passport *identity.Passport `json:"passport"`
	Resume   *identity.Resume   `json:"resume"`
	Rule     *identity.Rule     `json:"rule"`
	Ceiling  *identity.Ceiling  `json:"operator_rule"`
	Limits   identity.Limits    `json:"effective_limits"`
	Skill    *string            `json:"skill_md"`
	Online   bool               `json:"online"`
	Pending  int64              `json:"inbox_depth"`

	LastSeenAt   *time.Time       `json:"last_seen_at"` // null: not seen since the hub started
	Connections  []connectionBody `json:"connections"`
	OpenChannels int              `json:"open_channels"`
	TurnsWaiting int              `json:"turns_waiting"`
	OldestTurnAt *time.Time       `json:"oldest_turn_at"`
}

type connectionBody struct {
	Dialect string    `json:"dialect"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
}

// maxChannelsCounted bounds how many open channels of an identity are counted.
const maxChannelsCounted = 1000

type agentPage struct {
	Agents []jsontext.Value `json:"agents"`
	Next   string           `json:"next"` // empty at the end
	Prev   string           `json:"prev"` // empty at the beginning
	listTotal
}

// agentOrder returns the order that sort names; nil is the order of registration.
func agentOrder(sort string) (func(*API) func(a, b hub.Profile) int, error) {
	switch sort {
	case "":
		return nil, nil
	case "name":
		return func(*API) func(a, b hub.Profile) int {
			return func(a, b hub.Profile) int { return strings.Compare(a.Passport.Name, b.Passport.Name) }
		}, nil
	case "pending": // the fullest inbox first
		return func(api *API) func(a, b hub.Profile) int {
			return func(a, b hub.Profile) int { return cmp.Compare(api.hub.Pending(b.ID()), api.hub.Pending(a.ID())) }
		}, nil
	case "seen": // seen last first
		return func(api *API) func(a, b hub.Profile) int {
			return func(a, b hub.Profile) int {
				return api.hub.Presence(b.ID()).LastSeen.Compare(api.hub.Presence(a.ID()).LastSeen)
			}
		}, nil
	}
	return nil, fault.New(fault.Invalid, "sort=%q is unknown; it is name, pending or seen", sort)
}

func (a *API) agentBody(ctx context.Context, p hub.Profile) (agentBody, error) {
	details, err := a.hub.Details(ctx, p.ID())
	if err != nil {
		return agentBody{}, err
	}
	presence := a.hub.Presence(p.ID())
	open, err := a.hub.OpenChannelsOf(ctx, p.ID(), maxChannelsCounted)
	if err != nil {
		return agentBody{}, err
	}
	turns := a.hub.WaitingTurns(p.ID())
	body := agentBody{
		Passport: p.Passport, Resume: details.Resume, Rule: p.Rule, Ceiling: p.Ceiling, Limits: p.Enforced().Limits, Skill: details.Skill,
		Online: presence.Online, Pending: a.hub.Pending(p.ID()), LastSeenAt: maybeAt(presence.LastSeen), Connections: []connectionBody{},
		OpenChannels: open, TurnsWaiting: turns.Waiting, OldestTurnAt: maybeAt(turns.Oldest),
	}
	for _, c := range presence.Connections {
		body.Connections = append(body.Connections, connectionBody{c.Dialect, c.Address, c.Since})
	}
	return body, nil
}

func (a *API) encodeAgent(ctx context.Context, p hub.Profile) ([]byte, error) {
	body, err := a.agentBody(ctx, p)
	if err != nil {
		return nil, err
	}
	return identity.Marshal(body)
}

func (a *API) listAgents(c *call) error {
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	query := hub.AgentQuery{Limit: 1 << 30, Names: true}
	query.Capability, query.Text = q.Get("capability"), q.Get("query")
	if kind := q.Get("kind"); kind != "" {
		if query.Kind, err = identity.ParseKind(kind); err != nil {
			return err
		}
	}
	online, err := c.flag("online")
	if err != nil {
		return err
	}
	by, err := agentOrder(q.Get("sort"))
	if err != nil {
		return err
	}
	if err := a.watches.refresh(c.Context()); err != nil { // so that waiting turns are current
		return err
	}
	all, err := a.hub.Agents(c.Context(), query)
	if err != nil {
		return err
	}
	if online {
		all = slices.DeleteFunc(slices.Clone(all), func(p hub.Profile) bool { return !a.hub.Online(p.ID()) })
	}
	if by != nil {
		slices.SortStableFunc(all, by(a))
	}
	found := len(all)
	page := agentPage{listTotal: listTotal{&found, true}}
	page.Agents, page.Prev, page.Next, err = bothWays(c, limit, envelope.ValidID, hub.Profile.ID, func(n int, after string, backward bool) ([]hub.Profile, string, error) {
		part, end := agentsFrom(all, n, after, backward, by == nil)
		return part, end, nil
	}, counted(c, func(p hub.Profile) ([]byte, error) { return a.encodeAgent(c.Context(), p) }))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

// agentsFrom returns the part of a list after the agent with the id after or, if
// backward, the part in front of it, nearest first. If that agent is gone, the whole
// list is returned, unless the list is ordered by id: then the id still has a place.
func agentsFrom(all []hub.Profile, n int, after string, backward, aged bool) (part []hub.Profile, end string) {
	at := slices.IndexFunc(all, func(p hub.Profile) bool { return p.ID() == after })
	from := at + 1
	if at < 0 && aged {
		from, _ = slices.BinarySearchFunc(all, after, func(p hub.Profile, id string) int { return strings.Compare(p.ID(), id) })
		at = from
	}
	if part = all[from:]; backward {
		part = slices.Clone(all[:max(at, 0)])
		slices.Reverse(part)
	}
	if len(part) <= n {
		return part, ""
	}
	return part[:n], part[n-1].ID()
}

func (a *API) showAgent(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	data, err := a.encodeAgent(c.Context(), p)
	if err != nil {
		return err
	}
	return c.raw(http.StatusOK, data)
}

func (a *API) removeAgent(c *call) error {
	p, err := a.agent(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.as(c).Unregister(c.Context(), p.ID()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

type turnPage struct {
	Turns []jsontext.Value  `json:"turns"`
	Next  string            `json:"next"`
	Prev  string            `json:"prev"`
	Names map[string]string `json:"names"` // of the agent, by id
}

// waitingTurn is a turn that an agent is to take.
type waitingTurn struct {
	ChannelID  string     `json:"channel_id"`
	Title      string     `json:"title"`
	Type       string     `json:"type"`
	EnvelopeID *string    `json:"envelope_id"` // to answer; null: nothing was said yet
	Since      time.Time  `json:"since"`
	HandedAt   *time.Time `json:"handed_at"`
	DueAt      *time.Time `json:"due_at"`
	Overdue    bool       `json:"overdue"`
}

// ownAgent returns the agent that the path names. An agent's key may name only its
// own agent.
func (a *API) ownAgent(c *call) (hub.Profile, error) {
	p, err := a.agent(c.PathValue("id"))
	if err == nil && !c.who.seesAll() {
		_, err = c.who.itself(p.ID())
	}
	return p, err
}

// agentTurns lists the turns that an agent is to take, the first due first. It does not
// count as handing them over.
func (a *API) agentTurns(c *call) error {
	p, err := a.ownAgent(c)
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	if err := a.watches.refresh(c.Context()); err != nil {
		return err
	}
	page := turnPage{Names: map[string]string{p.ID(): p.Passport.Name}}
	place := func(t hub.ListedTurn) string { return t.Place }
	page.Turns, page.Prev, page.Next, err = bothWays(c, limit, hub.ByDue.ValidPlace, place, func(n int, after string, backward bool) ([]hub.ListedTurn, string, error) {
		return a.hub.ExpectedTurns(c.Context(), hub.ExpectedQuery{Agent: p.ID(), After: after, Newest: backward, Limit: n})
	}, counted(c, func(t hub.ListedTurn) ([]byte, error) { return a.encodeTurn(c, t.Expected) }))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}

func (a *API) encodeTurn(c *call, t hub.Expected) ([]byte, error) {
	m, err := a.hub.Channel(c.Context(), t.Channel)
	if err != nil {
		return nil, err
	}
	sees, err := a.sight(c.Context(), t.Channel, c.who.eyes())
	if err != nil {
		return nil, err
	}
	title, err := a.title(c.Context(), m, sees)
	if err != nil {
		return nil, err
	}
	return encode(waitingTurn{
		ChannelID: t.Channel, Title: title, Type: m.Manifest.Type, EnvelopeID: optional(t.Trigger),
		Since: t.Since.UTC(), HandedAt: maybeAt(t.Handed), DueAt: maybeAt(t.Due), Overdue: t.Overdue,
	})
}

type cursorPage struct {
	Channels []jsontext.Value `json:"channels"`
	Next     string           `json:"next"`
	Prev     string           `json:"prev"`
}

// cursorBody is how far an identity has read a channel.
type cursorBody struct {
	ChannelID string       `json:"channel_id"`
	Readers   []readerBody `json:"readers"`
}

type readerBody struct {
	Reader     string  `json:"reader"`      // empty: the identity's connection
	EnvelopeID *string `json:"envelope_id"` // the last acknowledged one; null: none yet
}

// agentCursors lists the position of each reader of an identity in the channels
// that have not ended.
func (a *API) agentCursors(c *call) error {
	p, err := a.ownAgent(c)
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	o := hub.ListOptions{Agent: p.ID(), Open: true, Newest: true}
	from := func(n int, after string, backward bool) ([]hub.ListedChannel, string, error) {
		o := o
		o.Limit, o.After, o.Newest = n, after, !backward
		return a.as(c).ChannelPage(c.Context(), o)
	}
	if only := c.URL.Query().Get("channel"); only != "" {
		m, err := a.as(c).Channel(c.Context(), only)
		if err != nil {
			return err
		}
		from = func(int, string, bool) ([]hub.ListedChannel, string, error) {
			return []hub.ListedChannel{{Metadata: m}}, "", nil
		}
	}
	var page cursorPage
	place := func(found hub.ListedChannel) string { return found.Place }
	page.Channels, page.Prev, page.Next, err = bothWays(c, limit, o.Sort.ValidPlace, place, from, counted(c, func(found hub.ListedChannel) ([]byte, error) {
		readers, err := a.hub.ReadersOf(c.Context(), p.ID(), found.ID)
		if err != nil {
			return nil, err
		}
		body := cursorBody{ChannelID: found.ID, Readers: make([]readerBody, len(readers))}
		for i, r := range readers {
			body.Readers[i] = readerBody{Reader: r.Reader, EnvelopeID: optional(r.Envelope)}
		}
		return encode(body)
	}))
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, page)
}
