package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/client/v1/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// atParam reads the sequence in the parameter at; the default is the end.
func (c *call) atParam(head journal.Position) (uint64, error) {
	text := c.URL.Query().Get("at")
	if text == "" {
		return head.Seq, nil
	}
	at, err := strconv.ParseUint(text, 10, 64)
	if err != nil || at > head.Seq {
		return 0, fault.New(fault.Invalid, "at=%q is not an event of this channel; it is 0 (before the first) to %d", text, head.Seq)
	}
	return at, nil
}

type pastBody struct {
	At          pastAt         `json:"at"`
	State       string         `json:"state"`
	CloseReason *string        `json:"close_reason"`
	Folded      jsontext.Value `json:"folded_state"`
	// Turn is whose turn it was. When it was handed over or due is not in the history,
	// nor who was online.
	Turn         *wire.ExpectedTurn `json:"turn"`
	Participants []pastMember       `json:"participants"`
	Context      []pastVariable     `json:"context"`
}

type pastAt struct {
	Sequence  uint64    `json:"sequence"`
	Position  string    `json:"position"`
	Envelope  string    `json:"envelope_id"`
	CreatedAt time.Time `json:"created_at"`
}

type pastMember struct {
	Agent   string       `json:"agent_id"`
	Role    channel.Role `json:"role"`
	Hidden  bool         `json:"hidden"`
	Removed bool         `json:"removed"`
}

type pastVariable struct {
	Key      string         `json:"key"`
	Value    jsontext.Value `json:"value"`
	Sequence uint64         `json:"sequence"`
	Envelope string         `json:"envelope_id"`
	Sender   string         `json:"sender_id"`
}

// channelState shows the fold as it was after a sequence.
func (a *API) channelState(c *call) error {
	m, head, at, err := a.asked(c)
	if err != nil {
		return err
	}
	was, err := a.seek(c.Context(), m, at)
	if err != nil {
		return err
	}
	adapter, err := a.hub.Adapter(c.Context(), m.ID)
	if err != nil {
		return err
	}
	end := head.Seq
	head.Seq = was.sequence
	body := pastBody{
		At:    pastAt{was.sequence, head.String(), was.envelope, was.at},
		State: was.life.String(), CloseReason: optional(was.reason), Participants: []pastMember{}, Context: []pastVariable{},
	}
	if body.Folded, err = adapter.Codec().Encode(was.state); err != nil {
		return err
	}
	if was.expected != "" {
		body.Turn = &wire.ExpectedTurn{Person: a.person(was.expected), Since: was.since}
		body.Turn.Online = false
	}
	hidden, err := a.hiddenAt(c.Context(), m, head.Seq == end)
	if err != nil {
		return err
	}
	for _, p := range m.Participants {
		_, err := a.hub.AgentByID(p.Agent)
		body.Participants = append(body.Participants, pastMember{
			Agent: p.Agent, Role: p.Role, Hidden: slices.Contains(hidden, p.Agent), Removed: err != nil || slices.Contains(was.removed, p.Agent),
		})
	}
	for key, value := range variables(was.state) {
		w := was.writers[key]
		body.Context = append(body.Context, pastVariable{key, jsontext.Value(value), w.sequence, w.envelope, w.sender})
	}
	return c.write(http.StatusOK, body)
}

// hiddenAt returns the participants that receive nothing until they speak. The
// history does not tell this, so it is known of the newest moment only.
func (a *API) hiddenAt(ctx context.Context, m *channel.Metadata, now bool) ([]string, error) {
	if !now {
		return nil, nil
	}
	b, err := a.hub.Brief(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	return b.Hidden, nil
}

// asked returns the channel of a request, its end, and the sequence of the parameter
// at.
func (a *API) asked(c *call) (*channel.Metadata, journal.Position, uint64, error) {
	m, err := a.see(c)
	if err != nil {
		return nil, journal.Position{}, 0, err
	}
	head, err := a.hub.Position(c.Context(), m.ID)
	if err != nil {
		return nil, head, 0, err
	}
	at, err := c.atParam(head)
	return m, head, at, err
}
