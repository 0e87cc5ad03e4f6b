package graph

import "slices"

// Close reasons that targets give.
const (
	DefaultReason        = "after_work"
	ReasonNoParticipants = "no_participants"
)

// Agent hands over to one agent, by id, whether or not it takes part.
type Agent struct {
	AgentID string `json:"agent_id"`
}

// Name implements Target.
func (Agent) Name() string { return "agent" }

// Resolve implements Target.
func (t Agent) Resolve(*Facts, *Turn) Decision { return Decision{Speaker: t.AgentID} }

// MapAgents implements TargetMapper.
func (t Agent) MapAgents(f func(string) string) Target { return Agent{AgentID: f(t.AgentID)} }

func (t Agent) String() string { return "agent(" + t.AgentID + ")" }

// RoundRobin hands over to the next participant after the one who has just spoken,
// wrapping at the end. After a speaker that is not a participant, the first
// participant is next.
type RoundRobin struct{}

// Name implements Target.
func (RoundRobin) Name() string { return "round_robin" }

// Resolve implements Target.
func (RoundRobin) Resolve(f *Facts, t *Turn) Decision {
	if len(f.Order) == 0 {
		return Decision{End: true, Reason: ReasonNoParticipants}
	}
	next := slices.Index(f.Order, f.speaker(t)) + 1
	return Decision{Speaker: f.Order[next%len(f.Order)]}
}

func (RoundRobin) String() string { return "round_robin" }

// Stay selects again the agent that has just spoken.
type Stay struct{}

// Name implements Target.
func (Stay) Name() string { return "stay" }

// Resolve implements Target.
func (Stay) Resolve(f *Facts, t *Turn) Decision { return Decision{Speaker: f.speaker(t)} }

func (Stay) String() string { return "stay" }

// RevertToInitiator hands back to the channel's creator, who need not be the
// graph's initial speaker.
type RevertToInitiator struct{}

// Name implements Target.
func (RevertToInitiator) Name() string { return "revert_to_initiator" }

// Resolve implements Target.
func (RevertToInitiator) Resolve(f *Facts, _ *Turn) Decision { return Decision{Speaker: f.Creator} }

func (RevertToInitiator) String() string { return "revert_to_initiator" }

// Terminate ends the channel.
type Terminate struct {
	Reason string `json:"reason" graph:"optional"`
}

// Name implements Target.
func (Terminate) Name() string { return "terminate" }

// Resolve implements Target.
func (t Terminate) Resolve(*Facts, *Turn) Decision { return Decision{End: true, Reason: t.Reason} }

func (t Terminate) String() string { return "terminate(" + t.Reason + ")" }
