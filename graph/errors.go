package graph

import "fmt"

// Error is a graph that is refused: where, why, and what would be accepted.
type Error struct {
	Path    string // such as transitions[2].when, or "" for the whole graph
	Message string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "graph: " + e.Message
	}
	return "graph: " + e.Path + ": " + e.Message
}

func refuse(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

// transitionPath returns where the i-th transition of the list is.
func transitionPath(i int) string { return fmt.Sprintf("transitions[%d]", i) }
