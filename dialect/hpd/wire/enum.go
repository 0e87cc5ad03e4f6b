package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
)

// Enums are written as the strings below. They are read as these strings in
// any case, or as upstream's numbers, which count from 0 in the same order.
type (
	// Delivery is how an input affects a busy branch.
	Delivery string
	// InterruptionSource is who asked for an interruption.
	InterruptionSource string
	// CallType is what a tool call calls.
	CallType string
	// OperationStatus is the status of a background operation.
	OperationStatus string
	// LogLevel is how serious a diagnostic is.
	LogLevel string
	// ResponsePolicy is whose answer is accepted.
	ResponsePolicy string
	// RequestVisibility is who sees a request.
	RequestVisibility string
	// RespondStatus is the result of an answer.
	RespondStatus string
	// PermissionChoice is how long a permission is valid.
	PermissionChoice string
	// RetryStatus is the status of a retry inside the runtime.
	RetryStatus string
	// CompactionStatus is what compaction did. CacheHit is read, but never written.
	CompactionStatus string
	// ResolutionKind is how a content reference was resolved.
	ResolutionKind string
	// PlanUpdate is what changed in a plan.
	PlanUpdate string
	// CheckpointOperation is what happened to a checkpoint.
	CheckpointOperation string
	// StateScope is the scope of middleware state: Session or Branch, which the
	// thread surface calls Thread.
	StateScope string
	// MessageSource is where a message comes from (newest upstream).
	MessageSource string
	// MessageVisibility is who sees a message (newest upstream).
	MessageVisibility string
)

// Values that our own code uses.
const (
	FromUser       InterruptionSource = "User"
	FromSystem     InterruptionSource = "System"
	FromParent     InterruptionSource = "Parent"
	FromMiddleware InterruptionSource = "Middleware"

	Information LogLevel = "Information"
	Warning     LogLevel = "Warning"

	FirstValidResponseWins ResponsePolicy = "firstValidResponseWins"
	TargetedResponder      ResponsePolicy = "targetedResponder"

	AllObservers           RequestVisibility = "allObservers"
	EligibleRespondersOnly RequestVisibility = "eligibleRespondersOnly"

	Accepted             RespondStatus = "accepted"
	NotFound             RespondStatus = "notFound"
	AlreadyResolved      RespondStatus = "alreadyResolved"
	TimedOut             RespondStatus = "timedOut"
	Cancelled            RespondStatus = "cancelled"
	ResponseTypeMismatch RespondStatus = "responseTypeMismatch"
	TargetMismatch       RespondStatus = "targetMismatch"
	AmbiguousRequest     RespondStatus = "ambiguousRequest"

	Ask         PermissionChoice = "ask"
	AllowAlways PermissionChoice = "allow_always"
	DenyAlways  PermissionChoice = "deny_always"

	Function CallType = "Function"
	SubAgent CallType = "SubAgent"

	BranchScope StateScope = "Branch"

	CacheHit CompactionStatus = "CacheHit"
)

// enum holds the values of one enum in upstream's order. An open enum accepts
// unknown strings.
type enum struct {
	what   string
	values []string
	also   map[string]string // other spellings, lower case
	open   bool
}

var (
	deliveries   = enum{what: "delivery", values: []string{"Queue", "Steer"}}
	interrupters = enum{what: "source", values: []string{"User", "System", "Parent", "Middleware"}}
	callTypes    = enum{what: "callType", values: []string{"Function", "Skill", "SubAgent", "MultiAgent", "MCPServer", "OpenApi"}, open: true}
	operations   = enum{what: "status", values: []string{"Queued", "InProgress", "Completed", "Failed", "Cancelled"}, open: true}
	logLevels    = enum{what: "level", values: []string{"Trace", "Debug", "Information", "Warning", "Error", "Critical"}}
	policies     = enum{what: "responsePolicy", values: []string{"firstValidResponseWins", "targetedResponder"}}
	visibilities = enum{what: "visibility", values: []string{"allObservers", "eligibleRespondersOnly"}}
	statuses     = enum{what: "status", values: []string{
		"accepted", "notFound", "alreadyResolved", "timedOut", "cancelled", "responseTypeMismatch", "targetMismatch", "ambiguousRequest",
	}}
	choices = enum{what: "choice", values: []string{"ask", "allow_always", "deny_always"}, also: map[string]string{
		"alwaysallow": "allow_always", "alwaysdeny": "deny_always",
	}}
	retries     = enum{what: "status", values: []string{"Attempting", "Exhausted"}}
	compactions = enum{what: "status", values: []string{"Skipped", "Performed", "CacheHit"}, open: true}
	resolutions = enum{what: "resolutionKind", values: []string{"DirectUri", "HostedFile", "BufferedData"}}
	planUpdates = enum{what: "updateType", values: []string{"Created", "StepUpdated", "StepAdded", "NoteAdded", "Completed"}}
	checkpoints = enum{what: "operation", values: []string{"Saved", "Restored", "Cleared"}}
	scopes      = enum{what: "scope", values: []string{"Session", "Branch"}, also: map[string]string{"thread": "Branch"}}
	sources     = enum{what: "source", values: []string{"UserInput", "AssistantOutput", "BackgroundNotification", "Steering", "RuntimeContext"}, open: true}
	audiences   = enum{what: "visibility", values: []string{"Transcript", "Hidden", "Diagnostic"}, open: true}
)

