package hub

import "github.com/parley-hub/parley/envelope"

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
