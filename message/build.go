package message

import "github.com/parley-hub/parley/message/value"

// The builders apply the rules for role and content only: they set no id and no date
// and leave it to Normalize to refuse what cannot be serialized. Content is required:
// only Normalize treats a missing one as an empty text.

// Text builds a message whose type is inferred from content and metadata, as
// for a plain row: blocks make it a multimodal part, metadata.error an error.
func Text(role string, content any, metadata *value.Map) (Envelope, error) {
	content = value.Of(content)
	metadata = metadata.Clone()
	return compose(infer(content, metadata), role, content, value.New(), metadata)
}

// ToolCall builds an assistant's call of a tool.
func ToolCall(content any, toolName string, parameters any, turn int64, metadata *value.Map) (Envelope, error) {
	payload := value.New().
		Set("tool_name", toolName).
		Set("parameters", value.Of(parameters)).
		Set("turn", value.Int(turn))
	return compose(TypeToolCall, RoleAssistant, value.Of(content), payload, metadata.Clone())
}

// ToolResult builds a tool's answer, in the role user. The payload's tool_name
// is overwritten.
func ToolResult(content any, toolName string, payload, metadata *value.Map) (Envelope, error) {
	return compose(TypeToolResult, RoleUser, value.Of(content), payload.Clone().Set("tool_name", toolName), metadata.Clone())
}

// ApprovalRequired builds a request for a person's decision.
func ApprovalRequired(content any, payload, metadata *value.Map) (Envelope, error) {
	return compose(TypeApprovalRequired, RoleTool, value.Of(content), payload.Clone(), metadata.Clone())
}
