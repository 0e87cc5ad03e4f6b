package api

import (
	"cmp"
	"net/http"
	"runtime"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// sendBody is a request to send. Text is an abbreviation for an event of type text;
// names may be given instead of ids.
type sendBody struct {
	Sender         string         `json:"sender"`
	Text           *string        `json:"text"`
	EventType      string         `json:"event_type"`
	EventData      jsontext.Value `json:"event_data"`
	Audience       []string       `json:"audience"`
	CausationID    string         `json:"causation_id"`
	TaskID         string         `json:"task_id"`
	Priority       string         `json:"priority"`
	IdempotencyKey string         `json:"idempotency_key"`
	TTLSeconds     *int64         `json:"ttl_seconds"`
}

type sentBody struct {
	EnvelopeID string `json:"envelope_id"`
}

// key returns the key that makes a request safe to repeat, from the body or the
// header.
func (c *call) key(member, given string) (string, error) {
	header := c.Request.Header.Get("Idempotency-Key")
	if !utf8.ValidString(header) {
		return "", fault.New(fault.Invalid, "the header Idempotency-Key is not UTF-8; letters and digits of ASCII always pass")
	}
	if header != "" && given != "" && header != given {
		return "", fault.New(fault.Invalid, "%s and the header Idempotency-Key are the same thing, and differ; send one of them", member)
	}
	return cmp.Or(given, header), nil
}

func (a *API) send(c *call) error {
	var body sendBody
	if err := c.read(&body); err != nil {
		return err
	}
	sender, err := a.actor(c, "sender", body.Sender)
	if err != nil {
		return err
	}
	key, err := c.key("idempotency_key", body.IdempotencyKey)
	if err != nil {
		return err
	}
	e := &envelope.Envelope{
		Channel: c.PathValue("id"), Sender: sender, Type: envelope.Canonical(body.EventType), Data: unlessNull(body.EventData),
		Causation: body.CausationID, Task: body.TaskID, Priority: envelope.ParsePriority(body.Priority),
		Key: key, TTL: body.TTLSeconds,
	}
	if body.Text != nil {
		if e.Type != "" || len(e.Data) > 0 {
			return fault.New(fault.Invalid, "send either text, or event_type and event_data")
		}
		quoted, err := jsontext.AppendQuote([]byte(`{"text":`), *body.Text)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "text is not valid UTF-8")
		}
		e.Type, e.Data = envelope.TypeText, append(quoted, '}')
	}
	if e.Data == nil {
		e.Data = []byte(`{}`)
	}
	if body.Audience != nil {
		e.Audience = []string{}
		for _, name := range body.Audience {
			p, err := a.agent(name)
			if err != nil {
				return err
			}
			e.Audience = append(e.Audience, p.ID())
		}
	}
	id, err := a.post(c, e)
	if err != nil {
		return a.explain(c, sender, err)
	}
	// Followers should receive the event before the sender's answer where that costs
	// nothing. One yield is enough for those that are ready to run; waiting for all
	// would let a slow reader block the sender. Nothing depends on it.
	runtime.Gosched()
	return c.write(http.StatusCreated, sentBody{EnvelopeID: id})
}

// liveBody is a request to show an event without storing it.
type liveBody struct {
	Sender      string         `json:"sender"`
	EventType   string         `json:"event_type"`
	EventData   jsontext.Value `json:"event_data"`
	CausationID string         `json:"causation_id"`
}

// showLive sends an envelope to the current followers of a channel. It has no id and
// is not stored.
func (a *API) showLive(c *call) error {
	var body liveBody
	if err := c.read(&body); err != nil {
		return err
	}
	sender, err := a.actor(c, "sender", body.Sender)
	if err != nil {
		return err
	}
	e := &envelope.Envelope{
		Channel: c.PathValue("id"), Sender: sender, Type: envelope.Canonical(cmp.Or(body.EventType, envelope.TypeDelta)), Data: unlessNull(body.EventData),
		Causation: body.CausationID, Priority: envelope.Normal,
	}
	if envelope.IsProtocol(e.Type) {
		return fault.New(fault.Invalid, "%s is a channel's own bookkeeping, and nobody else shows it", e.Type)
	}
	if err := a.hub.SendLive(c.Context(), e, c.who.hub()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// post passes an envelope to the hub, unless it could be delivered to nobody.
func (a *API) post(c *call, e *envelope.Envelope) (string, error) {
	if err := a.cfg.Takes(e); err != nil {
		return "", err
	}
	if e.Type == envelope.TypeText && hub.HomeOf(e.Channel) != "" { // only homes have channels of one dialect
		m, err := a.hub.Channel(c.Context(), e.Channel)
		if err != nil {
			return "", err
		}
		if _, ok := a.hub.AdapterFor(m).(channel.DialectOnly); ok {
			return a.sayForeign(c, m, e)
		}
	}
	return a.hub.Post(c.Context(), e, c.who.hub())
}

// originName is the name of this interface in texts that are stored in a channel of
// another dialect.
const originName = "v1"

// sayForeign posts a text to a channel of another dialect, in the form of its adapter.
func (a *API) sayForeign(c *call, m *channel.Metadata, e *envelope.Envelope) (string, error) {
	in, err := a.hub.Members(c.Context(), m.ID)
	if err != nil {
		return "", err
	}
	switch {
	case !in.Has(e.Sender):
		return "", fault.New(fault.AccessDenied, "'%s' takes no part in channel '%s'", a.hub.Name(e.Sender), m.ID)
	case !toAll(in, e):
		return "", fault.New(fault.Protocol, "a %s shows every text to all members; leave out the audience", m.Manifest.Type)
	case e.TTL != nil && *e.TTL > 0:
		return "", fault.New(fault.Protocol, "a %s keeps every text; leave out ttl_seconds", m.Manifest.Type)
	}
	s := hub.Saying{
		Channel: m.ID, Sender: e.Sender, Message: message.Envelope{Type: message.TypeText, Content: channel.TextMember(e.Data, "text")},
		Origin: envelope.Origin{Dialect: originName}, Causation: e.Causation, Task: e.Task, Priority: e.Priority,
	}
	if e.Key != "" { // a key may be unique in a whole home
		s.Key = originName + "/" + m.ID + "/" + e.Sender + "/" + e.Key
	}
	return a.hub.Say(c.Context(), s, c.who.hub()).Wait(c.Context())
}

// toAll reports whether an envelope is for every member.
func toAll(in channel.Members, e *envelope.Envelope) bool {
	all := true
	in.Each(func(agent string) bool {
		all = e.VisibleTo(agent)
		return all
	})
	return all
}

// explain adds the expected agent to a refusal with the reason out_of_turn.
func (a *API) explain(c *call, sender string, err error) error {
	if fault.ReasonOf(err) != fault.OutOfTurn {
		return err
	}
	turn, ok, lookErr := a.hub.Expected(c.Context(), c.PathValue("id"))
	if lookErr != nil || !ok || turn.Agent == "" || turn.Agent == sender {
		return err
	}
	name := a.hub.Name(turn.Agent)
	return fault.Wrap(fault.Protocol, err, "%v; it is the turn of '%s'", err, name).
		Because(fault.OutOfTurn).With(fault.DetailExpected, name)
}
