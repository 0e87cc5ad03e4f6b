package graph

// Bounds of what a new graph or context variable may hold. Load does not apply
// them, because a log may hold graphs that are older than the bounds. Code
// that accepts a graph or an update from outside calls CheckBounds.
const (
	MaxConditions = 16_384 // in a graph, nested ones included
	MaxValues     = 1_024  // in one context_in
	MaxVars       = 16_384 // context variables of a channel
)

// CheckBounds refuses a graph that costs more to evaluate than a new channel
// may ask for. Errors are of type *Error.
func (g *Graph) CheckBounds() error {
	if length := longestNumber(g.source); length > MaxNumber {
		return refuse("", "a number has %d characters; at most %d", length, MaxNumber)
	}
	conditions := 0
	var err error
	for i, t := range g.transitions {
		walk(t.When, func(c Condition) {
			conditions++
			if in, ok := c.(ContextIn); ok && len(in.Values) > MaxValues && err == nil {
				err = refuse(transitionPath(i)+".when", "context_in lists %d values; at most %d", len(in.Values), MaxValues)
			}
		})
	}
	if err == nil && conditions > MaxConditions {
		err = refuse("transitions", "%d conditions, nested ones included; at most %d", conditions, MaxConditions)
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
func (v Vars) CheckBounds() error {
	if v.Len() > MaxVars {
		return refuse("", "%d context variables; at most %d", v.Len(), MaxVars)
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

// longestNumber is the length of the longest number in a valid JSON text, or 0
// for a text too short to break the bound.
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
