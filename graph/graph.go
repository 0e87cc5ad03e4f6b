package graph

import (
	"cmp"
	"slices"
)

// Condition says whether a transition fires. It is a pure function of the
// facts after the envelope's bookkeeping and of the envelope itself, and must
// not panic. Its exported fields, by their json names, are its args.
type Condition interface {
	// Name is the key of its registration and what a graph's JSON holds.
	Name() string
	Evaluate(f *Facts, t *Turn) bool
}

// Target says who speaks next, under the same rules as Condition.
type Target interface {
	Name() string
	Resolve(f *Facts, t *Turn) Decision
}

// Decision is what a target resolves to.
type Decision struct {
	Speaker string // who speaks next
	End     bool   // nobody does: the channel is to end, with Reason
	Reason  string
}

// Transition pairs a condition with the target that it leads to. A lower
// priority is tried first; ties are tried in the order of the list.
type Transition struct {
	When     Condition
	Then     Target
	Priority int
}

// Definition is a graph as it is written down.
type Definition struct {
	InitialSpeaker string
	Transitions    []Transition
	Default        Target // nil: Terminate with DefaultReason
	MaxTurns       *int   // nil: no cap
}

// Graph is an immutable transition graph, ready to be evaluated.
type Graph struct {
	initial     string
	transitions []Transition
	order       []int32 // of evaluation; nil where it is the order of the list
	fallback    Target
	maxTurns    int
	capped      bool
	source      string
}

// New makes a graph. It refuses a transition without condition or target, and
// nodes that cannot be written as JSON.
func New(d Definition) (*Graph, error) {
	g, err := compile(d)
	if err != nil {
		return nil, err
	}
	source, err := g.MarshalJSON()
	if err != nil {
		return nil, err
	}
	g.source = string(source)
	return g, nil
}

func compile(d Definition) (*Graph, error) {
	for i, t := range d.Transitions {
		if t.When == nil || t.Then == nil {
			return nil, refuse(transitionPath(i), "a transition needs a condition and a target")
		}
	}
	g := &Graph{
		initial:     d.InitialSpeaker,
		transitions: slices.Clone(d.Transitions),
		order:       evaluationOrder(d.Transitions),
		fallback:    d.Default,
	}
	if g.fallback == nil {
		g.fallback = Terminate{Reason: DefaultReason}
	}
	if d.MaxTurns != nil {
		g.maxTurns, g.capped = *d.MaxTurns, true
	}
	return g, nil
}

// evaluationOrder returns the order of evaluation, or nil for a list that is in
// order already, as most are.
func evaluationOrder(list []Transition) []int32 {
	if slices.IsSortedFunc(list, func(a, b Transition) int { return cmp.Compare(a.Priority, b.Priority) }) {
		return nil
	}
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(list[a].Priority, list[b].Priority)
	})
	return order
}

// InitialSpeaker returns the agent that speaks first.
func (g *Graph) InitialSpeaker() string { return g.initial }

// MaxTurns returns the cap on turns, if there is one.
func (g *Graph) MaxTurns() (turns int, capped bool) { return g.maxTurns, g.capped }

// Len returns the number of transitions.
func (g *Graph) Len() int { return len(g.transitions) }

// Transition returns the i-th transition in the order of the list.
func (g *Graph) Transition(i int) Transition { return g.transitions[i] }

// Default returns the target where no transition fires.
func (g *Graph) Default() Target { return g.fallback }

// Source returns the graph's object as it was loaded, without insignificant
// whitespace; keys that mean nothing here are still in it.
func (g *Graph) Source() string { return g.source }

// Definition returns the graph as it is written down, with defaults filled in.
func (g *Graph) Definition() Definition {
	d := Definition{
		InitialSpeaker: g.initial,
		Transitions:    slices.Clone(g.transitions),
		Default:        g.fallback,
	}
	if g.capped {
		turns := g.maxTurns
		d.MaxTurns = &turns
	}
	return d
}

// at returns the index in the list of the n-th transition to try.
func (g *Graph) at(n int) int {
	if g.order == nil {
		return n
	}
	return int(g.order[n])
}

// Evaluate tries the transitions in order of priority. The first that fires
// decides and later ones are not tried; if none fires, the default target
// decides. A condition that needs more than what is left of MaxSteps, or has to
// compare a number longer than MaxNumber, does not fire. The rule is the
// transition's index in the list, or NoRule.
func (g *Graph) Evaluate(f *Facts, t *Turn) (d Decision, rule int) {
	for n := range g.transitions {
		i := g.at(n)
		t.budget.over = false
		if g.transitions[i].When.Evaluate(f, t) && !t.budget.over {
			return g.transitions[i].Then.Resolve(f, t), i
		}
	}
	return g.fallback.Resolve(f, t), NoRule
}

// NoRule is the index of a decision that no transition made.
const NoRule = -1
