package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Conditions is a list of nested conditions. In JSON each is a whole node with
// name and args; the registry that loads the graph resolves them. A custom
// condition that nests others has a field of this type.
type Conditions []Condition

// MarshalJSONTo writes the nodes.
func (cs Conditions) MarshalJSONTo(enc *jsontext.Encoder) error {
	out := []byte{'['}
	for i, c := range cs {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendNode(out, c); err != nil {
			return err
		}
	}
	return enc.WriteValue(append(out, ']'))
}

func (cs Conditions) mapAgents(f func(string) string) Conditions {
	mapped := make(Conditions, len(cs))
	for i, c := range cs {
		mapped[i] = mapCondition(c, f)
	}
	return mapped
}

func (cs Conditions) String() string {
	texts := make([]string, len(cs))
	for i, c := range cs {
		texts[i] = describe(c)
	}
	return strings.Join(texts, ", ")
}

// Composer is a condition made of others. Checks and tool lists look into it.
type Composer interface {
	Condition
	Nested() Conditions
}

// AllOf fires when every nested condition does, tried left to right. With none
// it fires.
type AllOf struct {
	Conditions Conditions `json:"conditions"`
}

// Name implements Condition.
func (AllOf) Name() string { return "all_of" }

// Evaluate implements Condition.
func (c AllOf) Evaluate(f *Facts, t *Turn) bool {
	return !slices.ContainsFunc(c.Conditions, func(nested Condition) bool { return !nested.Evaluate(f, t) })
}

// Nested implements Composer.
func (c AllOf) Nested() Conditions { return c.Conditions }

// MapAgents implements ConditionMapper.
func (c AllOf) MapAgents(f func(string) string) Condition {
	return AllOf{Conditions: c.Conditions.mapAgents(f)}
}

func (c AllOf) String() string { return fmt.Sprintf("all_of(%s)", c.Conditions) }

// AnyOf fires when some nested condition does, tried left to right. With none
// it never fires.
type AnyOf struct {
	Conditions Conditions `json:"conditions"`
}

// Name implements Condition.
func (AnyOf) Name() string { return "any_of" }

// Evaluate implements Condition.
func (c AnyOf) Evaluate(f *Facts, t *Turn) bool {
	return slices.ContainsFunc(c.Conditions, func(nested Condition) bool { return nested.Evaluate(f, t) })
}

// Nested implements Composer.
func (c AnyOf) Nested() Conditions { return c.Conditions }

// MapAgents implements ConditionMapper.
func (c AnyOf) MapAgents(f func(string) string) Condition {
	return AnyOf{Conditions: c.Conditions.mapAgents(f)}
}

func (c AnyOf) String() string { return fmt.Sprintf("any_of(%s)", c.Conditions) }

// walk visits a condition and all that is nested in it.
func walk(c Condition, visit func(Condition)) {
	visit(c)
	if composer, ok := c.(Composer); ok {
		for _, nested := range composer.Nested() {
			walk(nested, visit)
		}
	}
}
