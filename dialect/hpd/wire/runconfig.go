package wire

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
)

// RunConfig is the known part of a run's configuration. The server passes it on
// unread; this type is for producers.
type RunConfig struct {
	ProviderKey                  *string          `json:"providerKey,omitzero"`
	ModelID                      *string          `json:"modelId,omitzero"`
	ProviderOptionsJSON          *string          `json:"providerOptionsJson,omitzero"`
	ProviderEndpoint             *string          `json:"providerEndpoint,omitzero"`
	SystemInstructions           *string          `json:"systemInstructions,omitzero"`
	AdditionalSystemInstructions *string          `json:"additionalSystemInstructions,omitzero"`
	Chat                         *ChatConfig      `json:"chat,omitzero"`
	PermissionOverrides          map[string]bool  `json:"permissionOverrides,omitzero"`
	ContextOverrides             Raw              `json:"contextOverrides,omitzero"`
	CoalesceDeltas               *bool            `json:"coalesceDeltas,omitzero"`
	SkipTools                    *bool            `json:"skipTools,omitzero"`
	RunTimeout                   *RunTimeout      `json:"runTimeout,omitzero"`
	UseCache                     *bool            `json:"useCache,omitzero"`
	AllowBackgroundResponses     *bool            `json:"allowBackgroundResponses,omitzero"`
	ConversationIDOverride       *string          `json:"conversationIdOverride,omitzero"`
	ClientToolInput              *ClientToolInput `json:"clientToolInput,omitzero"`
	Extra
}

// ChatConfig tunes a model.
type ChatConfig struct {
	Temperature      *float64 `json:"temperature,omitzero"`
	MaxOutputTokens  *int64   `json:"maxOutputTokens,omitzero"`
	TopP             *float64 `json:"topP,omitzero"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitzero"`
	PresencePenalty  *float64 `json:"presencePenalty,omitzero"`
	Extra
}

// ClientToolInput is the tools that a client provides.
type ClientToolInput struct {
	ClientToolHarnesses []ClientToolHarness `json:"clientToolHarnesses,omitzero"`
	ExpandedContainers  []string            `json:"expandedContainers,omitzero"`
	HiddenTools         []string            `json:"hiddenTools,omitzero"`
	Context             []ClientContext     `json:"context,omitzero"`
	State               Raw                 `json:"state,omitzero"`
	ExecutionContext    Raw                 `json:"executionContext,omitzero"`
	Metadata            Raw                 `json:"metadata,omitzero"`
	ResetClientState    *bool               `json:"resetClientState,omitzero"`
	Extra
}

// ClientToolHarness is a group of client tools.
type ClientToolHarness struct {
	Name           string       `json:"name"`
	Description    *string      `json:"description,omitzero"`
	Tools          []ClientTool `json:"tools"`
	Skills         Raw          `json:"skills,omitzero"`
	FunctionResult *string      `json:"functionResult,omitzero"`
	SystemPrompt   *string      `json:"systemPrompt,omitzero"`
	StartCollapsed *bool        `json:"startCollapsed,omitzero"`
	Extra
}

// ClientTool is a tool that runs at a client.
type ClientTool struct {
	Name               string `json:"name"`
	Description        string `json:"description"`
	ParametersSchema   Raw    `json:"parametersSchema,omitzero"`
	RequiresPermission *bool  `json:"requiresPermission,omitzero"`
	Extra
}

// ClientContext is information from a client for the model.
type ClientContext struct {
	Description string  `json:"description"`
	Value       Raw     `json:"value,omitzero"`
	Key         *string `json:"key,omitzero"`
}

// RunTimeout is read as hh:mm:ss or in ISO 8601, such as PT2M.
type RunTimeout time.Duration

// MarshalText writes hh:mm:ss.
func (t RunTimeout) MarshalText() ([]byte, error) { return Duration(t).MarshalText() }

// UnmarshalJSON reads both forms.
func (t *RunTimeout) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	rest, iso := strings.CutPrefix(text, "PT")
	if !iso {
		d, err := ParseDuration(text)
		*t = RunTimeout(d)
		return err
	}
	d, err := time.ParseDuration(strings.ToLower(rest))
	if err != nil || strings.ContainsAny(rest, "µn+-") || rest == "" {
		return fault.New(fault.Invalid, "`runTimeout` is %.40q; write hh:mm:ss or an ISO 8601 time such as PT2M", text)
	}
	*t = RunTimeout(d)
	return nil
}
