package transcript

import (
	"github.com/parley-hub/parley/message/value"
)

// ScopeCode is the code of every refusal of a workspace.
const ScopeCode = "invalid_agent_workspace_scope"

// ScopeError is the refusal of a workspace.
type ScopeError struct{ Reason string }

func (e *ScopeError) Error() string { return ScopeCode + ": " + e.Reason }

// Scope is the workspace a session belongs to.
type Scope struct {
	Type string
	ID   string
}

// NewScope folds and checks a workspace.
func NewScope(workspaceType, workspaceID string) (Scope, error) {
	s := Scope{Type: value.Lower(value.Trim(workspaceType)), ID: value.Trim(workspaceID)}
	switch {
	case s.Type == "":
		return Scope{}, &ScopeError{"workspace_type must be non-empty"}
	case !isSlug(s.Type):
		return Scope{}, &ScopeError{"workspace_type must be a lowercase slug"}
	case s.ID == "":
		return Scope{}, &ScopeError{"workspace_id must be non-empty"}
	default:
		return s, nil
	}
}

// ScopeFrom reads a workspace from a map.
func ScopeFrom(raw any) (Scope, error) {
	m := value.MapOrEmpty(value.Of(raw))
	return NewScope(value.Text(m.At("workspace_type")), value.Text(m.At("workspace_id")))
}

// Key names the workspace in one string.
func (s Scope) Key() string { return s.Type + ":" + s.ID }

// Canonical returns the workspace as a map.
func (s Scope) Canonical() *value.Map {
	return value.New().Set("workspace_type", s.Type).Set("workspace_id", s.ID)
}

func isSlug(s string) bool {
	if s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
