package message

// What every envelope carries.
const (
	Schema  = "agents-api.message"
	Version = 1
)

// Type says what an envelope is. There are nine.
type Type string

// The types an envelope may have.
const (
	TypeText             Type = "text"
	TypeToolCall         Type = "tool_call"
	TypeToolResult       Type = "tool_result"
	TypeInputRequired    Type = "input_required"
	TypeApprovalRequired Type = "approval_required"
	TypeFinalResult      Type = "final_result"
	TypeError            Type = "error"
	TypeDelta            Type = "delta"
	TypeMultimodalPart   Type = "multimodal_part"
)

// multimodalAlias is how plain rows may name a multimodal part.
const multimodalAlias = "multimodal"

// The roles this package itself gives.
const (
	RoleAssistant = "assistant"
	RoleUser      = "user"
	RoleTool      = "tool"
	RoleSystem    = "system"
)

// Types lists the nine types.
func Types() []Type {
	return []Type{
		TypeText, TypeToolCall, TypeToolResult, TypeInputRequired, TypeApprovalRequired,
		TypeFinalResult, TypeError, TypeDelta, TypeMultimodalPart,
	}
}

// Supported reports whether t is exactly one of the nine types.
func (t Type) Supported() bool {
	switch t {
	case TypeText, TypeToolCall, TypeToolResult, TypeInputRequired, TypeApprovalRequired,
		TypeFinalResult, TypeError, TypeDelta, TypeMultimodalPart:
		return true
	default:
		return false
	}
}

// DefaultRole returns the role of a message of this type that names none.
func (t Type) DefaultRole() string {
	switch t {
	case TypeToolResult, TypeInputRequired, TypeApprovalRequired:
		return RoleTool
	default:
		return RoleAssistant
	}
}

// lifted lists the keys a plain row of this type keeps in metadata and an
// envelope in payload, in the payload's order.
func (t Type) lifted() []string {
	switch t {
	case TypeToolCall:
		return []string{"tool_name", "parameters", "turn"}
	case TypeToolResult:
		return []string{"tool_name", "success", "turn", "tool_data", "media", "error"}
	default:
		return nil
	}
}
