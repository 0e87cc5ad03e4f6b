package channel

import (
	"fmt"
	"slices"
)

// Lifecycle is the state of a channel between its creation and its end.
type Lifecycle int

const (
	// Unset is the zero value, which is not a state: an effect with it moves nothing.
	Unset Lifecycle = iota
	Pending
	Active
	Closing
	Closed
	Expired
)

var lifecycleNames = [...]string{"", "pending", "active", "closing", "closed", "expired"}

// moves is the table of legal moves; docs/lifecycle.md draws it.
var moves = map[Lifecycle][]Lifecycle{
	Unset:   {Pending, Active},
	Pending: {Active, Closed, Expired},
	Active:  {Closing, Closed, Expired},
	Closing: {Closed, Expired},
	Closed:  nil,
	Expired: nil,
}

func (l Lifecycle) String() string {
	if l < 0 || int(l) >= len(lifecycleNames) {
		return fmt.Sprintf("lifecycle(%d)", int(l))
	}
	return lifecycleNames[l]
}

// ParseLifecycle reads a state's name.
func ParseLifecycle(s string) (Lifecycle, error) {
	i := slices.Index(lifecycleNames[:], s)
	if i < 1 {
		return Unset, fmt.Errorf("channel: %q is not a state; a state is one of pending, active, closing, closed, expired", s)
	}
	return Lifecycle(i), nil
}

// CanBecome reports whether the move is legal.
func (l Lifecycle) CanBecome(next Lifecycle) bool { return slices.Contains(moves[l], next) }

// Terminal reports whether nothing more is accepted.
func (l Lifecycle) Terminal() bool { return l == Closed || l == Expired }
