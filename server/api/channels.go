package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/client/v1/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// names adds the names of a channel's participants to a map, by id.
func (a *API) names(to map[string]string, m *channel.Metadata) map[string]string {
	for _, p := range m.Participants {
		to[p.Agent] = a.hub.Name(p.Agent)
	}
	return to
}

func stateOf(text string) (channel.Lifecycle, error) {
	if text == "" {
		return channel.Unset, nil
	}
	state, err := channel.ParseLifecycle(text)
	if err != nil {
		return channel.Unset, fault.Wrap(fault.Invalid, err, "state=%q is unknown; it is pending, active, closing, closed or expired", text)
	}
	return state, nil
}

// agentParam reads a parameter that names an agent by name or id. An agent that was
// removed can be named by id, because its channels and tasks remain.
func (a *API) agentParam(c *call, name string) (string, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return "", nil
	}
	return a.agentNamed(text)
}

// agentNamed returns the id of an agent given by name or id.
func (a *API) agentNamed(text string) (string, error) {
	p, err := a.agent(text)
	if fault.CodeOf(err) == fault.NotFound && envelope.ValidID(text) {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	return p.ID(), nil
}

// agent returns the agent that is registered under a name or an id.
func (a *API) agent(nameOrID string) (hub.Profile, error) {
	p, err := a.hub.Agent(nameOrID)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.Wrap(fault.NotFound, err, "agent '%.200s' not found: nobody is registered under that name or id", nameOrID).Because(fault.NoAgent)
	}
	return p, err
}

// itself returns the agent of an agent's key. Such a key may name only its agent.
func (c caller) itself(named string) (string, error) {
	if c.id == "" {
		return "", fault.New(fault.AccessDenied, "no agent '%s' is registered, so nothing concerns it yet; register it first", c.Agent)
	}
	if named != "" && named != c.id {
		return "", errNotYours(c)
	}
	return c.id, nil
}

