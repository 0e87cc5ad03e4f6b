// Package channel describes a conversation: its metadata, manifest,
// participants and lifecycle, and the contract of the adapters that govern
// one. It holds no state of its own and does no I/O.
package channel

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/envelope"
)

// Metadata is what is known of a channel besides its log.
type Metadata struct {
	ID           string
	Manifest     *Manifest
	Creator      string
	Participants []Participant
	State        Lifecycle
	CreatedAt    time.Time
	ExpiresAt    time.Time // zero: never
	ClosedAt     time.Time // zero: not yet
	CloseReason  string
	Parent       string
	Name         string // in its home, among the channels of its type; empty: none
	MembersOf    string // the channel of the same home whose members belong; empty: none
	Knobs        []byte // a JSON object exactly as given, or nil
	Labels       map[string]string
	RequiredAcks *int
	PendingAcks  []string
	RejectedBy   []string
}

// Participant is one member of a channel.
type Participant struct {
	Agent    string
	Role     Role
	Order    int
	JoinedAt time.Time
}

// Role is a participant's part in a channel.
type Role string

// Roles of AG2's channels.
const (
	Initiator  Role = "initiator"
	Respondent Role = "respondent"
	Member     Role = "participant"
)

// Participant returns the member with an id.
func (m *Metadata) Participant(agent string) (Participant, bool) {
	i := slices.IndexFunc(m.Participants, func(p Participant) bool { return p.Agent == agent })
	if i < 0 {
		return Participant{}, false
	}
	return m.Participants[i], true
}

// Has reports whether an agent takes part.
func (m *Metadata) Has(agent string) bool {
	_, ok := m.Participant(agent)
	return ok
}

// IDs lists the participants by id, in order.
func (m *Metadata) IDs() []string {
	ids := make([]string, len(m.Participants))
	for i, p := range m.Participants {
		ids[i] = p.Agent
	}
	return ids
}

// Others lists the participants except one, in order.
func (m *Metadata) Others(agent string) []string {
	others := make([]string, 0, len(m.Participants))
	for _, p := range m.Participants {
		if p.Agent != agent {
			others = append(others, p.Agent)
		}
	}
	return others
}

// Clone returns a copy whose lists and maps can be changed freely. The
// manifest and the knobs are immutable and shared.
func (m *Metadata) Clone() *Metadata {
	c := *m
	c.Participants = slices.Clone(m.Participants)
	c.PendingAcks = slices.Clone(m.PendingAcks)
	c.RejectedBy = slices.Clone(m.RejectedBy)
	c.Labels = maps.Clone(m.Labels)
	return &c
}

// Manifest describes an adapter to clients. It is immutable.
type Manifest struct {
	Type         string
	Version      int
	Participants Bounds
	KnobsSchema  []byte // a JSON object
	DefaultView  string
	Expectations []Expectation
}

// Bounds says how many take part, and in which roles. It is descriptive: what
// is enforced is the adapter's ValidateCreate.
type Bounds struct {
	Min   int
	Max   *int
	Roles []Role
}

// Expectation is something that a channel's participants are expected to do in
// time, and what happens when they do not.
type Expectation struct {
	Name        string
	OnViolation string
	Params      []byte   // a JSON object
	AppliesTo   []string // roles or ids; nil: everyone
}

// Key names an adapter.
type Key struct {
	Type    string
	Version int
}

// Key is the name under which the manifest's adapter is registered.
func (m *Manifest) Key() Key { return Key{m.Type, m.Version} }

// ValidID reports whether a text has the form of a channel's id: an id or, in a
// home, the home's id, a dot and an id.
func ValidID(text string) bool {
	if home, own, ok := strings.Cut(text, "."); ok {
		return envelope.ValidID(home) && envelope.ValidID(own)
	}
	return envelope.ValidID(text)
}
