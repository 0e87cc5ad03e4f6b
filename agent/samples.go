package agent

import "github.com/parley-hub/parley/agent/samples"

// Samples returns the hub of the agent's measurements: local to the process, in
// no stream and no history. Read them with samples.Observe or samples.RouteOf.
func (a *Agent) Samples() *samples.Hub { return a.opts.Samples }

// Samples returns the same hub for a tool while it runs.
func (c *Call) Samples() *samples.Hub {
	if c.Turn == nil || c.Turn.Agent == nil {
		return &samples.Hub{} // a call outside of a turn has no agent, and no observer
	}
	return c.Turn.Agent.Samples()
}
