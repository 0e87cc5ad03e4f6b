package ag2

import (
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
)

var (
	nobody  = &hub.Caller{}
	trusted = &hub.Caller{Anyone: true} // used with ag2.trust_clients for every connection
)

// callerFor returns the connection as a caller for one identity, if that identity
// is proved here; otherwise a caller that may act for nobody.
func (c *conn) callerFor(agent string) *hub.Caller {
	switch {
	case c.server.cfg.TrustClients:
		return trusted
	case !c.proved(agent):
		return nobody
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[agent]
	if h == nil {
		return nobody
	}
	if h.caller == nil {
		h.caller = &hub.Caller{Agents: []string{agent}, Connection: c.ID()}
	}
	return h.caller
}

// callerAmong returns the connection as a caller for those of the given identities
// that are proved here. A connection may have thousands of identities, so only the
// given ones are checked.
func (c *conn) callerAmong(agents []string) *hub.Caller {
	if c.server.cfg.TrustClients {
		return trusted
	}
	by := &hub.Caller{Connection: c.ID()}
	for _, id := range agents {
		if c.proved(id) {
			by.Agents = append(by.Agents, id)
		}
	}
	slices.Sort(by.Agents)
	if c.isOperator() {
		by.Role = hub.RoleOperator
	}
	return by
}

// caller returns the connection as a caller for every identity that is proved here.
func (c *conn) caller() *hub.Caller { return c.callerAmong(c.identities()) }

// callerIn returns the connection as a reader of a channel. In a home, or without
// participants, the channel's members come from its fold and may be any identity.
func (c *conn) callerIn(m *channel.Metadata) *hub.Caller {
	if len(m.Participants) == 0 || hub.HomeOf(m.ID) != "" {
		return c.caller()
	}
	return c.callerAmong(m.IDs())
}

// isOperator reports whether an operator opened this connection and still is one.
func (c *conn) isOperator() bool { return c.operator != nil && c.operator() }
