// Package transcript governs the channels that are chat sessions: canonical
// messages, stored as records that append, replace the tail or compact, and the
// runs that wrote them. The state counts and describes the messages, which are read
// from the log. It is pure.
package transcript

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Type is the name under which the adapter is registered.
const Type = "transcript"

// Dialect is the only dialect that opens transcripts, and the kind of the homes that
// they are stored in.
const Dialect = "chat"

// Defaults of Options.
const (
	DefaultMessages = 10_000
	DefaultRecord   = 64 << 10
)

// Options bound a session; zero values are the defaults.
type Options struct {
	Messages int // of one session (chat.messages)
	Record   int // bytes of title, metadata and the provider's names together (limits.record)
}

// Adapter is stateless: its fields are fixed when it is created.
type Adapter struct{ messages, record int }

// New returns an adapter.
func New(o Options) *Adapter {
	if o.Messages <= 0 {
		o.Messages = DefaultMessages
	}
	if o.Record <= 0 {
		o.Record = DefaultRecord
	}
	return &Adapter{messages: o.Messages, record: o.Record}
}

// Knobs are the fixed parameters of a session. Its id is the channel's name.
type Knobs struct {
	ScopeType string         `json:"workspace_type"`
	ScopeID   string         `json:"workspace_id"`
	OwnerType string         `json:"owner_type"`
	OwnerKey  string         `json:"owner_key"`
	Agent     string         `json:"agent,omitzero"`
	Context   string         `json:"context"`
	Metadata  jsontext.Value `json:"metadata,omitzero"`
}

// Bytes returns the form in a channel's metadata.
func (k Knobs) Bytes() ([]byte, error) { return json.Marshal(k) }

// ParseKnobs reads the parameters of a session.
func ParseKnobs(m *channel.Metadata) (Knobs, error) {
	var k Knobs
	if err := json.Unmarshal(m.Knobs, &k); err != nil || k.ScopeType == "" || k.OwnerType == "" || m.Name == "" {
		return Knobs{}, fault.New(fault.Protocol, "a transcript is a chat session; POST /v1/chat opens it")
	}
	return k, nil
}

var manifest = channel.Manifest{Type: Type, Version: 1, Participants: channel.Bounds{Min: 1}, DefaultView: "full_transcript"}

// Manifest returns a constant.
func (*Adapter) Manifest() channel.Manifest { return manifest }

// Dialect returns the dialect that opens transcripts.
func (*Adapter) Dialect() string { return Dialect }

// Private restricts a session to its owner and to operators.
func (*Adapter) Private() bool { return true }

// HomeKeys makes run ids unique among all sessions of an owner, until the session
// is deleted.
func (*Adapter) HomeKeys() bool { return true }

// Opening returns AtOnce: no participant has to accept.
func (*Adapter) Opening() channel.Opening { return channel.AtOnce }

// ValidateCreate requires a name, a workspace and an owner.
func (a *Adapter) ValidateCreate(m *channel.Metadata) error {
	k, err := ParseKnobs(m)
	if err == nil && len(k.Metadata) > a.record {
		return a.tooLong(len(k.Metadata))
	}
	return err
}

// Initial returns the state of an empty session.
func (*Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := ParseKnobs(m)
	if err != nil {
		return nil, err
	}
	return &State{Details: Details{Metadata: k.Metadata}, Updated: m.CreatedAt}, nil
}

// Expected returns no speaker: the server decides who answers.
func (*Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Recipients returns nil: sessions are followed, not delivered.
func (*Adapter) Recipients(*channel.Metadata, channel.State, channel.Members, *envelope.Envelope) []string {
	return nil
}

// Visible reports whether an agent is a member; members read everything.
func (*Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}
