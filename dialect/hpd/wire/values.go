package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/view/branch"
)

// Types that the projections define.
type (
	// Raw is a JSON value that is passed on unchanged.
	Raw = branch.Raw
	// Content is one part of a message.
	Content = branch.Content
	// ChatMessage is a message as clients send it.
	ChatMessage = branch.ChatMessage
	// AgentMetadata names the agent of an event.
	AgentMetadata = branch.Agent
)

// Extra keeps the members that a type does not name, so that a newer producer and a
// newer client can communicate through an older hub.
type Extra struct {
	Members Raw `json:",embed"`
}

// Usage counts tokens.
type Usage struct {
	InputTokenCount  *int64 `json:"inputTokenCount,omitzero"`
	OutputTokenCount *int64 `json:"outputTokenCount,omitzero"`
	TotalTokenCount  *int64 `json:"totalTokenCount,omitzero"`
	Extra
}

// Invocation is the tool call that began a background task.
type Invocation struct {
	AgentName      string  `json:"agentName"`
	FunctionCallID string  `json:"functionCallId"`
	FunctionName   string  `json:"functionName"`
	ConversationID *string `json:"conversationId,omitzero"`
	SessionID      *string `json:"sessionId,omitzero"`
	BranchID       *string `json:"branchId,omitzero"`
	TraceID        *string `json:"traceId,omitzero"`
	BatchID        *string `json:"batchId,omitzero"`
	ToolCallIndex  *int64  `json:"toolCallIndex,omitzero"`
	Extra
}

// ToolResult is the result of a tool.
type ToolResult struct {
	Text       *string             `json:"text,omitzero"`
	JSON       Raw                 `json:"json,omitzero"`
	Content    []ToolResultContent `json:"content,omitzero"`
	ResultType *string             `json:"resultType,omitzero"`
	Extra
}

// UnmarshalJSONFrom reads a result whose json is null as one without json.
func (r *ToolResult) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type plain ToolResult
	err := json.UnmarshalDecode(d, (*plain)(r))
	if r.JSON.Kind() == 'n' {
		r.JSON = nil
	}
	return err
}

// ToolResultContent is one part of a client tool's answer: type text, binary
// or json.
type ToolResultContent struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitzero"`
	MimeType *string `json:"mimeType,omitzero"`
	Data     *string `json:"data,omitzero"`
	URL      *string `json:"url,omitzero"`
	ID       *string `json:"id,omitzero"`
	Filename *string `json:"filename,omitzero"`
	Value    Raw     `json:"value,omitzero"`
	Extra
}

// Target names who may answer a request.
type Target struct {
	ResponderID          *string  `json:"responderId,omitzero"`
	ResponderGroup       *string  `json:"responderGroup,omitzero"`
	RequiredCapabilities []string `json:"requiredCapabilities"`
}

// Augmentation is what a client tool changes for the next iteration.
type Augmentation struct {
	InjectToolHarnesses   []Raw    `json:"injectToolHarnesses,omitzero"`
	RemoveToolHarnesses   []string `json:"removeToolHarnesses,omitzero"`
	ExpandToolHarnesses   []string `json:"expandToolHarnesses,omitzero"`
	CollapseToolHarnesses []string `json:"collapseToolHarnesses,omitzero"`
	HideTools             []string `json:"hideTools,omitzero"`
	ShowTools             []string `json:"showTools,omitzero"`
	AddContext            []Raw    `json:"addContext,omitzero"`
	RemoveContext         []string `json:"removeContext,omitzero"`
	UpdateState           Raw      `json:"updateState,omitzero"`
	PatchState            Raw      `json:"patchState,omitzero"`
	Extra
}

// Artifact is where captured audio is stored.
type Artifact struct {
	Store      string  `json:"store"`
	ArtifactID string  `json:"artifactId"`
	MediaType  *string `json:"mediaType,omitzero"`
	SizeBytes  *int64  `json:"sizeBytes,omitzero"`
	SHA256     *string `json:"sha256,omitzero"`
	Extra
}

// ContextMessage is a message in the form that a model gets.
type ContextMessage struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// ContextTool is a tool in the form that a model gets.
type ContextTool struct {
	Name            string   `json:"name"`
	Description     string   `json:"description"`
	ToolHarnessName *string  `json:"toolHarnessName,omitzero"`
	CallType        CallType `json:"callType,omitzero"`
	IsContainer     bool     `json:"isContainer"`
	InputSchemaJSON *string  `json:"inputSchemaJson,omitzero"`
}

// MiddlewareState is one middleware's state.
type MiddlewareState struct {
	Key          string     `json:"key"`
	Type         string     `json:"type"`
	PropertyName string     `json:"propertyName"`
	Scope        StateScope `json:"scope,omitzero"`
	Persistent   bool       `json:"persistent"`
	Version      Raw        `json:"version,omitzero"`
	JSON         Raw        `json:"json,omitzero"`
	Error        *string    `json:"error,omitzero"`
	Redacted     bool       `json:"redacted"`
}

// MiddlewareChange is the change of one middleware's state.
type MiddlewareChange struct {
	Key          string     `json:"key"`
	Type         string     `json:"type"`
	PropertyName string     `json:"propertyName"`
	Scope        StateScope `json:"scope,omitzero"`
	Persistent   bool       `json:"persistent"`
	Version      Raw        `json:"version,omitzero"`
	ChangeType   string     `json:"changeType"`
	Before       Raw        `json:"before,omitzero"`
	After        Raw        `json:"after,omitzero"`
	Error        *string    `json:"error,omitzero"`
	Redacted     bool       `json:"redacted"`
}
