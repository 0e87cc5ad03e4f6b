package graph

// Always fires on every substantive envelope.
type Always struct{}

// Name implements Condition.
func (Always) Name() string { return "always" }

// Evaluate implements Condition.
func (Always) Evaluate(*Facts, *Turn) bool { return true }

func (Always) String() string { return "always" }

// FromSpeaker fires when the agent has just spoken.
type FromSpeaker struct {
	AgentID string `json:"agent_id"`
}

// Name implements Condition.
func (FromSpeaker) Name() string { return "from_speaker" }

// Evaluate implements Condition.
func (c FromSpeaker) Evaluate(_ *Facts, t *Turn) bool { return t.Sender == c.AgentID }

// MapAgents implements ConditionMapper.
func (c FromSpeaker) MapAgents(f func(string) string) Condition {
	return FromSpeaker{AgentID: f(c.AgentID)}
}

func (c FromSpeaker) String() string { return "from_speaker(" + c.AgentID + ")" }

// ToolCalled fires when the packet just accepted names the tool, whatever the
// kind of its routing. Plain texts call no tool.
type ToolCalled struct {
	ToolName string `json:"tool_name"`
}

// Name implements Condition.
func (ToolCalled) Name() string { return "tool_called" }

// Evaluate implements Condition.
func (c ToolCalled) Evaluate(_ *Facts, t *Turn) bool {
	return t.Packet.HasTool && t.Packet.Tool == c.ToolName
}

func (c ToolCalled) String() string { return "tool_called(" + c.ToolName + ")" }
