package result

// Code is the code of every refusal of a conversation result.
const Code = "invalid_agent_conversation_result"

// Error is the refusal of a conversation result: where and why.
type Error struct {
	Path   string
	Reason string
	cause  error
}

func (e *Error) Error() string { return Code + ": " + e.Path + " " + e.Reason }

// Unwrap returns the refusal of the message the error is about, if it is about one.
func (e *Error) Unwrap() error { return e.cause }
