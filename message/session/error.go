package session

const prefix = "agents_conversation_session_"

// Codes of what is refused.
const (
	CodeUnauthenticated   = prefix + "unauthenticated"
	CodeOwnerRequired     = prefix + "owner_required"
	CodeInvalidOwner      = prefix + "invalid_owner"
	CodeNonIsolatingOwner = prefix + "non_isolating_owner"
	CodeUserForbidden     = prefix + "user_owner_forbidden"
	CodeOwnerForbidden    = prefix + "owner_forbidden"
	CodeNoStore           = prefix + "no_store"
	CodePrincipalStore    = prefix + "principal_store_required"
	CodeInvalidWorkspace  = prefix + "invalid_workspace"
	CodeInvalidID         = prefix + "invalid_id"
	CodeInvalidTitle      = prefix + "invalid_title"
	CodeNotFound          = prefix + "not_found"
	CodeForbidden         = prefix + "forbidden"
	CodeCreateFailed      = prefix + "create_failed"
	CodeUpdateFailed      = prefix + "update_failed"
	CodeDeleteFailed      = prefix + "delete_failed"
)

// Error is a refusal with its code.
type Error struct {
	Code  string
	Text  string
	cause error
}

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Unwrap returns the store's error, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Status returns the refusal's HTTP status.
func (e *Error) Status() int {
	switch e.Code {
	case CodeUnauthenticated:
		return 401
	case CodeForbidden, CodeUserForbidden, CodeOwnerForbidden:
		return 403
	case CodeNotFound:
		return 404
	case CodeNoStore, CodePrincipalStore, CodeCreateFailed, CodeUpdateFailed, CodeDeleteFailed:
		return 500
	default:
		return 400
	}
}

func refuse(code, text string) error { return &Error{Code: code, Text: text} }

func failed(code, text string, cause error) error {
	return &Error{Code: code, Text: text, cause: cause}
}
