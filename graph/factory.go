package graph

// Close reasons of the factories.
const (
	ReasonSequenceComplete   = "sequence_complete"
	ReasonRoundRobinComplete = "round_robin_complete"
)

// NewRoundRobin makes everyone speak in the channel's participant order. Of
// the list only the first matters: it speaks first. maxTurns may be nil.
func NewRoundRobin(participants []string, maxTurns *int) (*Graph, error) {
	if len(participants) == 0 {
		return nil, refuse("round_robin", "needs at least 1 participant")
	}
	return New(Definition{
		InitialSpeaker: participants[0],
		Transitions:    []Transition{{When: Always{}, Then: RoundRobin{}}},
		Default:        Terminate{Reason: ReasonRoundRobinComplete},
		MaxTurns:       maxTurns,
	})
}

// NewSequence makes the steps speak once each, in order, and then ends. A step
// that is listed twice always leads to the successor of its first place.
func NewSequence(steps []string) (*Graph, error) {
	if len(steps) == 0 {
		return nil, refuse("sequence", "needs at least 1 step")
	}
	d := Definition{
		InitialSpeaker: steps[0],
		Default:        Terminate{Reason: ReasonSequenceComplete},
		MaxTurns:       new(len(steps)),
	}
	for i, step := range steps[:len(steps)-1] {
		d.Transitions = append(d.Transitions, Transition{
			When: FromSpeaker{AgentID: step},
			Then: Agent{AgentID: steps[i+1]},
		})
	}
	return New(d)
}
