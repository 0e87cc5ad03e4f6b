package ag2

import (
	"fmt"
	"slices"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/wsconn"
)

// Prove is called once for each identity that was proved on a connection, with its
// claim. It returns a function that reports whether the proof is still valid, which
// is called whenever the identity acts, and by Recheck; nil means always. An error
// refuses the identity.
type Prove func(name, scheme string, claim []byte) (stands func() bool, err error)

// Recheck closes the connections of identities whose proof is no longer valid. It
// is called after keys were made or revoked, and returns when all close frames are
// queued.
func (s *Server) Recheck() {
	for _, ws := range s.conns.All() {
		c, ok := ws.Handler().(*conn)
		if !ok {
			continue
		}
		for _, id := range c.identities() {
			if c.host(id).stands() {
				continue
			}
			c.unbind()
			c.expel(id)
			break
		}
	}
}

// expel closes a connection when the proof of one of its identities is no longer
// valid. The others prove themselves again on a new connection.
func (c *conn) expel(agent string) {
	if c.expelled.Swap(true) {
		return
	}
	c.server.stats.expelled.Add(1)
	c.ws.End(&wsconn.CloseError{
		Code: wsconn.Policy, Reason: fmt.Sprintf("the key of %.60q was revoked or made; show one", c.server.cfg.Hub.Name(agent)),
	})
}

// stands reports whether an identity is proved on this connection and its
// proof is still valid.
func (h *host) stands() bool { return h != nil && (h.proof == nil || h.proof()) }

// mayLook returns an error if the connection may not read the directory. It is open
// to connections that proved an identity, to operators, and to connections that
// could register an identity without a proof.
func (c *conn) mayLook() error {
	if c.server.cfg.TrustClients || c.server.cfg.Strangers(c.peer) || c.isOperator() {
		return nil
	}
	if slices.ContainsFunc(c.identities(), c.proved) {
		return nil
	}
	return fault.New(fault.AccessDenied, "the directory is for who has proved an identity: register one or say hello as one first")
}

// failed reports a proof that was refused.
func (c *conn) failed(name string, err error) {
	if fault.CodeOf(err) == fault.AuthFailed {
		c.server.cfg.AuthFailed(c.peer, name)
	}
}
