package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a finding stops a channel from opening.
type Severity string

// Severities of findings.
const (
	SeverityError   Severity = "error"   // a channel with this graph is refused
	SeverityWarning Severity = "warning" // accepted, and probably not what was meant
)

// Codes of findings.
const (
	CodeParticipants   = "participants"    // fewer than two take part, or one of them twice
	CodeInitialSpeaker = "initial_speaker" // the first speaker does not take part
	CodeUnknownAgent   = "unknown_agent"   // a condition names somebody who does not take part
	CodeOutsideTarget  = "outside_target"  // a target names somebody who does not take part
	CodeUnreachable    = "unreachable"     // a rule that never decides
	CodeStickyLoop     = "sticky_loop"     // a context rule that selects the same speaker again and again
	CodeMaxTurns       = "max_turns"       // a cap below one turn
	CodeBounds         = "bounds"          // larger than a new channel's graph may be
	CodeMore           = "more"            // further findings were left out
)

// Finding is one thing that a check noticed.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Path     string   `json:"path"` // such as transitions[2].when
	Message  string   `json:"message"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Severity, f.Path, f.Message, f.Code)
}

// Check looks for mistakes before a channel opens with the graph. The first
// participant counts as the creator. Without participants only what needs none
// is checked, and very large graphs only as far as a fixed amount of work goes.
// Findings come in the order of the graph's text; after MaxFindings the rest is
// left out.
func Check(g *Graph, participants []string) []Finding {
	c := checker{graph: g, participants: participants, prover: newProver()}
	for n := range g.transitions {
		c.order = append(c.order, g.at(n))
	}
	c.outward = c.leadsOut(g.fallback) || slices.ContainsFunc(g.transitions, func(t Transition) bool { return c.leadsOut(t.Then) })
	if err := g.CheckBounds(Bounds{}); err != nil {
		c.note(SeverityError, CodeBounds, "graph", "%v", err)
	}
	c.people()
	for i := range g.transitions {
		c.names(i)
		if c.reachable(i) {
			c.sticky(i)
		}
	}
	c.target("default_target", g.fallback)
	if g.capped && g.maxTurns < 1 {
		c.warn(CodeMaxTurns, "max_turns", "%d turns allow the first turn and close after it; leave it out for no cap", g.maxTurns)
	}
	return c.findings
}

type checker struct {
	graph        *Graph
	participants []string
	order        []int // of evaluation
	outward      bool  // the graph may expect somebody who does not take part
	prover       *prover
	findings     []Finding
}

// MaxFindings bounds what a check reports of one graph.
const MaxFindings = 100

func (c *checker) note(s Severity, code, path, format string, args ...any) {
	switch {
	case len(c.findings) > MaxFindings:
		return
	case len(c.findings) == MaxFindings:
		s, code, path, format, args = SeverityWarning, CodeMore, "graph", "further findings are left out: correct these first", nil
	}
	c.findings = append(c.findings, Finding{s, code, path, fmt.Sprintf(format, args...)})
}

func (c *checker) warn(code, path, format string, args ...any) {
	c.note(SeverityWarning, code, path, format, args...)
}

// stranger reports whether an agent is known not to take part.
func (c *checker) stranger(agent string) bool {
	return len(c.participants) > 0 && !slices.Contains(c.participants, agent)
}

// leadsOut reports whether a target may select an agent that is not a
// participant. Such an agent may then speak.
func (c *checker) leadsOut(t Target) bool {
	switch t := t.(type) {
	case Agent:
		return c.stranger(t.AgentID)
	case RoundRobin, Stay, RevertToInitiator, Terminate:
		return false
	}
	return true // what a custom target selects is not known
}

func (c *checker) people() {
	if len(c.participants) == 1 {
		c.note(SeverityError, CodeParticipants, "participants", "a workflow needs at least 2 participants, not 1")
	}
	for i, id := range c.participants {
		if slices.Contains(c.participants[:i], id) {
			c.note(SeverityError, CodeParticipants, "participants", "participant '%s' is listed twice", id)
		}
	}
	if c.stranger(c.graph.initial) {
		c.note(SeverityError, CodeInitialSpeaker, "initial_speaker",
			"'%s' is not in participants: %s", c.graph.initial, strings.Join(c.participants, ", "))
	}
}

func (c *checker) names(i int) {
	t := c.graph.transitions[i]
	path := transitionPath(i)
	mapCondition(t.When, func(agent string) string {
		if c.stranger(agent) {
			c.warn(CodeUnknownAgent, path+".when", "'%s' is not in participants: %s", agent, strings.Join(c.participants, ", "))
		}
		return agent
	})
	c.target(path+".then", t.Then)
}

func (c *checker) target(path string, t Target) {
	mapTarget(t, func(agent string) string {
		if c.stranger(agent) {
			c.warn(CodeOutsideTarget, path,
				"'%s' is not in participants: the channel would wait for somebody who is never told", agent)
		}
		return agent
	})
}

// earlier lists the transitions that are tried before the i-th of the list,
// as long as there is work left to compare with them.
func (c *checker) earlier(i int) []int {
	if c.prover.spent() {
		return nil
	}
	return c.order[:slices.Index(c.order, i)]
}

// reachable reports whether a rule may decide at all, and reports a finding if
// it certainly does not.
func (c *checker) reachable(i int) bool {
	path := transitionPath(i)
	when := c.graph.transitions[i].When
	if c.prover.never(when) {
		c.warn(CodeUnreachable, path, "%s can never be true", describe(when))
		return false
	}
	spoken := map[string]bool{}
	for _, j := range c.earlier(i) {
		before := c.graph.transitions[j].When
		if c.prover.implies(when, before) {
			c.warn(CodeUnreachable, path, "never decides: transitions[%d], %s, is tried first and is true whenever this is", j, describe(before))
			return false
		}
		if from, ok := before.(FromSpeaker); ok {
			spoken[from.AgentID] = true
		}
	}
	if len(c.participants) == 0 || c.outward || !every(c.participants, func(p string) bool { return spoken[p] }) {
		return true
	}
	if speakers, _ := speakersOf(when); slices.ContainsFunc(speakers, c.stranger) {
		return true // a stranger may speak once somebody hands off to it
	}
	c.warn(CodeUnreachable, path, "never decides: earlier rules take the turns of every participant")
	return false
}

// sticky looks for a context rule that selects x and would select x again
// after x has spoken, because nothing before it takes x's own turn. A rule
// that also waits for a tool does not stick: x would have to call the tool
// each time.
func (c *checker) sticky(i int) {
	t := c.graph.transitions[i]
	own := quiet(t.When)
	if !contextual(own) {
		return
	}
	_, stays := t.Then.(Stay)
	x, ok := c.destination(t.Then)
	if ok {
		own = AllOf{Conditions{FromSpeaker{x}, own}}
	}
	if !ok && !stays || c.prover.never(own) {
		return
	}
	for _, j := range c.earlier(i) {
		if c.prover.implies(own, c.graph.transitions[j].When) {
			return
		}
	}
	if c.prover.spent() {
		return // an earlier rule may take x's turn
	}
	path := transitionPath(i)
	if stays {
		c.warn(CodeStickyLoop, path,
			"%s stays true and selects the same speaker again and again: put a rule from_speaker for whom it keeps before it, or delete the key",
			describe(t.When))
		return
	}
	for j, other := range c.graph.transitions {
		if j == i {
			continue
		}
		if from, ok := other.When.(FromSpeaker); ok && from.AgentID == x {
			c.warn(CodeStickyLoop, path,
				"%s stays true after '%s' has spoken and selects '%s' again: transitions[%d], %s, must be tried before it, or the key be deleted",
				describe(t.When), x, x, j, describe(from))
			return
		}
	}
	c.warn(CodeStickyLoop, path,
		"%s stays true after '%s' has spoken and selects '%s' again: put a rule from_speaker(%s) before it, or delete the key",
		describe(t.When), x, x, x)
}

// destination returns the one agent that a target leads to.
func (c *checker) destination(t Target) (string, bool) {
	switch t := t.(type) {
	case Agent:
		return t.AgentID, true
	case RevertToInitiator:
		if len(c.participants) > 0 {
			return c.participants[0], true
		}
	}
	return "", false
}

// contextual reports whether a condition reads context variables.
func contextual(c Condition) bool {
	found := false
	walk(c, func(c Condition) {
		switch c.(type) {
		case ContextEquals, ContextIn, ContextThreshold:
			found = true
		}
	})
	return found
}