// read returns the written form of a JSON value, which is a string or number.
func (e *enum) read(data []byte) (string, error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return "", err
		}
		for _, value := range e.values {
			if strings.EqualFold(value, text) {
				return value, nil
			}
		}
		if value, ok := e.also[strings.ToLower(text)]; ok {
			return value, nil
		}
		if e.open {
			return text, nil
		}
	} else if n, err := strconv.Atoi(string(data)); err == nil && n >= 0 && n < len(e.values) {
		return e.values[n], nil
	}
	return "", fault.New(fault.Invalid, "`%s` is %.60s; it is one of %s, or its number from 0 to %d", e.what, data, strings.Join(e.values, ", "), len(e.values)-1)
}

func readEnum[T ~string](into *T, e *enum, data []byte) error {
	value, err := e.read(data)
	if err == nil {
		*into = T(value)
	}
	return err
}

// UnmarshalJSON reads a name or a number.
func (v *Delivery) UnmarshalJSON(data []byte) error { return readEnum(v, &deliveries, data) }

// UnmarshalJSON reads a name or a number.
func (v *InterruptionSource) UnmarshalJSON(data []byte) error {
	return readEnum(v, &interrupters, data)
}

// UnmarshalJSON reads a name or a number.
func (v *CallType) UnmarshalJSON(data []byte) error { return readEnum(v, &callTypes, data) }

// UnmarshalJSON reads a name or a number.
func (v *LogLevel) UnmarshalJSON(data []byte) error { return readEnum(v, &logLevels, data) }

// UnmarshalJSON reads a name or a number.
func (v *ResponsePolicy) UnmarshalJSON(data []byte) error { return readEnum(v, &policies, data) }

// UnmarshalJSON reads a name or a number.
func (v *RequestVisibility) UnmarshalJSON(data []byte) error { return readEnum(v, &visibilities, data) }

// UnmarshalJSON reads a name or a number.
func (v *RespondStatus) UnmarshalJSON(data []byte) error { return readEnum(v, &statuses, data) }

// UnmarshalJSON reads a name or a number.
func (v *PermissionChoice) UnmarshalJSON(data []byte) error { return readEnum(v, &choices, data) }

// UnmarshalJSON reads a name or a number.
func (v *RetryStatus) UnmarshalJSON(data []byte) error { return readEnum(v, &retries, data) }

// UnmarshalJSON reads a name or a number.
func (v *CompactionStatus) UnmarshalJSON(data []byte) error { return readEnum(v, &compactions, data) }

// UnmarshalJSON reads a name or a number.
func (v *ResolutionKind) UnmarshalJSON(data []byte) error { return readEnum(v, &resolutions, data) }

// UnmarshalJSON reads a name or a number.
func (v *PlanUpdate) UnmarshalJSON(data []byte) error { return readEnum(v, &planUpdates, data) }

// UnmarshalJSON reads a name or a number.
func (v *CheckpointOperation) UnmarshalJSON(data []byte) error {
	return readEnum(v, &checkpoints, data)
}

// UnmarshalJSON reads a name or a number.
func (v *StateScope) UnmarshalJSON(data []byte) error { return readEnum(v, &scopes, data) }

// UnmarshalJSON reads a name or a number.
func (v *MessageSource) UnmarshalJSON(data []byte) error { return readEnum(v, &sources, data) }

// UnmarshalJSON reads a name or a number.
func (v *MessageVisibility) UnmarshalJSON(data []byte) error { return readEnum(v, &audiences, data) }

// UnmarshalJSON reads a name, a number or {"value": name}.
func (v *OperationStatus) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var wrapped struct {
			Value Raw `json:"value"`
		}
		if err := json.Unmarshal(data, &wrapped); err != nil {
			return err
		}
		data = wrapped.Value
	}
	return readEnum(v, &operations, data)
}
