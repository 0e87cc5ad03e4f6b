package transcript

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Defaults of the contract.
const (
	DefaultContext   = "chat"
	DefaultListLimit = 50
	DefaultLockTTL   = 300 * time.Second
	DefaultWindow    = 600 * time.Second
	minLockTTL       = time.Second
)

// ErrNotFound says that there is no such session.
var ErrNotFound = errors.New("transcript: there is no such session")

// ErrFull says that a store holds as many sessions as it may.
var ErrFull = errors.New("transcript: the store is full; delete sessions first")

// WriteError is the refusal of a write because of one of its messages.
type WriteError struct {
	Index int
	Err   error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("transcript: messages[%d] %v; nothing was written", e.Index, e.Err)
}

// Unwrap returns the reason why the message was refused.
func (e *WriteError) Unwrap() error { return e.Err }

// Row is one message of a transcript as read: its envelope, or what was found
// in its place and why it is not a message.
type Row struct {
	message.Envelope
	Err error
	Raw []byte // what was found, if Err is set
}

// Session is a conversation as a store keeps it.
type Session struct {
	ID                 string
	Scope              Scope
	Owner              Owner
	AgentSlug          string
	Title              string
	Messages           []Row
	Metadata           *value.Map
	Provider           string
	Model              string
	ProviderResponseID *string
	Context            string
	CreatedAt          string
	UpdatedAt          string
	LastReadAt         string // "" is null
	ExpiresAt          string // "" is null
	// Cursor is the position of the session in a listing; the store sets it.
	Cursor string
}

// Envelopes returns the messages that could be read.
func (s Session) Envelopes() []message.Envelope {
	envelopes := make([]message.Envelope, 0, len(s.Messages))
	for _, row := range s.Messages {
		if row.Err == nil {
			envelopes = append(envelopes, row.Envelope)
		}
	}
	return envelopes
}

// Create says what a new session starts with; an empty context is chat.
type Create struct {
	AgentSlug string
	Metadata  *value.Map
	Context   string
}

// Update replaces a transcript and its metadata as a whole. An empty provider
// or model and a nil response id leave what is stored.
type Update struct {
	Messages           any // a list in any shape message.NormalizeAll takes, and bad Rows to keep
	Metadata           *value.Map
	Provider           string
	Model              string
	ProviderResponseID *string
}

// Query selects sessions. A limit of 0 is 1, a nil one the default; empty
// filters select all.
type Query struct {
	Limit           *int
	Offset          int
	After           string // the Cursor of the last session of the page before
	AgentSlug       string
	Context         string
	IncludeMessages bool
}

// PendingQuery selects a session that waits; zero values are the defaults.
type PendingQuery struct {
	Window  time.Duration
	Context string
	TokenID string // metadata.token_id, if not empty
}

// Store keeps sessions. Errors are the store's own, or say why a write was
// refused; false and null results of the contract are not errors.
type Store interface {
	// Create makes an empty session and returns its id, a random UUID.
	Create(ctx context.Context, scope Scope, owner Owner, create Create) (string, error)
	// Get returns a session; a blank or unknown id is ErrNotFound.
	Get(ctx context.Context, id string) (Session, error)
	// Update replaces the transcript; false for an unknown id. It ignores
	// locks. A message that cannot be normalized is a *WriteError.
	Update(ctx context.Context, id string, update Update) (bool, error)
	// SetTitle renames; false for an unknown id.
	SetTitle(ctx context.Context, id, title string) (bool, error)
	// Delete removes; true also for an unknown id.
	Delete(ctx context.Context, id string) (bool, error)
	// List returns an owner's sessions in a workspace, newest first; of those
	// created at the same moment the one created last comes first. Pages by
	// After neither shift nor end early when sessions are added or deleted.
	List(ctx context.Context, scope Scope, owner Owner, query Query) ([]Session, error)
	// RecentPending checks only the newest matching session within the window,
	// and returns it if it has no messages or is locked, else ErrNotFound.
	RecentPending(ctx context.Context, scope Scope, owner Owner, query PendingQuery) (Session, error)
	Locker
}

// Locker is the advisory lock of a session's one writer.
type Locker interface {
	// Acquire returns a token, or "" while another's lock has not expired or
	// the session is unknown. A lifetime of 0 is the default, and none is
	// shorter than a second.
	Acquire(ctx context.Context, id string, ttl time.Duration) (string, error)
	// Release reports whether the token was the current one, and if so unlocks.
	// A token whose lock was taken over releases nothing.
	Release(ctx context.Context, id, token string) (bool, error)
}

// NoLock is a lock that is never granted; with it every run ends in contention.
type NoLock struct{}

// Acquire returns no token.
func (NoLock) Acquire(context.Context, string, time.Duration) (string, error) { return "", nil }

// Release releases nothing.
func (NoLock) Release(context.Context, string, string) (bool, error) { return false, nil }

// Rows returns the rows that a write stores: each message as its envelope, and
// a bad [Row] that was read before unchanged. The error names the message that
// is invalid. Every store calls it before it writes.
func Rows(messages any) ([][]byte, error) {
	list, ok := messages.([]any)
	if !ok {
		list, ok = value.Values(value.Of(messages))
	}
	if !ok && messages != nil {
		return nil, &WriteError{Err: message.ErrNotContainer}
	}
	rows := make([][]byte, 0, len(list))
	for i, item := range list {
		if bad, ok := item.(Row); ok && bad.Err != nil {
			rows = append(rows, bad.Raw)
			continue
		}
		e, err := message.Normalize(item)
		if err != nil {
			return nil, &WriteError{Index: i, Err: err}
		}
		row, err := e.AppendJSON(nil)
		if err != nil {
			return nil, &WriteError{Index: i, Err: err}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// ReadRow reads a stored message. Every store calls it for every row it reads.
func ReadRow(raw []byte) Row {
	e, err := message.NormalizeJSON(raw)
	if err != nil {
		return Row{Err: err, Raw: raw}
	}
	return Row{Envelope: e}
}

// EffectiveLimit returns the number of sessions a query asks for.
func (q Query) EffectiveLimit() int {
	if q.Limit == nil {
		return DefaultListLimit
	}
	return max(1, *q.Limit)
}

// LockTTL returns the lifetime a lock gets.
func LockTTL(ttl time.Duration) time.Duration {
	if ttl == 0 {
		return DefaultLockTTL
	}
	return max(minLockTTL, ttl)
}
