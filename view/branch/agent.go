package branch

// Agent says which agent an event comes from.
type Agent struct {
	AgentName     string   `json:"agentName"`
	AgentID       string   `json:"agentId"`
	ParentAgentID *string  `json:"parentAgentId,omitzero"`
	AgentChain    []string `json:"agentChain"`
	Depth         int64    `json:"depth"`
	IsSubAgent    bool     `json:"isSubAgent"`
}

// RootAgent returns the attribution of a run's own agent.
func RootAgent(id, name string) *Agent {
	return &Agent{AgentName: name, AgentID: id, AgentChain: []string{name}}
}

// Child returns the attribution of an agent that this one runs.
func (a *Agent) Child(id, name string) *Agent {
	chain := append(append([]string(nil), a.AgentChain...), name)
	return &Agent{AgentName: name, AgentID: id, ParentAgentID: new(a.AgentID), AgentChain: chain, Depth: a.Depth + 1, IsSubAgent: true}
}
