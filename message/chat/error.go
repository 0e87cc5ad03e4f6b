package chat

// Codes of what is refused.
const (
	CodeAgentRequired    = "agents_chat_agent_required"
	CodeEmptyMessage     = "agents_chat_empty_message"
	CodeInvalidMessages  = "agents_chat_invalid_input_messages"
	CodeInvalidType      = "agents_chat_invalid_input_message_type"
	CodeUnpaired         = "agents_chat_unpaired_input_messages"
	CodeNoHandler        = "agents_chat_no_handler"
	CodeInvalidResult    = "agents_chat_invalid_result"
	CodeRunStarted       = "agents_chat_run_already_started"
	CodeRunForbidden     = "agents_chat_run_owner_forbidden"
	CodeInvalidOwner     = "agents_chat_run_invalid_owner"
	CodeInvalidWorkspace = "agents_chat_run_invalid_workspace"
	CodeSessionForbidden = "agents_conversation_session_forbidden"
	CodeStoreFailed      = "agents_chat_store_failed"
	CodeTooManyRuns      = "agents_chat_too_many_runs"
	CodeTooManyQueued    = "agents_chat_too_many_queued_messages"
)

// Error is a refusal with its code. For messages that could not be normalized
// the text is exactly theirs.
type Error struct {
	Code  string
	Text  string
	cause error
}

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Unwrap returns the cause of the refusal.
func (e *Error) Unwrap() error { return e.cause }

// Is makes refusals with one code equal.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Status returns the refusal's HTTP status.
func (e *Error) Status() int {
	switch e.Code {
	case CodeRunStarted:
		return 409
	case CodeRunForbidden, CodeSessionForbidden:
		return 403
	case CodeTooManyRuns, CodeTooManyQueued:
		return 429
	case CodeNoHandler, CodeInvalidResult, CodeStoreFailed:
		return 500
	default:
		return 400
	}
}

func refuse(code, text string) error { return &Error{Code: code, Text: text} }

func wrap(code string, cause error) error {
	return &Error{Code: code, Text: cause.Error(), cause: cause}
}
