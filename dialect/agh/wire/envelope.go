package wire

import "time"

// Values that every peer of the network shares.
const (
	Protocol   = "agh-network/v0"
	ProtocolV1 = "agh-network/v1"

	// ProfileNATS is what a peer's card claims that is reached over NATS.
	ProfileNATS = "agh-network.nats/v0"

	// MaxBytes is how large a serialized envelope may be.
	MaxBytes = 1 << 20
	// MaxDepth is how deep an envelope may nest, itself counted.
	MaxDepth = 64
	// DefaultReplayAge is how old an envelope without expires_at may be, and
	// how far ahead its clock.
	DefaultReplayAge = 300 * time.Second
	// DefaultChannel is the channel of peers that name none.
	DefaultChannel = "default"
)

// Kind is what an envelope is for.
type Kind string

// The six kinds. "direct" is a surface, not a kind.
const (
	Greet      Kind = "greet"
	Whois      Kind = "whois"
	Say        Kind = "say"
	Capability Kind = "capability"
	Receipt    Kind = "receipt"
	Trace      Kind = "trace"
)

// Kinds lists the six kinds.
func Kinds() []Kind { return []Kind{Greet, Whois, Say, Capability, Receipt, Trace} }

// Known reports whether a kind is one of the six.
func (k Kind) Known() bool { return k.Discovery() || k.Conversation() }

// Discovery reports whether a kind is about peers, outside of conversations.
func (k Kind) Discovery() bool { return k == Greet || k == Whois }

// Conversation reports whether a kind belongs into a thread or direct room.
func (k Kind) Conversation() bool { return k == Say || k == Capability || k == Receipt || k == Trace }

// Surface is the shape of a conversation.
type Surface string

// The two surfaces. Discovery kinds have none.
const (
	Thread Surface = "thread"
	Direct Surface = "direct"
)

// Container names one conversation of a workspace.
type Container struct {
	Channel string
	Surface Surface
	ID      string // thread_id or direct_id
}

// Envelope is one message. Members that are absent or null are empty; Body,
// Proof and Ext are JSON objects exactly as received, or nil.
type Envelope struct {
	Protocol  string
	ID        string
	Workspace string
	Kind      Kind
	Channel   string
	Surface   Surface
	Thread    string // thread_id
	Direct    string // direct_id
	From      string
	To        string
	Work      string // work_id
	ReplyTo   string
	Trace     string // trace_id
	Causation string // causation_id
	TS        int64
	ExpiresAt *int64
	Body      []byte
	Proof     []byte
	Ext       []byte

	// Content is what Body says: a *GreetBody, *WhoisBody, *SayBody, *CapabilityBody,
	// *ReceiptBody or *TraceBody. Decode sets it; nothing is encoded from it.
	Content any
}

// Container is the conversation that the envelope belongs to; a discovery
// envelope has only a channel.
func (e *Envelope) Container() Container {
	c := Container{Channel: e.Channel, Surface: e.Surface}
	switch e.Surface {
	case Thread:
		c.ID = e.Thread
	case Direct:
		c.ID = e.Direct
	}
	return c
}

// ProtocolOf is the protocol of a version.
func ProtocolOf(version int) string {
	if version == 1 {
		return ProtocolV1
	}
	return Protocol
}

// Version is the protocol's version that an envelope speaks: 0 or 1.
func (e *Envelope) Version() int {
	if e.Protocol == ProtocolV1 {
		return 1
	}
	return 0
}
