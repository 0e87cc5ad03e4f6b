package graph

import (
	"fmt"
	"strings"
)

// DOT draws the graph in Graphviz's language.
func DOT(g *Graph, d Drawing) string {
	p := layOut(g, d)
	var out strings.Builder
	out.WriteString("digraph workflow {\n  rankdir=LR;\n")
	for i, n := range p.nodes {
		fmt.Fprintf(&out, "  n%d [label=%s, %s%s];\n", i, dotText(n.label), dotShape(n.shape), dotTaken(n.taken))
	}
	for _, e := range p.edges {
		style := ""
		if e.dashed {
			style = ", style=dashed"
		}
		fmt.Fprintf(&out, "  n%d -> n%d [label=%s%s%s];\n", e.from, e.to, dotText(e.text()), style, dotTaken(len(e.turns) > 0))
	}
	out.WriteString("}\n")
	return out.String()
}

func dotShape(s shapeKind) string {
	switch s {
	case shapeStart:
		return "shape=circle"
	case shapeAbstract:
		return "shape=box, style=rounded"
	case shapeEnd:
		return "shape=doublecircle"
	}
	return "shape=box"
}

func dotTaken(taken bool) string {
	if taken {
		return `, color="#dd3333", penwidth=3`
	}
	return ""
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ")

func dotText(s string) string { return `"` + dotEscapes.Replace(s) + `"` }
