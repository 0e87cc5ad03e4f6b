package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// Mermaid draws the graph as a Mermaid flowchart.
func Mermaid(g *Graph, d Drawing) string {
	p := layOut(g, d)
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	for i, n := range p.nodes {
		opening, closing := mermaidShape(n.shape)
		fmt.Fprintf(&out, "  n%d%s\"%s\"%s\n", i, opening, mermaidText(n.label), closing)
	}
	var taken []string
	for i, e := range p.edges {
		arrow := "-->"
		if e.dashed {
			arrow = "-.->"
		}
		label := ""
		if text := e.text(); text != "" {
			label = `|"` + mermaidText(text) + `"|`
		}
		fmt.Fprintf(&out, "  n%d %s%s n%d\n", e.from, arrow, label, e.to)
		if len(e.turns) > 0 {
			taken = append(taken, strconv.Itoa(i))
		}
	}
	if len(taken) == 0 {
		return out.String()
	}
	out.WriteString("  classDef taken stroke:#d33,stroke-width:3px\n")
	var nodes []string
	for i, n := range p.nodes {
		if n.taken {
			nodes = append(nodes, fmt.Sprintf("n%d", i))
		}
	}
	fmt.Fprintf(&out, "  class %s taken\n", strings.Join(nodes, ","))
	fmt.Fprintf(&out, "  linkStyle %s stroke:#d33,stroke-width:3px\n", strings.Join(taken, ","))
	return out.String()
}

func mermaidShape(s shapeKind) (opening, closing string) {
	switch s {
	case shapeStart:
		return "((", "))"
	case shapeAbstract:
		return "([", "])"
	case shapeEnd:
		return "(((", ")))"
	}
	return "[", "]"
}

var mermaidEscapes = strings.NewReplacer(
	"#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "|", "#124;", "`", "#96;",
	"\n", " ", "\r", " ",
)

// mermaidText escapes a label, so that Mermaid reads it as plain text.
func mermaidText(s string) string { return mermaidEscapes.Replace(s) }
