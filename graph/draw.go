package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Drawing says how to draw a graph. Its zero value draws the graph alone.
type Drawing struct {
	Names   map[string]string // names to show for ids; other ids are shown as they are
	Creator string            // whom revert_to_initiator leads to, if known
	Path    []Hop             // turns taken, to be highlighted
}

// Hop is one turn of a path through a graph.
type Hop struct {
	Turn   int
	From   string
	To     string // who speaks next
	Closed string // or why it ended here
	By     By
	Rule   int
	Tool   string
}

// Path returns the way that a simulation took.
func (t *Trace) Path() []Hop {
	var path []Hop
	for _, s := range t.Steps {
		if s.Turn > 0 {
			path = append(path, Hop{
				Turn: s.Turn, From: s.Speaker, To: s.Next, Closed: s.Closed,
				By: s.By, Rule: s.Rule, Tool: s.Tool,
			})
		}
	}
	return path
}

// picture is a graph laid out as shapes and arrows, independent of the output format.
type picture struct {
	drawing Drawing
	nodes   []drawnNode
	edges   []drawnEdge
}

type shapeKind int

const (
	shapeStart shapeKind = iota
	shapeAgent
	shapeAbstract // any speaker, next in order, and the like
	shapeEnd
)

type drawnNode struct {
	key   string
	shape shapeKind
	label string
	agent string // whose it is, for shapeAgent
	taken bool
}

type drawnEdge struct {
	from, to int // indices of nodes
	label    string
	dashed   bool
	rule     int // index of the transition, or one of the marks below
	turns    []int
}

// Edges that belong to no transition.
const (
	edgeDefault = -1 - iota
	edgeStart
	edgePath
)

func layOut(g *Graph, d Drawing) *picture {
	p := &picture{drawing: d}
	p.edge(drawnEdge{from: p.node("start", shapeStart, "start"), to: p.agent(g.initial), rule: edgeStart})
	for i, t := range g.transitions {
		p.transition(i, t)
	}
	p.arrows(nil, "otherwise", g.fallback, edgeDefault, true)
	for _, hop := range d.Path {
		p.hop(hop)
	}
	if len(d.Path) > 0 {
		p.nodes[0].taken = true
		p.edges[0].turns = []int{0}
	}
	return p
}

func (p *picture) transition(i int, t Transition) {
	label := fmt.Sprintf("[%d]", i)
	speakers, rest := speakersOf(t.When)
	if rest != "" {
		label += " " + rest
	}
	if t.Priority != 0 {
		label += fmt.Sprintf(" (priority %d)", t.Priority)
	}
	p.arrows(speakers, label, t.Then, i, false)
}

// arrows draws one arrow from each speaker, or from anyone, to the target.
func (p *picture) arrows(speakers []string, label string, t Target, rule int, dashed bool) {
	if len(speakers) == 0 {
		from := p.node("any", shapeAbstract, "any speaker")
		p.edge(drawnEdge{from: from, to: p.target(t, NoRule), label: label, rule: rule, dashed: dashed})
		return
	}
	for _, speaker := range speakers {
		from := p.agent(speaker)
		p.edge(drawnEdge{from: from, to: p.target(t, from), label: label, rule: rule, dashed: dashed})
	}
}

// speakersOf splits a condition into the speakers after which alone it can
// fire, and its remaining conditions.
func speakersOf(c Condition) (speakers []string, rest string) {
	switch c := c.(type) {
	case FromSpeaker:
		return []string{c.AgentID}, ""
	case AllOf:
		i := slices.IndexFunc(c.Conditions, func(c Condition) bool { return c.Name() == FromSpeaker{}.Name() })
		if i < 0 {
			break
		}
		others := slices.Delete(slices.Clone(c.Conditions), i, i+1)
		speakers, _ = speakersOf(c.Conditions[i])
		return speakers, others.String()
	case AnyOf:
		for _, nested := range c.Conditions {
			from, ok := nested.(FromSpeaker)
			if !ok {
				return nil, describe(c)
			}
			speakers = append(speakers, from.AgentID)
		}
		if len(speakers) > 0 {
			return speakers, ""
		}
	}
	return nil, describe(c)
}

// target returns the node that a target leads to, seen from a speaker's node.
func (p *picture) target(t Target, from int) int {
	switch t := t.(type) {
	case Agent:
		return p.agent(t.AgentID)
	case Terminate:
		return p.end(t.Reason)
	case Stay:
		if from != NoRule {
			return from
		}
		return p.node("stay", shapeAbstract, "same speaker")
	case RevertToInitiator:
		if p.drawing.Creator != "" {
			return p.agent(p.drawing.Creator)
		}
		return p.node("initiator", shapeAbstract, "initiator")
	case RoundRobin:
		return p.node("next", shapeAbstract, "next in order")
	}
	return p.node("target "+describe(t), shapeAbstract, describe(t))
}

// hop marks the arrow that was taken. If the graph's own arrow does not name
// both speakers, hop adds one that does.
func (p *picture) hop(h Hop) {
	from := p.agent(h.From)
	var to int
	if h.Closed != "" {
		to = p.end(h.Closed)
	} else {
		to = p.agent(h.To)
	}
	p.nodes[from].taken, p.nodes[to].taken = true, true
	mark := edgePath
	switch h.By {
	case ByRule:
		mark = h.Rule
	case ByDefault:
		mark = edgeDefault
	}
	shown := false
	for i := range p.edges {
		e := &p.edges[i]
		direct := e.from == from && e.to == to
		if e.rule == mark && mark != edgePath && (direct || p.nodes[e.from].shape == shapeAbstract || e.from == from) {
			e.turns = append(e.turns, h.Turn)
			shown = shown || direct
		}
	}
	if shown {
		return
	}
	label := ""
	if mark == edgePath {
		label = strings.TrimSpace(h.By.String() + " " + h.Tool)
	}
	p.edge(drawnEdge{from: from, to: to, label: label, rule: edgePath, turns: []int{h.Turn}})
}

func (p *picture) agent(id string) int {
	label := id
	if name, ok := p.drawing.Names[id]; ok {
		label = name
	}
	n := p.node("agent "+id, shapeAgent, label)
	p.nodes[n].agent = id
	return n
}

func (p *picture) end(reason string) int {
	reason = cmp.Or(reason, ReasonTerminated)
	return p.node("end "+reason, shapeEnd, reason)
}

func (p *picture) node(key string, shape shapeKind, label string) int {
	if i := slices.IndexFunc(p.nodes, func(n drawnNode) bool { return n.key == key }); i >= 0 {
		return i
	}
	n := len(p.nodes)
	p.nodes = append(p.nodes, drawnNode{key: key, shape: shape, label: label})
	return n
}

func (p *picture) edge(e drawnEdge) { p.edges = append(p.edges, e) }

// text returns the arrow's label with the turns that took it.
func (e drawnEdge) text() string {
	var turns []string
	for _, n := range e.turns {
		if n > 0 {
			turns = append(turns, fmt.Sprint(n))
		}
	}
	if len(turns) == 0 {
		return e.label
	}
	word := "turn "
	if len(turns) > 1 {
		word = "turns "
	}
	return strings.TrimSpace(e.label + " · " + word + strings.Join(turns, ", "))
}
