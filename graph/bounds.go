package graph

// Upper limits of a new graph and of context variables. They are also the defaults of
// Bounds.
const (
	MaxConditions = 16_384 // in a graph, nested ones included
	MaxValues     = 1_024  // in one context_in
	MaxVars       = 16_384 // context variables of a channel
)

// Bounds limit the graphs and variables that clients send. Load does not apply
// them, because a log may hold graphs that are older than the bounds or a setting.
// They only decide what is refused: the cost of evaluation is bounded by MaxSteps
// and MaxNumber, which no setting changes, because a fold must not depend on
// settings. Zero, or a value above the upper limit, means the upper limit.
type Bounds struct {
	Conditions int // MaxConditions; limits.graph_conditions
	Values     int // MaxValues; limits.graph_values
	Vars       int // MaxVars; limits.context_vars
}

// WithDefaults fills in what is not set.
func (b Bounds) WithDefaults() Bounds {
	for _, n := range []struct {
		value *int
		most  int
	}{{&b.Conditions, MaxConditions}, {&b.Values, MaxValues}, {&b.Vars, MaxVars}} {
		if *n.value <= 0 || *n.value > n.most {
			*n.value = n.most
		}
	}
	return b
}

// CheckBounds refuses a graph that costs more to evaluate than a new channel
// may ask for. Errors are of type *Error.
func (g *Graph) CheckBounds(b Bounds) error {
	b = b.WithDefaults()
	if length := longestNumber(g.source); length > MaxNumber {
		return refuse("", "a number has %d characters; at most %d", length, MaxNumber)
	}
	conditions := 0
	var err error
	for i, t := range g.transitions {
		walk(t.When, func(c Condition) {
			conditions++
			if in, ok := c.(ContextIn); ok && len(in.Values) > b.Values && err == nil {
				err = refuse(transitionPath(i)+".when", "context_in lists %d values; at most %d (limits.graph_values)", len(in.Values), b.Values)
			}
		})
	}
	if err == nil && conditions > b.Conditions {
		err = refuse("transitions", "%d conditions, nested ones included; at most %d (limits.graph_conditions)", conditions, b.Conditions)
	}
	return err
}

// CheckBounds refuses an update with a number that no rule could compare.
func (u *Update) CheckBounds() error {
	for _, v := range u.Set {
		if err := checkNumbers(v); err != nil {
			return err
		}
	}
	return nil
}

// CheckBounds refuses variables that no rule could compare.
func (v Vars) CheckBounds(b Bounds) error {
	if most := b.WithDefaults().Vars; v.Len() > most {
		return refuse("", "%d context variables; at most %d (limits.context_vars)", v.Len(), most)
	}
	for _, e := range v.entries {
		if err := checkNumbers(e); err != nil {
			return err
		}
	}
	return nil
}

func checkNumbers(v Var) error {
	if length := longestNumber(v.Value); length > MaxNumber {
		return refuse("", "context variable '%.64s' holds a number of %d characters; at most %d", v.Key, length, MaxNumber)
	}
	return nil
}

// longestNumber returns the length of the longest number in a valid JSON text,
// or 0 for a text too short to break the bound.
func longestNumber(text string) int {
	if len(text) <= MaxNumber {
		return 0
	}
	longest, begin := 0, -1
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
			continue
		case c == '"':
			quoted = true
		case begin < 0 && isNumber(c):
			begin = i
		}
		if begin >= 0 && !inNumber(c) {
			longest, begin = max(longest, i-begin), -1
		}
	}
	if begin >= 0 {
		longest = max(longest, len(text)-begin)
	}
	return longest
}

func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}
