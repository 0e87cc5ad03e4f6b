package graph

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Explained is a condition that was tried: whether it held, and what it read.
type Explained struct {
	Name  string      `json:"name"`
	Says  string      `json:"says"`
	Holds bool        `json:"holds"`
	Read  []Reading   `json:"read"`
	Of    []Explained `json:"of"` // the nested conditions
}

// Reading is something that a condition read.
type Reading struct {
	What  string         // "speaker", "tool", or a context variable's key
	Key   string         // the variable's key, for a variable
	Value jsontext.Value // null where there was none
}

// Passed is a transition that was tried before the deciding one and did not fire.
type Passed struct {
	Rule    int
	Because Explained
}

// Why is what decided after an envelope, with the reasons.
type Why struct {
	Route
	Because *Explained // of the transition that fired; nil for anything else
	Passed  []Passed   // in the order in which they were tried
}

// Explain says why Advance decides as it does for the same facts and envelope.
// Its route is always Advance's. It is pure and total.
func (g *Graph) Explain(f Facts, e *envelope.Envelope) Why {
	next, route := g.Advance(f, e)
	why := Why{Route: route}
	if route.By != ByRule && route.By != ByDefault {
		return why
	}
	// The conditions saw the facts of the turn before its outcome was written.
	next.Expected, next.Ended, next.Closing = f.Expected, f.Ended, ""
	t := NewTurn(e)
	for n := range g.transitions {
		i := g.at(n)
		explained := explain(g.transitions[i].When, &next, t)
		// Explaining costs more than deciding, so its budget may be used up earlier.
		// Advance's decision is authoritative.
		explained.Holds = i == route.Rule
		if i == route.Rule {
			why.Because = &explained
			return why
		}
		why.Passed = append(why.Passed, Passed{Rule: i, Because: explained})
	}
	return why
}

func explain(c Condition, f *Facts, t *Turn) Explained {
	t.budget.over = false
	x := Explained{Name: c.Name(), Says: describe(c), Read: readings(c, f, t), Of: []Explained{}}
	x.Holds = c.Evaluate(f, t) && !t.budget.over
	if composed, ok := c.(Composer); ok {
		for _, nested := range composed.Nested() {
			x.Of = append(x.Of, explain(nested, f, t))
		}
	}
	return x
}

// readings lists what a condition of this package reads. It does not know what
// an application's own condition reads.
func readings(c Condition, f *Facts, t *Turn) []Reading {
	variable := func(key string) []Reading {
		return []Reading{{What: key, Key: key, Value: jsontext.Value(f.Vars.orNull(key))}}
	}
	switch c := c.(type) {
	case FromSpeaker:
		return []Reading{{What: "speaker", Value: quoted(t.Sender)}}
	case ToolCalled:
		return []Reading{{What: "tool", Value: quoted(t.Packet.Tool)}}
	case ContextEquals:
		return variable(c.Key)
	case ContextIn:
		return variable(c.Key)
	case ContextThreshold:
		return variable(c.Key)
	}
	return []Reading{}
}

// quoted returns a text as JSON; invalid UTF-8 is replaced.
func quoted(text string) jsontext.Value {
	data, _ := jsontext.AppendQuote(nil, text)
	return data
}
