// Package reader has what stands between the hub's deliveries and those who read
// them: the endpoints of an identity, what arrives at them during a replay, and
// how far each participant of a channel has read. It knows no channel's state and
// writes nothing.
package reader

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Notice is an envelope on its way to one reader.
type Notice struct {
	Envelope  *envelope.Envelope
	Channel   *channel.Metadata
	Recipient string
	Replayed  bool
	Dialect   string // the one dialect that shows the channel; empty: every one does
	Live      bool   // not of the history; its Seq is the last one there before it
	Side      bool   // of the side log
	Alone     bool   // nothing else is on its way to anybody
	// Shared is common to all readers of the envelope.
	Shared *Shared
}

// Shared keeps what a dialect made of an envelope, so that it is encoded once
// for all its readers.
type Shared struct {
	mu      sync.Mutex
	encoded map[string][]byte
}

// Bytes returns what encode made for that dialect the first time.
func (s *Shared) Bytes(dialect string, encode func() []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.encoded[dialect]; ok {
		return b
	}
	b := encode()
	if s.encoded == nil {
		s.encoded = map[string][]byte{}
	}
	s.encoded[dialect] = b
	return b
}

// Endpoint is where an identity reads: a connection, or an Inbox in process.
type Endpoint interface {
	// ID names the endpoint for as long as it lives.
	ID() string
	// Deliver queues a notice without waiting. An endpoint whose queue is full
	// cuts itself off; what it missed is replayed when it comes back.
	Deliver(n *Notice) error
	// Replay queues a notice and waits for room.
	Replay(ctx context.Context, n *Notice) error
	// CutOff ends the endpoint with a reason, because it missed something.
	CutOff(why error)
}

// Attachment says how an endpoint reads for an identity.
type Attachment struct {
	// Reader names what reads, for example a dialect's queue. Each reader of an
	// identity has cursors of its own and is told everything. A new endpoint with the
	// same reader replaces the one before. AG2's endpoints have no reader name.
	Reader string
	// Dialect, if set, replays the channels that only this dialect shows, too.
	Dialect string
	// Replay sends what the reader has not acked, after Since: an id, or empty
	// for everything. Live deliveries follow, without gap or repeat.
	Replay bool
	Since  string
}

// Described is an endpoint that can say what it is.
type Described interface {
	Describe() (dialect, address string)
}

// Connection is an endpoint at which an identity reads.
type Connection struct {
	Dialect string // empty: in process
	Address string
	Since   time.Time
}
