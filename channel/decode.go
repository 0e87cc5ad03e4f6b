package channel

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// DecodeMetadata reads what AppendJSON writes. It takes times in every form
// that envelope.ParseTime knows, ignores unknown keys, and fills missing ones
// with their defaults. If shared is not nil, channels share one copy of equal
// manifests, knobs and names.
func DecodeMetadata(data []byte, shared *Interner) (*Metadata, error) {
	var raw struct {
		ID           string            `json:"channel_id"`
		Manifest     jsontext.Value    `json:"manifest"`
		Creator      string            `json:"creator_id"`
		Participants []participantJSON `json:"participants"`
		State        string            `json:"state"`
		CreatedAt    string            `json:"created_at"`
		ExpiresAt    string            `json:"expires_at"`
		ClosedAt     string            `json:"closed_at"`
		CloseReason  string            `json:"close_reason"`
		Parent       string            `json:"parent_channel_id"`
		Knobs        jsontext.Value    `json:"knobs"`
		Labels       map[string]string `json:"labels"`
		RequiredAcks *int              `json:"required_acks"`
		PendingAcks  []string          `json:"pending_acks"`
		RejectedBy   []string          `json:"rejected_by"`
		Name         string            `json:"name"`
		MembersOf    string            `json:"members_of"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("channel: metadata: %w", err)
	}
	manifest, err := shared.manifest(raw.Manifest)
	if err != nil {
		return nil, err
	}
	state, err := ParseLifecycle(raw.State)
	if err != nil {
		return nil, err
	}
	knobs, err := object("knobs", raw.Knobs)
	if err != nil {
		return nil, err
	}
	m := &Metadata{
		ID:           raw.ID,
		Manifest:     manifest,
		Creator:      shared.name(raw.Creator),
		State:        state,
		CloseReason:  shared.name(raw.CloseReason),
		Parent:       raw.Parent,
		Name:         raw.Name,
		MembersOf:    raw.MembersOf,
		Knobs:        shared.Knobs(knobs),
		RequiredAcks: raw.RequiredAcks,
		PendingAcks:  shared.names(raw.PendingAcks),
		RejectedBy:   shared.names(raw.RejectedBy),
	}
	if len(raw.Labels) > 0 {
		m.Labels = raw.Labels
	}
	var bad error
	m.CreatedAt = parseTime(raw.CreatedAt, &bad)
	m.ExpiresAt = parseTime(raw.ExpiresAt, &bad)
	m.ClosedAt = parseTime(raw.ClosedAt, &bad)
	m.Participants = make([]Participant, len(raw.Participants))
	for i, p := range raw.Participants {
		m.Participants[i] = p.participant(m.Creator, shared, &bad)
	}
	if bad != nil {
		return nil, fmt.Errorf("channel: metadata: %w", bad)
	}
	return m, nil
}

// DecodeManifest reads a manifest; what is missing takes the defaults, except
// type, and name and on_violation of an expectation, which are required.
func DecodeManifest(data []byte) (*Manifest, error) {
	var raw struct {
		Type         string          `json:"type"`
		Version      *int            `json:"version"`
		Participants *boundsJSON     `json:"participants"`
		KnobsSchema  jsontext.Value  `json:"knobs_schema"`
		DefaultView  *string         `json:"default_view_policy"`
		Expectations expectationList `json:"expectations"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("channel: manifest: %w", err)
	}
	if raw.Type == "" {
		return nil, errors.New("channel: a manifest has a type")
	}
	schema, err := object("knobs_schema", raw.KnobsSchema)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Type: raw.Type, Version: 1, Participants: Bounds{Min: 2}, KnobsSchema: schema, DefaultView: "full_transcript"}
	if raw.Version != nil {
		m.Version = *raw.Version
	}
	if raw.DefaultView != nil {
		m.DefaultView = *raw.DefaultView
	}
	if b := raw.Participants; b != nil {
		if b.Min != nil {
			m.Participants.Min = *b.Min
		}
		m.Participants.Max = b.Max
		for _, role := range b.Roles {
			m.Participants.Roles = append(m.Participants.Roles, role.share())
		}
	}
	m.Expectations, err = raw.Expectations.decode()
	return m, err
}

// DecodeExpectations reads a list of expectations, as in a manifest or in the
// knob that replaces it.
func DecodeExpectations(data []byte) ([]Expectation, error) {
	var raw expectationList
	if err := json.Unmarshal(data, &raw); err != nil {
		if wrong, ok := errors.AsType[*json.SemanticError](err); ok { // its message names Go types
			err = fmt.Errorf("%q has the wrong type; each is an object with the texts name and on_violation, an object params and a list applies_to", "expectations"+string(wrong.JSONPointer))
		}
		return nil, fmt.Errorf("channel: expectations: %w", err)
	}
	return raw.decode()
}

type expectationList []struct {
	Name        string         `json:"name"`
	OnViolation string         `json:"on_violation"`
	Params      jsontext.Value `json:"params"`
	AppliesTo   []string       `json:"applies_to"`
}

func (l expectationList) decode() ([]Expectation, error) {
	var list []Expectation
	for i, x := range l {
		if x.Name == "" || x.OnViolation == "" {
			return nil, fmt.Errorf("channel: expectation %d needs a name and an on_violation", i)
		}
		params, err := object("params", x.Params)
		if err != nil {
			return nil, err
		}
		list = append(list, Expectation{Name: x.Name, OnViolation: x.OnViolation, Params: params, AppliesTo: x.AppliesTo})
	}
	return list, nil
}

type boundsJSON struct {
	Min   *int   `json:"min"`
	Max   *int   `json:"max"`
	Roles []Role `json:"roles"`
}

type participantJSON struct {
	Agent    string `json:"agent_id"`
	Role     Role   `json:"role"`
	Order    int    `json:"order"`
	JoinedAt string `json:"joined_at"`
}

func (p participantJSON) participant(creator string, shared *Interner, bad *error) Participant {
	agent := shared.name(p.Agent)
	if agent == creator {
		agent = creator // so that both share one string
	}
	return Participant{Agent: agent, Role: p.Role.share(), Order: p.Order, JoinedAt: parseTime(p.JoinedAt, bad)}
}

// share returns the constant of a known role, so that no channel has a copy of it.
func (r Role) share() Role {
	for _, known := range [...]Role{Initiator, Respondent, Member} {
		if r == known {
			return known
		}
	}
	return r
}

// object returns a JSON object's bytes unchanged; for null, nothing and {} it
// returns nil, which is written as {}.
func object(what string, raw jsontext.Value) ([]byte, error) {
	switch {
	case len(raw) == 0, raw.Kind() == 'n', string(raw) == "{}":
		return nil, nil
	case raw.Kind() != '{':
		return nil, fmt.Errorf("channel: %s is a JSON object, not %.40s", what, raw)
	}
	return raw, nil
}

func parseTime(s string, bad *error) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := envelope.ParseTime(s)
	if err == nil && (t.Year() < 0 || t.Year() > 9999) {
		err = fmt.Errorf("time %s is outside the years 0 to 9999", s) // it could not be written
	}
	if err != nil && *bad == nil {
		*bad = err
	}
	return t
}
