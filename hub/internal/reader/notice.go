// Package reader has what is between the hub's deliveries and their readers: the
// endpoints of an identity, the notices that arrive at them during a replay, and
// how far each participant of a channel has read. It does not use channel state and
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
	Dialect   string // the only dialect that shows the channel; empty: every dialect does
	Live      bool   // not part of the history; its Seq is the last one of the history before it
	Side      bool   // of the side log
	Alone     bool   // no other notice is on its way to any reader
	// Shared is common to all readers of the envelope.
	Shared *Shared
}

// Shared holds the encoding of an envelope by each dialect, so that it is encoded
// once for all its readers.
type Shared struct {
	mu      sync.Mutex
	encoded map[string][]byte
}

// Bytes returns what encode returned for that dialect the first time.
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

// Endpoint is where an identity reads: a connection, or an Inbox within the
// process.
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
	// Reader names the reader, for example a dialect's queue. Each reader of an
	// identity has cursors of its own and receives everything. A new endpoint with
	// the same reader replaces the previous one. AG2's endpoints have no reader
	// name.
	Reader string
	// Dialect, if set, also replays the channels that only this dialect shows.
	Dialect string
	// Replay sends what the reader has not acked, after the id Since, or everything
	// if it is empty. Live deliveries follow, without gap or repeat.
	Replay bool
	Since  string
}

// Described is an endpoint that describes itself.
type Described interface {
	Describe() (dialect, address string)
}

// Connection is an endpoint at which an identity reads.
type Connection struct {
	Dialect string // empty: in process
	Address string
	Since   time.Time
}
