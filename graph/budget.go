package graph

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxSteps bounds the work of one turn's evaluation. A step is one byte of a
// variable or of a graph's value that is parsed in order to be compared. Each
// variable is parsed at most once in a turn, and each value once, so a graph
// within the default Limits, over the variables that a channel may hold, never
// reaches the bound. A rule that needs more does not match. Steps are counted rather than time, so
// that replay decides as the live fold did.
const MaxSteps = 16 << 20

// MaxNumber bounds a number's text, in bytes. A longer number is refused when
// it comes in; a rule that has to compare one from an older log does not match.
const MaxNumber = 1024

// budget makes the comparisons of one evaluation and counts their cost. Its
// zero value is full. It is not safe for concurrent use.
type budget struct {
	spent  int
	over   bool              // a comparison was given up since the last reset
	parsed map[string]parsed // variables, by key
}

// parsed is a variable's value, parsed once. The raw text shows whether the
// variable has changed since.
type parsed struct {
	raw  string
	tree tree
	ok   bool
}

// spend takes steps from the budget. It returns false if too few are left.
func (b *budget) spend(steps int) bool {
	if b.over || steps > MaxSteps-b.spent {
		b.over = true
		return false
	}
	b.spent += steps
	return true
}

// tree parses a text and counts its cost.
func (b *budget) tree(raw []byte) (tree, bool) {
	if !b.spend(len(raw)) {
		return tree{}, false
	}
	t, err := parseTree(raw)
	b.over = err != nil
	return t, err == nil
}

// variable parses a variable's value at most once.
func (b *budget) variable(key, raw string) (tree, bool) {
	if p, ok := b.parsed[key]; ok && p.raw == raw {
		b.over = b.over || !p.ok // as the first time
		return p.tree, p.ok
	}
	t, ok := b.tree([]byte(raw))
	if b.parsed == nil {
		b.parsed = map[string]parsed{}
	}
	b.parsed[key] = parsed{raw: raw, tree: t, ok: ok}
	return t, ok
}

// short is the length up to which scanning a string again is cheaper than
// looking up its parsed form.
const short = 64

// equal compares a variable with a value: numbers by value, strings by what they spell,
// objects whatever the order of their keys. A boolean never equals a number.
func (b *budget) equal(key, raw string, value jsontext.Value) bool {
	if raw == string(value) {
		return true
	}
	if raw == "" || len(value) == 0 {
		return false
	}
	// Most values that differ need not be parsed.
	if isNumber(raw[0]) && isNumber(value[0]) {
		return b.compare(key, raw, string(value)) == 0 && !b.over
	}
	if raw[0] != value[0] {
		return false
	}
	if raw[0] == '"' && len(raw) <= short && plainText(raw) && plainText(string(value)) {
		return false
	}
	x, ok := b.variable(key, raw)
	if !ok {
		return false
	}
	y, ok := b.tree(value)
	return ok && x.equal(y)
}

// contains reports whether a variable equals one of the values.
func (b *budget) contains(values []jsontext.Value, key, raw string) bool {
	return slices.ContainsFunc(values, func(v jsontext.Value) bool { return b.equal(key, raw, v) })
}

// compare compares a variable that is a number with another number. The result is
// valid only if the budget is not used up.
func (b *budget) compare(key, raw, value string) int {
	if c, ok := compareShort(raw, value); ok {
		return c
	}
	if len(raw) > MaxNumber || len(value) > MaxNumber {
		b.over = true
		return 0
	}
	x, ok := b.variable(key, raw)
	if !ok || !b.spend(len(value)) {
		return 0
	}
	return x.number.compare(parseDecimal(value))
}
