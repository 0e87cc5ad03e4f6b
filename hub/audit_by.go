package hub

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
	switch name := roleNames[c.Role]; {
	case name != "":
		by["role"] = name
	case c.Anyone:
		by["role"] = roleNames[RoleOperator]
	}
	if len(c.Agents) > 0 {
		by["agents"] = c.Agents[:min(len(c.Agents), maxAuditAgents)]
	}
	if c.Connection != "" {
		by["connection"] = c.Connection
	}
	f["by"] = by
}

// maxAuditAgents bounds how many agents of a caller one audit record names.
const maxAuditAgents = 16
