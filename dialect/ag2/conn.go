package ag2

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/wsconn"
)

// conn is one connection: an endpoint of the hub, and the identities that were
// proved on it.
type conn struct {
	server   *Server
	ws       *wsconn.Conn
	peer     identity.Peer
	ctx      context.Context // of the connection's operations; it outlives the connection
	operator func() bool     // nil: not an operator
	prove    Prove           // nil: every proof is valid for ever
	// mirrorsOwn is true if the client itself posts its tasks to their channels.
	mirrorsOwn bool

	inbox   inbox
	posts   posts
	feeds   feeds
	arrived arrived // of the reader

	openings atomic.Int64
	expelled atomic.Bool // closed because a proof is no longer valid

	mu    sync.Mutex
	hosts map[string]*host // identities proved here, by id
}

// Describe returns the dialect and the peer's address.
func (c *conn) Describe() (dialect, address string) { return "ag2", c.peer.Address }

// Message adds a post to the batch of posts that were read together, if nothing is
// queued before it. It puts any other message into the inbox, and waits while the
// inbox is full.
func (c *conn) Message(payload []byte, binary bool) error {
	c.showIn(payload)
	if binary && !utf8.Valid(payload) {
		c.malformed(errors.New("a binary message is not UTF-8"))
		return nil
	}
	message := received{size: len(payload)}
	message.frame, message.err = wire.Decode(payload)
	if post, ok := message.frame.(*wire.Post); ok && (c.arrived.some() || c.inbox.idle()) {
		if c.arrived.add(post, message.size) {
			c.Drained()
		}
		return nil
	}
	c.Drained()
	if !c.inbox.put(message, func() { c.ws.Go(c.work) }) {
		return wsconn.ErrClosed
	}
	return nil
}

// ReadingEnded lets the received work finish.
func (c *conn) ReadingEnded() {
	c.unbind()
	c.inbox.close()
}

// Closed unbinds identities that were bound while the work finished.
func (c *conn) Closed() { c.unbind() }

// LogAttrs returns the agents of the connection.
func (c *conn) LogAttrs() []any { return []any{"agents", c.identities()} }

// malformed counts and logs a frame that is dropped.
func (c *conn) malformed(err error) {
	c.server.stats.malformed.Add(1)
	c.server.warnings.Warn(c.server.cfg.Log, time.Now(), "frame dropped", "endpoint_id", c.ID(), "peer", c.peer.Address, "error", err)
}

// ID names the endpoint.
func (c *conn) ID() string { return c.ws.ID() }

func (c *conn) unbind() { c.server.cfg.Hub.Unbind(c, c.identities()...) }
