package graph

import "strconv"

// Layout is a graph as shapes and arrows, for a program that draws it.
type Layout struct {
	Nodes []Node
	Edges []Edge
}

// Node is a shape.
type Node struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"` // start, agent, abstract or end
	Label   string `json:"label"`
	Agent   string `json:"agent_id,omitzero"`
	Taken   bool   `json:"taken"`
	Current bool   `json:"current"`
}

// Edge is an arrow.
type Edge struct {
	ID       string `json:"id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Kind     string `json:"kind"` // start, rule, default or path
	Rule     *int   `json:"rule"`
	Label    string `json:"label"`
	Priority int    `json:"priority"`
	Turns    []int  `json:"turns"` // that took it
}

var shapeNames = [...]string{shapeStart: "start", shapeAgent: "agent", shapeAbstract: "abstract", shapeEnd: "end"}

// LayOut returns a graph as shapes and arrows. current is the agent whose turn
// it is, or empty.
func LayOut(g *Graph, d Drawing, current string) Layout {
	p := layOut(g, d)
	out := Layout{Nodes: make([]Node, 0, len(p.nodes)), Edges: make([]Edge, 0, len(p.edges))}
	for i, n := range p.nodes {
		node := Node{ID: nodeID(i), Kind: shapeNames[n.shape], Label: n.label, Agent: n.agent, Taken: n.taken}
		node.Current = current != "" && n.agent == current
		out.Nodes = append(out.Nodes, node)
	}
	for i, e := range p.edges {
		edge := Edge{ID: "e" + strconv.Itoa(i), From: nodeID(e.from), To: nodeID(e.to), Label: e.label, Turns: []int{}}
		for _, turn := range e.turns {
			if turn > 0 {
				edge.Turns = append(edge.Turns, turn)
			}
		}
		switch e.rule {
		case edgeStart:
			edge.Kind = "start"
		case edgeDefault:
			edge.Kind = "default"
		case edgePath:
			edge.Kind = "path"
		default:
			rule := e.rule
			edge.Kind, edge.Rule, edge.Priority = "rule", &rule, g.transitions[rule].Priority
		}
		out.Edges = append(out.Edges, edge)
	}
	return out
}

func nodeID(i int) string { return "n" + strconv.Itoa(i) }
