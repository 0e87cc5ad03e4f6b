package graph

import (
	"fmt"
	"slices"
	"strings"
)

// ConditionMapper is a condition that names agents. Names are mapped to ids
// through it, and checks find the agents that a graph names.
type ConditionMapper interface {
	MapAgents(f func(string) string) Condition
}

// TargetMapper is a target that names agents.
type TargetMapper interface {
	MapAgents(f func(string) string) Target
}

func mapCondition(c Condition, f func(string) string) Condition {
	if m, ok := c.(ConditionMapper); ok {
		return m.MapAgents(f)
	}
	return c
}

func mapTarget(t Target, f func(string) string) Target {
	if m, ok := t.(TargetMapper); ok {
		return m.MapAgents(f)
	}
	return t
}

func (d Definition) mapAgents(f func(string) string) Definition {
	mapped := d
	mapped.InitialSpeaker = f(d.InitialSpeaker)
	mapped.Transitions = make([]Transition, len(d.Transitions))
	for i, t := range d.Transitions {
		mapped.Transitions[i] = Transition{
			When:     mapCondition(t.When, f),
			Then:     mapTarget(t.Then, f),
			Priority: t.Priority,
		}
	}
	mapped.Default = mapTarget(d.Default, f)
	return mapped
}

// WithNames returns the graph with names of agents replaced by their ids,
// before a channel is opened with it. A name wins over an equal id; an
// unknown name stays as it is.
func (g *Graph) WithNames(ids map[string]string) (*Graph, error) {
	return g.MapAgents(resolver(ids))
}

// MapAgents returns the graph with f(agent) in place of each agent that it
// names, or the graph itself, with its source, if nothing changes.
func (g *Graph) MapAgents(f func(string) string) (*Graph, error) {
	changed := false
	mapped := g.Definition().mapAgents(func(name string) string {
		id := f(name)
		changed = changed || id != name
		return id
	})
	if !changed {
		return g, nil
	}
	return New(mapped)
}

func resolver(ids map[string]string) func(string) string {
	return func(name string) string {
		if id, ok := ids[name]; ok {
			return id
		}
		return name
	}
}

// Tools lists the tools that tool_called conditions wait for, nested ones
// included, each once, in the order of the list.
func (g *Graph) Tools() []string {
	var tools []string
	for _, t := range g.transitions {
		walk(t.When, func(c Condition) {
			if called, ok := c.(ToolCalled); ok && !slices.Contains(tools, called.ToolName) {
				tools = append(tools, called.ToolName)
			}
		})
	}
	return tools
}

// upstream lists the nodes that every AG2 client can load.
var upstream = []string{
	"always", "from_speaker", "tool_called", "context_equals",
	"agent", "round_robin", "stay", "revert_to_initiator", "terminate",
}

// Extensions lists the kinds of nodes in the graph that AG2's own client
// cannot load, each once, in the order of the list.
func (g *Graph) Extensions() []string {
	var names []string
	note := func(name string) {
		if !slices.Contains(upstream, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, t := range g.transitions {
		walk(t.When, func(c Condition) { note(c.Name()) })
		note(t.Then.Name())
	}
	note(g.fallback.Name())
	return names
}

// describe says what a node is, in at most maxDescription bytes.
func describe(node interface{ Name() string }) string {
	text := node.Name()
	if s, ok := node.(fmt.Stringer); ok {
		text = s.String()
	} else if args, err := encodeArgs(node); err == nil && len(args) > len("{}") {
		text += string(args)
	}
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") + "…"
	}
	return text
}

const maxDescription = 1024
