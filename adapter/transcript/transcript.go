// Package transcript governs the channels that are chat sessions: canonical messages,
// kept as records that append, replace the tail or compact, and the runs that wrote
// them. The state counts and describes; messages are read from the log. It is pure.
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

// Adapter is stateless: what it knows is fixed when it is made.
type Adapter struct{ messages, record int }

// New makes the adapter.
func New(o Options) *Adapter {
	if o.Messages <= 0 {
		o.Messages = DefaultMessages
	}
	if o.Record <= 0 {
		o.Record = DefaultRecord
	}
	return &Adapter{messages: o.Messages, record: o.Record}
}

// Knobs are what a session is opened with and keeps. Its id is the channel's name.
type Knobs struct {
	ScopeType string         `json:"workspace_type"`
	ScopeID   string         `json:"workspace_id"`
	OwnerType string         `json:"owner_type"`
	OwnerKey  string         `json:"owner_key"`
	Agent     string         `json:"agent,omitzero"`
	Context   string         `json:"context"`
	Metadata  jsontext.Value `json:"metadata,omitzero"`
}

// Bytes is the form that a channel's metadata holds.
func (k Knobs) Bytes() ([]byte, error) { return json.Marshal(k) }

// ParseKnobs reads what a session was opened with.
func ParseKnobs(m *channel.Metadata) (Knobs, error) {
	var k Knobs
	if err := json.Unmarshal(m.Knobs, &k); err != nil || k.ScopeType == "" || k.OwnerType == "" || m.Name == "" {
		return Knobs{}, fault.New(fault.Protocol, "a transcript is a chat session; POST /v1/chat opens it")
	}
	return k, nil
}

var manifest = channel.Manifest{Type: Type, Version: 1, Participants: channel.Bounds{Min: 1}, DefaultView: "full_transcript"}

// Manifest is constant.
func (*Adapter) Manifest() channel.Manifest { return manifest }

// Dialect is the one that opens transcripts.
func (*Adapter) Dialect() string { return Dialect }

// Private keeps a session to its owner and to operators.
func (*Adapter) Private() bool { return true }

// HomeKeys makes run ids count among all sessions of an owner, until the session
// is deleted.
func (*Adapter) HomeKeys() bool { return true }

// Opening is at once: nobody is asked.
func (*Adapter) Opening() channel.Opening { return channel.AtOnce }

// ValidateCreate requires a name, a workspace and an owner.
func (a *Adapter) ValidateCreate(m *channel.Metadata) error {
	k, err := ParseKnobs(m)
	if err == nil && len(k.Metadata) > a.record {
		return a.tooLong(len(k.Metadata))
	}
	return err
}

// Initial is an empty session.
func (*Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := ParseKnobs(m)
	if err != nil {
		return nil, err
	}
	return &State{Details: Details{Metadata: k.Metadata}, Updated: m.CreatedAt}, nil
}

// Expected names nobody: the server decides who answers.
func (*Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// Recipients is always empty: sessions are followed, not delivered.
func (*Adapter) Recipients(*channel.Metadata, channel.State, channel.Members, *envelope.Envelope) []string {
	return nil
}

// Visible: members read everything.
func (*Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}
