package graph

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ContextEquals fires while a context variable equals the value. An absent
// variable counts as null. Numbers compare by value (1 equals 1.0), objects
// whatever their key order, and true is not 1.
type ContextEquals struct {
	Key   string         `json:"key"`
	Value jsontext.Value `json:"value"`
}

// Name implements Condition.
func (ContextEquals) Name() string { return "context_equals" }

// Evaluate implements Condition.
func (c ContextEquals) Evaluate(f *Facts, t *Turn) bool {
	return t.budget.equal(c.Key, f.Vars.orNull(c.Key), c.Value)
}

func (c ContextEquals) String() string {
	return "context_equals(" + c.Key + " = " + string(c.Value) + ")"
}

// ContextIn fires while a context variable equals one of the values.
type ContextIn struct {
	Key    string           `json:"key"`
	Values []jsontext.Value `json:"values"`
}

// Name implements Condition.
func (ContextIn) Name() string { return "context_in" }

// Evaluate implements Condition.
func (c ContextIn) Evaluate(f *Facts, t *Turn) bool {
	return t.budget.contains(c.Values, c.Key, f.Vars.orNull(c.Key))
}

func (c ContextIn) String() string {
	texts := make([]string, len(c.Values))
	for i, v := range c.Values {
		texts[i] = string(v)
	}
	return "context_in(" + c.Key + " in " + strings.Join(texts, ", ") + ")"
}

// ContextThreshold fires while a context variable is a number that is not
// below the threshold. An absent variable counts as 0; null, strings and
// booleans are not numbers.
type ContextThreshold struct {
	Key       string `json:"key"`
	Threshold Number `json:"threshold"`
}

// Name implements Condition.
func (ContextThreshold) Name() string { return "context_threshold" }

// Evaluate implements Condition.
func (c ContextThreshold) Evaluate(f *Facts, t *Turn) bool {
	raw, ok := f.Vars.Get(c.Key)
	if !ok {
		raw = "0"
	}
	return c.met(&t.budget, raw)
}

func (c ContextThreshold) met(b *budget, raw string) bool {
	return raw != "" && isNumber(raw[0]) && b.compare(c.Key, raw, c.Threshold.text()) >= 0 && !b.over
}

func (c ContextThreshold) String() string {
	return "context_threshold(" + c.Key + " >= " + c.Threshold.text() + ")"
}
