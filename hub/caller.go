package hub

import "slices"

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
