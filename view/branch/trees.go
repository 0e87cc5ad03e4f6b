package branch

import (
	"cmp"
	"maps"
	"slices"
)

// Agents is the tree of the agents that speak in a stream. Events that name no
// agent belong to the root.
type Agents struct {
	byID map[string]*AgentNode
}

// AgentNode is one agent.
type AgentNode struct {
	ID       string
	Name     string
	Parent   string // empty at the root
	Children []string
}

// Node returns an agent, or nil.
func (a *Agents) Node(id string) *AgentNode { return a.byID[id] }

// Roots lists the agents without a known parent, by id.
func (a *Agents) Roots() []string {
	var out []string
	for id, n := range a.byID {
		if n.Parent == "" {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (a *Agents) add(agent *Agent) {
	if agent == nil || agent.AgentID == "" {
		return
	}
	n := a.node(agent.AgentID)
	if agent.AgentName != "" {
		n.Name = agent.AgentName
	}
	parent := ""
	if agent.ParentAgentID != nil {
		parent = *agent.ParentAgentID
	} else if len(agent.AgentChain) > 1 {
		parent = a.named(agent.AgentChain[len(agent.AgentChain)-2])
	}
	if parent == "" || parent == n.ID || n.Parent != "" {
		return
	}
	n.Parent = parent
	up := a.node(parent)
	up.Children = append(up.Children, n.ID)
}

func (a *Agents) node(id string) *AgentNode {
	if a.byID == nil {
		a.byID = map[string]*AgentNode{}
	}
	if a.byID[id] == nil {
		a.byID[id] = &AgentNode{ID: id}
	}
	return a.byID[id]
}

// named finds an agent by its name, as chains name them.
func (a *Agents) named(name string) string {
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		if a.byID[id].Name == name {
			return id
		}
	}
	return ""
}

// Spans is the trace tree of a stream: an event belongs to its span, else to
// its call, else to its message, else to its trace.
type Spans struct {
	byKey map[SpanKey]*SpanNode
	calls map[string]SpanKey // where a call's or a message's span was seen
}

// SpanKey names a node: the most specific id that its events have.
type SpanKey struct {
	Trace string
	Kind  string // span, call, message or trace
	ID    string
}

// SpanNode is one node of a trace.
type SpanNode struct {
	Key    SpanKey
	Parent *SpanKey // nil at a trace's root
	Events int
}

// Kinds of nodes.
const (
	spanNode    = "span"
	callNode    = "call"
	messageNode = "message"
	traceNode   = "trace"
)

// Nodes lists all nodes by trace, kind and id.
func (s *Spans) Nodes() []*SpanNode {
	return slices.SortedFunc(maps.Values(s.byKey), func(a, b *SpanNode) int {
		return cmp.Or(cmp.Compare(a.Key.Trace, b.Key.Trace), cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.ID, b.Key.ID))
	})
}

func (s *Spans) add(e Event, p *itemPayload) {
	key := s.place(e, p)
	if key == (SpanKey{}) {
		return
	}
	s.node(key).Events++
	if e.Span == "" {
		return
	}
	// Later events of the call or message that have no span belong here.
	for _, id := range []string{"call " + p.Call, "message " + p.Message} {
		if _, known := s.calls[id]; !known && id != "call " && id != "message " {
			if s.calls == nil {
				s.calls = map[string]SpanKey{}
			}
			s.calls[id] = key
		}
	}
	if e.ParentSpan != "" && e.ParentSpan != e.Span {
		parent := SpanKey{e.Trace, spanNode, e.ParentSpan}
		s.node(key).Parent = &parent
		s.node(parent)
	}
}

// place returns the node that an event belongs to.
func (s *Spans) place(e Event, p *itemPayload) SpanKey {
	if e.Span != "" {
		return SpanKey{e.Trace, spanNode, e.Span}
	}
	if p.Call != "" {
		if key, ok := s.calls["call "+p.Call]; ok {
			return key
		}
		return SpanKey{e.Trace, callNode, p.Call}
	}
	if p.Message != "" {
		if key, ok := s.calls["message "+p.Message]; ok {
			return key
		}
		return SpanKey{e.Trace, messageNode, p.Message}
	}
	if e.Trace != "" {
		return SpanKey{e.Trace, traceNode, e.Trace}
	}
	return SpanKey{}
}

// node finds a node or adds it under its trace's root.
func (s *Spans) node(key SpanKey) *SpanNode {
	if s.byKey == nil {
		s.byKey = map[SpanKey]*SpanNode{}
	}
	if found := s.byKey[key]; found != nil {
		return found
	}
	made := &SpanNode{Key: key}
	s.byKey[key] = made
	if root := (SpanKey{key.Trace, traceNode, key.Trace}); key.Trace != "" && key != root {
		s.node(root)
		made.Parent = &root
	}
	return made
}
