package agent

import (
	"context"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Link is how one identity reaches its hub. Errors carry codes of package
// fault. Safe for concurrent use.
type Link interface {
	// Self returns the identity that the link acts for.
	Self() Identity
	// Receive waits for the next delivery. Deliveries of one channel come in
	// the order of its log. An error ends the link.
	Receive(ctx context.Context) (*Delivery, error)
	Channels
	Directory
	Tasks
}

// Identity is who a link acts for.
type Identity struct {
	ID   string
	Name string
}

// Delivery is an envelope that arrived. Exactly one of Ack and Nack is called,
// unless the process ends before: then it is delivered again.
type Delivery struct {
	Envelope *envelope.Envelope
	Ack      func(ctx context.Context) error
	Nack     func(ctx context.Context, reason string) error
}

// Channels is what a link does with conversations.
type Channels interface {
	Channel(ctx context.Context, id string) (*channel.Metadata, error)
	// ListChannels lists the channels that the identity takes part in, oldest
	// first, ended ones too.
	ListChannels(ctx context.Context, limit int) ([]*channel.Metadata, error)
	// OpenChannel returns when the channel is active.
	OpenChannel(ctx context.Context, o Opening) (*channel.Metadata, error)
	CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error)
	// Log returns a channel's whole history in order.
	Log(ctx context.Context, channelID string) ([]*envelope.Envelope, error)
	// Answer finds the identity's own envelope that answers another; nil if
	// there is none.
	Answer(ctx context.Context, channelID, cause string) (*envelope.Envelope, error)
	// CanSend reports whether the adapter would accept an envelope of a type now.
	CanSend(ctx context.Context, channelID, eventType string) (bool, error)
	Post(ctx context.Context, e *envelope.Envelope) (id string, err error)
	PendingTurns(ctx context.Context) ([]PendingTurn, error)
	ReportTurnFailure(ctx context.Context, channelID, envelopeID string, cause error) error
}

// Opening asks for a channel. The identity itself is its creator.
type Opening struct {
	Type         string
	Version      int      // 0: 1
	Participants []string // names or ids; the identity itself may be left out
	TTL          string   // such as "2h"; empty: the identity's rule decides
	Knobs        []byte   // a JSON object, or nil
	Intent       string
	Labels       map[string]string
}

// PendingTurn is a turn that the identity is to take.
type PendingTurn struct {
	Channel    string
	Trigger    string // empty before anyone has spoken
	ExpectedAt time.Time
}

// Directory is what a link knows of the other identities.
type Directory interface {
	// Names resolves ids; an unknown id maps to itself.
	Names(ctx context.Context, ids []string) (map[string]string, error)
	// Peer finds an identity by name, or else by id.
	Peer(ctx context.Context, nameOrID string) (*Peer, error)
	// Peers lists identities in the order they registered.
	Peers(ctx context.Context, q PeerQuery) ([]*Peer, error)
	// Skill returns an identity's skill document, or the one made for it if it
	// stored none.
	Skill(ctx context.Context, agentID string) (string, error)
}

// PeerQuery selects identities; its zero value selects all.
type PeerQuery struct {
	Capability string // exactly, claimed or observed
	Text       string // in the summary, whatever the case
}

// Peer is what is known of an identity.
type Peer struct {
	ID       string
	Name     string
	Owner    string
	Provider string
	Model    string
	Cost     *Cost

	Summary      string
	Capabilities []string // claimed
	Domains      []string
	Observed     map[string]Observed
}

// Cost is what an identity's model costs; prices are JSON numbers, "" if none
// is stated.
type Cost struct {
	InputPerMTok  string
	OutputPerMTok string
	LatencyTier   string
}

// Observed is the hub's record of one capability.
type Observed struct {
	N         int64 `json:"n"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Expired   int64 `json:"expired"`
}

// SuccessRate returns the share of all observed tasks that were completed;
// false if none was observed.
func (p *Peer) SuccessRate() (float64, bool) {
	var n, completed int64
	for _, o := range p.Observed {
		n, completed = n+o.N, completed+o.Completed
	}
	if n == 0 {
		return 0, false
	}
	return float64(completed) / float64(n), true
}
