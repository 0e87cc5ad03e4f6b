package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Codes of problems: the machine-readable part of a refusal. Each surface renames
// them in its responses.
const (
	CreateSessionError  = "CreateSessionError"
	SearchSessionsError = "SearchSessionsError"
	GetSessionError     = "GetSessionError"
	UpdateSessionError  = "UpdateSessionError"
	DeleteSessionError  = "DeleteSessionError"

	ListBranchesError       = "ListBranchesError"
	GetBranchError          = "GetBranchError"
	CreateBranchError       = "CreateBranchError"
	ForkBranchError         = "ForkBranchError"
	UpdateBranchError       = "UpdateBranchError"
	DeleteBranchError       = "DeleteBranchError"
	GetEventsError          = "GetEventsError"
	GetSiblingsError        = "GetSiblingsError"
	ForkMessageNotPresent   = "ForkMessageNotPresent"
	ProtectedBranch         = "ProtectedBranch"
	HasChildren             = "HasChildren"
	RecursiveDeleteDisabled = "RecursiveDeleteDisabled"

	ListBranchRunsError     = "ListBranchRunsError"
	GetActiveBranchRunError = "GetActiveBranchRunError"
	GetBranchRunError       = "GetBranchRunError"
	BranchRunActive         = "BranchRunActive"
	OutOfTurn               = "OutOfTurn"
	BranchRunNotActive      = "BranchRunNotActive"
	BranchRuntimeNotActive  = "BranchRuntimeNotActive"
	ResponseTooLarge        = "ResponseTooLarge"

	BidirectionalResponse      = "BidirectionalResponse"
	BidirectionalResponseError = "BidirectionalResponseError"

	InvalidRequest       = "InvalidRequest"
	InvalidContentType   = "InvalidContentType"
	NoFileProvided       = "NoFileProvided"
	UploadContentError   = "UploadContentError"
	ListContentError     = "ListContentError"
	DownloadContentError = "DownloadContentError"
	DeleteContentError   = "DeleteContentError"

	AgentConfig      = "config"
	CreateAgentError = "CreateAgentError"
	UpdateAgentError = "UpdateAgentError"
	DeleteAgentError = "DeleteAgentError"
)

// Reasons with which the server closes a WebSocket.
const (
	CloseInvalid   = "Invalid agent input or response event envelope"
	CloseGone      = "Session or branch not found"
	CloseCompleted = "Stream completed"
)

// CloseGone returns the reason on a surface.
func (s Surface) CloseGone() string {
	if s == Threads {
		return "Session or thread not found"
	}
	return CloseGone
}

// ProblemType is the content type of refusals.
const ProblemType = "application/problem+json"

// Problem is a refusal's body.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Result is set by the responses route only; it is null if there is none.
	Result Raw                 `json:"result,omitzero"`
	Errors map[string][]string `json:"errors"`
}

// sections of RFC 9110 that define the statuses.
var sections = map[int]string{
	http.StatusBadRequest: "5.1", http.StatusUnauthorized: "5.2", http.StatusForbidden: "5.4", http.StatusNotFound: "5.5",
	http.StatusMethodNotAllowed: "5.6", http.StatusConflict: "5.10", http.StatusGone: "5.11",
	http.StatusRequestEntityTooLarge: "5.14", http.StatusUnsupportedMediaType: "5.16",
	http.StatusInternalServerError: "6.1", http.StatusServiceUnavailable: "6.4",
}

// NewProblem returns a refusal with one code. Clients show the title, so it says
// what happened, except for one title that clients know from upstream.
func NewProblem(surface Surface, status int, code string, messages ...string) *Problem {
	for i := range messages {
		messages[i] = surface.words(messages[i])
	}
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Errors: map[string][]string{surface.Code(code): messages}}
	if section, ok := sections[status]; ok {
		p.Type = "https://tools.ietf.org/html/rfc9110#section-15." + section
	}
	switch {
	case status == http.StatusBadRequest:
		p.Title = "One or more validation errors occurred."
	case len(messages) > 0:
		p.Title = messages[0]
	}
	return p
}

var threadWords = strings.NewReplacer("Branch '", "Thread '", "branch '", "thread '", "Branch id", "Thread id", "branch id", "thread id")

// words replaces the words of a surface in texts for people.
func (s Surface) words(text string) string {
	if s == Threads {
		return threadWords.Replace(text)
	}
	return text
}

// Refused returns the 409 for an answer that was not accepted. Its first key is the
// status, which older clients read.
func Refused(result RespondResult) *Problem {
	message := result.Message
	if message == nil {
		message = new("The response was not accepted: " + string(result.Status) + ".")
	}
	code := string(result.Status)
	if code != "" {
		code = strings.ToUpper(code[:1]) + code[1:]
	}
	p := NewProblem(Branches, http.StatusConflict, code, *message)
	result.Accepted = false
	if data, err := json.Marshal(result); err == nil {
		p.Result = data
	}
	return p
}

// NoRuntime returns the 409 for an answer where no run is active.
func NoRuntime(surface Surface, message string) *Problem {
	p := NewProblem(surface, http.StatusConflict, BranchRuntimeNotActive, message)
	p.Result = Raw("null")
	return p
}

// JSON writes the problem.
func (p *Problem) JSON() []byte {
	data, err := json.Marshal(p, json.Deterministic(true))
	if err != nil { // a message that is not UTF-8
		return []byte(`{"title":"` + http.StatusText(p.Status) + `","status":` + strconv.Itoa(p.Status) + `,"errors":{}}`)
	}
	return data
}

func unquote(value Raw) (string, bool) {
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}