func errNotYours(who caller) error {
	return fault.New(fault.AccessDenied, "the key of '%s' sees only what concerns '%s'", who.Agent, who.Agent)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// see returns a channel's metadata if the caller may see it.
func (a *API) see(c *call) (*channel.Metadata, error) {
	m, err := a.as(c).Channel(c.Context(), c.PathValue("id"))
	if fault.CodeOf(err) == fault.AccessDenied {
		return nil, fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s'", c.who.Agent, c.PathValue("id"))
	}
	return m, err
}

// shown is a channel with its folded state.
type shown struct {
	*channel.Metadata
	state    jsontext.Value
	expected string
	length   uint64
	position string
	warnings []string
	names    map[string]string
	more     extraBrief
}

func (s shown) MarshalJSONTo(enc *jsontext.Encoder) error {
	data, err := s.Metadata.AppendJSON(nil)
	if err != nil {
		return err
	}
	more := extra{State: s.state, Expected: optional(s.expected), Length: s.length, Position: s.position, Warnings: s.warnings, Names: s.names, extraBrief: s.more}
	return writeMerged(enc, data, more)
}

type extra struct {
	State    jsontext.Value    `json:"folded_state"`
	Expected *string           `json:"expected_next_speaker"`
	Length   uint64            `json:"length"`
	Position string            `json:"position"`
	Warnings []string          `json:"warnings"`
	Names    map[string]string `json:"names"`
	extraBrief
}

// extraBrief says what a channel waits for.
type extraBrief struct {
	Turn         *wire.ExpectedTurn `json:"turn"`
	Expectations []expectationBody  `json:"expectations"`
	RequestsOpen int                `json:"requests_open"`
	Last         *wire.Last         `json:"last"`
}

type expectationBody struct {
	Name        string     `json:"name"`
	OnViolation string     `json:"on_violation"`
	Seconds     float64    `json:"seconds"`
	Waits       []waitBody `json:"waits"`
}

type waitBody struct {
	AgentID *string    `json:"agent_id"` // null: the channel as a whole
	Since   time.Time  `json:"since"`
	DueAt   time.Time  `json:"due_at"`
	FiredAt *time.Time `json:"fired_at"`
}

// brief returns what a channel waits for, as far as the caller may see it.
func (a *API) brief(c *call, m *channel.Metadata) (extraBrief, error) {
	b, err := a.hub.Brief(c.Context(), m.ID)
	if err != nil {
		return extraBrief{}, err
	}
	more := extraBrief{Turn: a.turn(b.Turn), Expectations: []expectationBody{}, RequestsOpen: b.Requests}
	var fired map[string]time.Time
	for _, x := range b.Expectations() {
		body := expectationBody{Name: x.Name, OnViolation: x.OnViolation, Seconds: x.Within.Seconds(), Waits: []waitBody{}}
		for _, w := range x.Waits {
			wait := waitBody{AgentID: optional(w.Agent), Since: w.Since, DueAt: w.Due}
			if w.Fired {
				if fired == nil {
					if fired, err = a.hub.Fired(c.Context(), m.ID); err != nil {
						return more, err
					}
				}
				wait.FiredAt = maybeAt(fired[x.Name+"/"+w.Agent])
			}
			body.Waits = append(body.Waits, wait)
		}
		more.Expectations = append(more.Expectations, body)
	}
	sees, err := a.sight(c.Context(), m.ID, c.who.eyes())
	if err == nil {
		more.Last, err = a.last(c.Context(), m, sees)
	}
	return more, err
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// show collects what is shown of a channel.
func (a *API) show(c *call, m *channel.Metadata, warnings []string) (shown, error) {
	ctx := c.Context()
	more, err := a.cfg.Warnings(ctx, m)
	warnings = append(slices.Clone(warnings), more...)
	for i, warning := range warnings {
		warnings[i], _ = a.inNames(warning)
	}
	s := shown{Metadata: m, state: jsontext.Value("null"), warnings: orEmpty(warnings), names: a.names(map[string]string{}, m)}
	if err != nil {
		return s, err
	}
	if state, err := a.hub.State(ctx, m.ID); err == nil {
		adapter, err := a.hub.Adapter(ctx, m.ID)
		if err != nil {
			return s, err
		}
		if s.state, err = adapter.Codec().Encode(state); err != nil {
			return s, err
		}
		if turn, ok := adapter.Expected(m, state); ok && !m.State.Terminal() {
			s.expected = turn.Agent
		}
	} else if fault.CodeOf(err) != fault.Protocol { // its adapter is not loaded: shown without state
		return s, err
	}
	at, err := a.hub.Position(ctx, m.ID)
	if err != nil {
		return s, err
	}
	s.length, s.position = at.Seq, at.String()
	s.more, err = a.brief(c, m)
	return s, err
}

func (a *API) showChannel(c *call) error {
	m, err := a.see(c)
	if err != nil {
		return err
	}
	s, err := a.show(c, m, nil)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, s)
}

// openingBody is a request to open a channel. Names may be given instead of ids.
type openingBody struct {
	Creator      string            `json:"creator"`
	Type         string            `json:"type"`
	Version      int               `json:"version"`
	Participants []string          `json:"participants"`
	RequiredAcks *int              `json:"required_acks"`
	TTL          *identity.TTL     `json:"ttl"`
	Knobs        jsontext.Value    `json:"knobs"`
	Labels       map[string]string `json:"labels"`
	Intent       string            `json:"intent"`
}

func (a *API) openChannel(c *call) error {
	var body openingBody
	if err := c.read(&body); err != nil {
		return err
	}
	switch {
	case body.Type == "":
		return fault.New(fault.Invalid, "type is missing: name the kind of channel, such as conversation")
	case body.Participants == nil:
		return fault.New(fault.Invalid, "participants is missing: list who takes part besides the creator, by name or id")
	}
	o := hub.Opening{
		Type: body.Type, Version: body.Version, RequiredAcks: body.RequiredAcks, TTL: body.TTL,
		Knobs: unlessNull(body.Knobs), Labels: body.Labels, Intent: body.Intent, By: c.who.hub(),
	}
	var err error
	if o.Creator, err = a.actor(c, "creator", body.Creator); err != nil {
		return err
	}
	o.Participants = body.Participants
	if o, err = a.hub.WithIDs(o); err != nil {
		return err
	}
	if err := a.cfg.TakesOpening(o); err != nil {
		return err
	}
	opened, err := a.hub.Open(c.Context(), o)
	if err != nil {
		return err
	}
	s, err := a.show(c, opened.Metadata, opened.Warnings)
	if err != nil {
		return err
	}
	return c.write(http.StatusCreated, s)
}

// unlessNull treats null as a missing member.
func unlessNull(v jsontext.Value) jsontext.Value {
	if v.Kind() == 'n' {
		return nil
	}
	return v
}

// actor returns the identity for which the caller acts: with an agent's key that
// agent, for an operator the one that a field of the request names.
func (a *API) actor(c *call, field, name string) (string, error) {
	name = cmp.Or(name, c.who.Agent)
	if name == "" {
		return "", fault.New(fault.Invalid, "say for whom you act, by name or id, in the field %s (--as NAME of a command): the role %s is no agent's", field, c.who.Role).Because(fault.NoActor)
	}
	p, err := a.agent(name)
	if err != nil {
		return "", err
	}
	if a.as(c).MayActFor(p.ID()) != nil {
		return "", fault.New(fault.AccessDenied, "your key may not act for '%s'", name)
	}
	return p.ID(), nil
}

type closingBody struct {
	Reason string `json:"reason"`
}

func (a *API) closeChannel(c *call) error {
	var body closingBody
	if err := c.readOptional(&body); err != nil {
		return err
	}
	m, err := a.see(c)
	if err != nil {
		return err
	}
	if m, err = a.as(c).CloseChannel(c.Context(), m.ID, body.Reason); err != nil {
		return err
	}
	s, err := a.show(c, m, nil)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, s)
}

func (a *API) deleteChannel(c *call) error {
	if err := a.hub.Delete(c.Context(), c.PathValue("id"), c.who.hub()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}
