package hub

import (
	"slices"

	"github.com/parley-hub/parley/envelope"
)

// Caller is on whose behalf something is asked of the hub. It is data, so that
// it can be sent to another machine; whoever fills it in has proved it. A nil
// *Caller is the program that embeds the hub: it sees everything and acts for
// everyone.
type Caller struct {
	// Agents are the ids that the caller has proved to be, sorted. It acts for
	// them and sees what concerns them.
	Agents []string
	// Anyone lets the caller act for every agent.
	Anyone bool
	Role   Role
	// Key is the id of the access key that was shown, if one was.
	Key string
	// Connection is the id of the endpoint that asks, if there is one.
	Connection string
}

// Role is what a caller may do besides acting for its agents.
type Role uint8

// Roles, each with the rights of those before it.
const (
	RoleNone     Role = iota
	RoleReader        // sees everything
	RoleOperator      // closes every channel
)

// MayActFor reports whether the caller may act for an agent.
func (c *Caller) MayActFor(agent string) bool {
	return c == nil || c.Anyone || c.is(agent)
}

func (c *Caller) is(agent string) bool {
	_, found := slices.BinarySearch(c.Agents, agent)
	return found
}

// seesAll reports whether the caller sees everything.
func (c *Caller) seesAll() bool { return c == nil || c.Anyone || c.Role >= RoleReader }

// closesAll reports whether the caller may close every channel: a reader, who
// only sees them, may not.
func (c *Caller) closesAll() bool { return c == nil || c.Anyone || c.Role >= RoleOperator }

// roleNames are what the audit calls a role.
var roleNames = map[Role]string{RoleReader: "reader", RoleOperator: "operator"}

// describe puts into an audit record who acted. Without a caller it was the
// program that embeds the hub, and the record says nothing.
func (c *Caller) describe(f fields) {
	if c == nil {
		return
	}
	by := map[string]any{}
	if c.Key != "" {
		by["key"] = c.Key
	}
	if name := roleNames[c.Role]; name != "" {
		by["role"] = name
	}
	if len(c.Agents) > 0 {
		by["agents"] = c.Agents[:min(len(c.Agents), maxAuditAgents)]
	}
	if c.Connection != "" {
		by["connection"] = c.Connection
	}
	f["by"] = by
}

// actedFor audits that an operator speaks for an agent that it has not proved to
// be, in the batch of what it says.
func (b *batch) actedFor(e *envelope.Envelope, by *Caller) error {
	if by == nil || by.Role < RoleOperator || by.is(e.Sender) {
		return nil
	}
	f := fields{"channel_id": b.ch.id, "agent_id": e.Sender, "envelope_id": e.ID, "event_type": e.Type}
	by.describe(f)
	return b.audit("acted_for", f)
}

// maxAuditAgents bounds how many agents of a caller one audit record names.
const maxAuditAgents = 16
