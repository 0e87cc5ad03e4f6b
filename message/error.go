package message

// Code is the code of every refusal of a message.
const Code = "invalid_ai_message_envelope"

// Error is the refusal of a message.
type Error struct {
	Code   string
	Reason string
	cause  error
}

// The refusals, in the order in which they are checked; the last one is checked
// before all others. Compare with errors.Is.
var (
	ErrVersion      = refusal("unsupported version")
	ErrType         = refusal("unsupported type")
	ErrRole         = refusal("role must be a non-empty string")
	ErrContent      = refusal("content must be a string or array")
	ErrSerializable = refusal("envelope must be JSON serializable")
	ErrNotContainer = refusal("message must be an array")
)

func refusal(reason string) *Error { return &Error{Code: Code, Reason: reason} }

// Error returns the text that peers compare.
func (e *Error) Error() string { return e.Code + ": " + e.Reason }

// Is makes refusals for one reason equal, whatever their cause.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code && other.Reason == e.Reason
}

// Unwrap returns the cause of the refusal, such as a syntax error; its text is
// not part of Error's.
func (e *Error) Unwrap() error { return e.cause }

// Unserializable returns ErrSerializable with a cause: a text that is not JSON,
// or a message too large to be read.
func Unserializable(cause error) error {
	return &Error{Code: Code, Reason: ErrSerializable.Reason, cause: cause}
}
