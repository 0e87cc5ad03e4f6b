package graph

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// prover answers what is certain about conditions. Custom conditions are
// opaque to it. It gives up after a fixed amount of work, because nested
// conditions can be arbitrarily hard; what it gave up on counts as not
// certain.
type prover struct {
	work   int
	budget budget // for comparing values
}

const proverWork = 200_000

func newProver() *prover { return &prover{work: proverWork} }

// spent reports whether the prover has given up.
func (p *prover) spent() bool { return p.work < 0 || p.budget.over }

// tired counts one piece of work, and reports whether the prover has given up.
func (p *prover) tired() bool {
	p.work--
	return p.spent()
}

// never reports whether a condition is certain never to fire.
func (p *prover) never(c Condition) bool {
	switch c := c.(type) {
	case ContextIn:
		return len(c.Values) == 0
	case ToolCalled:
		return c.ToolName == ""
	case AnyOf:
		return every(c.Conditions, p.never)
	case AllOf:
		parts := flatten(c)
		for i, part := range parts {
			if p.spent() {
				return false
			}
			if p.never(part) || slices.ContainsFunc(parts[:i], func(other Condition) bool { return p.conflict(part, other) }) {
				return true
			}
		}
	}
	return false
}

// flatten lists what must all hold for c to fire.
func flatten(c Condition) []Condition {
	all, ok := c.(AllOf)
	if !ok {
		return []Condition{c}
	}
	var parts []Condition
	for _, nested := range all.Conditions {
		parts = append(parts, flatten(nested)...)
	}
	return parts
}

// quiet returns the part of a condition that remains on turns that call no
// tool; any_of() if nothing remains.
func quiet(c Condition) Condition {
	switch c := c.(type) {
	case ToolCalled:
		return AnyOf{}
	case AllOf:
		var parts Conditions
		for _, nested := range c.Conditions {
			part := quiet(nested)
			if void(part) {
				return AnyOf{}
			}
			parts = append(parts, part)
		}
		return AllOf{parts}
	case AnyOf:
		var parts Conditions
		for _, nested := range c.Conditions {
			if part := quiet(nested); !void(part) {
				parts = append(parts, part)
			}
		}
		return AnyOf{parts}
	}
	return c
}

// void reports whether a condition is any_of().
func void(c Condition) bool {
	either, ok := c.(AnyOf)
	return ok && len(either.Conditions) == 0
}

// conflict reports whether a and b are certain never to fire together.
func (p *prover) conflict(a, b Condition) bool {
	if p.tired() {
		return false
	}
	switch a := a.(type) {
	case FromSpeaker:
		other, ok := b.(FromSpeaker)
		return ok && other.AgentID != a.AgentID
	case ToolCalled:
		other, ok := b.(ToolCalled)
		return ok && other.ToolName != a.ToolName
	}
	if key, values, ok := allowed(a); ok {
		return !slices.ContainsFunc(values, func(v jsontext.Value) bool { return p.mayHold(b, key, string(v)) })
	}
	if key, values, ok := allowed(b); ok {
		return !slices.ContainsFunc(values, func(v jsontext.Value) bool { return p.mayHold(a, key, string(v)) })
	}
	return false
}

// mayHold reports whether c may fire while the variable has the value.
func (p *prover) mayHold(c Condition, key, value string) bool {
	if limit, ok := c.(ContextThreshold); ok && limit.Key == key {
		// Null is also the value of an absent variable, which counts as 0 here.
		return p.met(limit, value) || value == "null" && p.met(limit, "0") || p.spent()
	}
	if k, values, ok := allowed(c); ok && k == key {
		return p.contains(values, value) || p.spent()
	}
	return true
}

// met and contains count what they read as work, because one condition may
// list many values. They report false if the prover gave up.
func (p *prover) met(limit ContextThreshold, value string) bool {
	p.work--
	return !p.spent() && limit.met(&p.budget, value)
}

func (p *prover) contains(values []jsontext.Value, value string) bool {
	p.work -= len(values)
	return !p.spent() && p.budget.contains(values, "", value) && !p.spent()
}

// allowed lists the values with which a condition on one variable fires.
func allowed(c Condition) (key string, values []jsontext.Value, ok bool) {
	switch c := c.(type) {
	case ContextEquals:
		return c.Key, []jsontext.Value{c.Value}, true
	case ContextIn:
		return c.Key, c.Values, true
	}
	return "", nil, false
}

// implies reports whether b is certain to fire whenever a does.
func (p *prover) implies(a, b Condition) bool {
	if p.tired() {
		return false
	}
	if _, ok := b.(Always); ok {
		return true
	}
	if either, ok := a.(AnyOf); ok {
		return every(either.Conditions, func(c Condition) bool { return p.implies(c, b) })
	}
	if all, ok := b.(AllOf); ok {
		return every(all.Conditions, func(c Condition) bool { return p.implies(a, c) })
	}
	if either, ok := b.(AnyOf); ok && slices.ContainsFunc(either.Conditions, func(c Condition) bool { return p.implies(a, c) }) {
		return true
	}
	if all, ok := a.(AllOf); ok {
		return slices.ContainsFunc(all.Conditions, func(c Condition) bool { return p.implies(c, b) })
	}
	return p.impliesPlain(a, b)
}

// impliesPlain compares conditions that nest no others.
func (p *prover) impliesPlain(a, b Condition) bool {
	key, values, ofValues := allowed(a)
	switch b := b.(type) {
	case FromSpeaker:
		return a == Condition(b)
	case ToolCalled:
		return a == Condition(b)
	case ContextThreshold:
		if limit, ok := a.(ContextThreshold); ok {
			return limit.Key == b.Key && p.met(b, limit.Threshold.text())
		}
		return ofValues && key == b.Key && every(values, func(v jsontext.Value) bool { return p.met(b, string(v)) })
	case ContextEquals, ContextIn:
		k, wanted, _ := allowed(b)
		return ofValues && key == k && every(values, func(v jsontext.Value) bool { return p.contains(wanted, string(v)) })
	}
	return p.sameNode(a, b)
}

// sameNode reports whether two pure nodes are one by name and args.
func (p *prover) sameNode(a, b Condition) bool {
	if a.Name() != b.Name() {
		return false
	}
	x, errX := encodeArgs(a)
	y, errY := encodeArgs(b)
	p.work -= (len(x) + len(y)) / 64
	return errX == nil && errY == nil && !p.spent() && p.budget.equal("", string(x), y)
}

func every[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !ok(item) })
}
