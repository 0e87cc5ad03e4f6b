package ag2

import (
	"maps"
	"slices"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/wsconn"
)

// host is an identity on a connection.
type host struct {
	tail []byte    // end of its notify frames
	born time.Time // when it was registered here; zero if it said hello
	// proof reports whether what proved the identity is still valid; nil: always.
	proof func() bool
	// caller is the connection as a caller for this identity; nil until it is used.
	caller *hub.Caller

	// held is true until the answer to its registration is queued. Deliveries are
	// kept until then, because AG2's client drops deliveries for an unknown
	// identity.
	held bool
	kept []wsconn.Frame
}

// maxKept bounds the deliveries before a registration is answered.
const maxKept = 1024

// proved reports whether an identity is registered and has a valid proof on this
// connection.
func (c *conn) proved(agent string) bool {
	h := c.host(agent)
	if h == nil {
		return false
	}
	if !h.stands() {
		c.expel(agent)
		return false
	}
	if _, err := c.server.cfg.Hub.AgentByID(agent); err != nil {
		c.disown(agent)
		return false
	}
	return true
}

func (c *conn) host(agent string) *host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[agent]
}

// tail returns the end of an identity's notify frames, nil if the identity is not
// on this connection, and whether its deliveries are kept back.
func (c *conn) tail(agent string) (tail []byte, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[agent]
	if h == nil {
		return nil, false
	}
	return h.tail, h.held
}

// adopt records that an identity was proved here, and with which claim.
func (c *conn) adopt(p *identity.Passport, scheme string, claim []byte) error {
	if err := c.roomFor(p.AgentID); err != nil {
		return err
	}
	var proof func() bool
	if c.prove != nil {
		var err error
		if proof, err = c.prove(p.Name, scheme, claim); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts == nil {
		c.hosts = map[string]*host{}
	}
	h := &host{tail: wire.AppendNotifyTail(nil, p.AgentID)}
	if known := c.hosts[p.AgentID]; known != nil {
		*h = *known
	}
	h.proof = proof
	c.hosts[p.AgentID] = h
	if !h.stands() { // the proof was revoked; Recheck may have run before the identity was added
		delete(c.hosts, p.AgentID)
		return fault.New(fault.AuthFailed, "the proof of %q is no longer valid: its key was made or revoked since; attach again", p.Name)
	}
	return nil
}

// roomFor returns an error if there are too many identities; an empty id is one
// that does not exist yet.
func (c *conn) roomFor(agent string) error {
	limit := c.server.cfg.Limits.Identities
	if c.host(agent) != nil || c.count() < limit {
		return nil
	}
	for _, id := range c.identities() {
		if !c.proved(id) {
			return nil // this identity no longer counts
		}
	}
	return fault.New(fault.TooLarge, "this connection has %d identities, which is the limit (ag2.limits.identities); open another", limit)
}

func (c *conn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.hosts)
}

func (c *conn) disown(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.hosts, agent)
}

// identities lists the identities that were proved here.
func (c *conn) identities() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.hosts))
}

// hold starts to keep back deliveries to a new identity.
func (c *conn) hold(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[agent]; h != nil {
		h.held, h.born = true, time.Now()
	}
}

// release sends the kept frames, before everything that comes later.
func (c *conn) release(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[agent]
	if h == nil {
		return
	}
	for _, f := range h.kept {
		_ = c.ws.Send(f)
	}
	h.held, h.kept = false, nil
}

// Even so, a new identity may miss an invitation if its client reads the answer and
// the invitation at once. The invitation is sent again until it is answered.
const (
	newFor      = 10 * time.Second
	inviteAgain = 1500 * time.Millisecond
	invitations = 3
)

// remind sends an invitation again if it was not answered.
func (c *conn) remind(agent, channelID string, f wsconn.Frame, left int) {
	time.AfterFunc(inviteAgain, func() {
		c.ws.Go(func() {
			m, err := c.server.cfg.Hub.Channel(c.server.conns.Context(), channelID)
			if err != nil || m.State != channel.Pending || !slices.Contains(m.PendingAcks, agent) || c.host(agent) == nil {
				return
			}
			if c.ws.Send(f) == nil && left > 1 {
				c.remind(agent, channelID, f, left-1)
			}
		})
	})
}
