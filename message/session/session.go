package session

import (
	"cmp"
	"context"
	"errors"

	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// Names of the abilities.
const (
	AbilityList   = "agents/list-conversation-sessions"
	AbilityGet    = "agents/get-conversation-session"
	AbilityCreate = "agents/create-conversation-session"
	AbilityTitle  = "agents/update-conversation-session-title"
	AbilityDelete = "agents/delete-conversation-session"
)

// Bounds of a listing.
const (
	maxLimit     = 100
	defaultLimit = 50
)

// The workspace of a request that names none.
const (
	defaultScopeType = "site"
	defaultScopeID   = "default"
)

// OwnerReader is a store that reads under an owner, so that a stranger's
// session is not found instead of forbidden.
type OwnerReader interface {
	GetForOwner(ctx context.Context, scope transcript.Scope, owner transcript.Owner, id string) (transcript.Session, error)
}

// Service serves the abilities over a store.
type Service struct {
	Store transcript.Store
	// SiteID is the id of the workspace of a request that names none; "" is
	// default.
	SiteID string
	// UsersOnly says that the store can serve only users as owners.
	UsersOnly bool
}

// Do runs an ability by its name. A nil principal is not authenticated.
func (s Service) Do(ctx context.Context, ability string, principal *transcript.Principal, input any) (*value.Map, error) {
	m := value.MapOrEmpty(value.Of(input))
	r, err := s.request(principal, m)
	if err != nil {
		return nil, err
	}
	switch ability {
	case AbilityList:
		return s.list(ctx, r)
	case AbilityCreate:
		return s.create(ctx, r)
	case AbilityGet:
		row, err := s.ownSession(ctx, r)
		if err != nil {
			return nil, err
		}
		return sessionOf(row), nil
	case AbilityTitle:
		return s.title(ctx, r)
	case AbilityDelete:
		return s.delete(ctx, r)
	default:
		return nil, errors.New("session: there is no ability " + ability)
	}
}

func (s Service) list(ctx context.Context, r request) (*value.Map, error) {
	limit := defaultLimit
	if v := r.input.At("limit"); v != nil {
		limit = int(min(max(1, integer(v)), maxLimit))
	}
	rows, err := s.Store.List(ctx, r.scope, r.owner, transcript.Query{
		Limit:     &limit,
		Offset:    int(max(0, integer(r.input.At("offset")))),
		AgentSlug: text(r.input, "agent"),
		Context:   text(r.input, "context"),
	})
	if err != nil {
		return nil, err
	}
	sessions := make([]any, 0, len(rows))
	for _, row := range rows {
		sessions = append(sessions, row.Summary())
	}
	return value.New().Set("sessions", sessions), nil
}

func (s Service) create(ctx context.Context, r request) (*value.Map, error) {
	agent := cmp.Or(text(r.input, "agent"), r.principal.Agent)
	id, err := s.Store.Create(ctx, r.scope, r.owner, transcript.Create{
		AgentSlug: agent,
		Metadata:  value.MapOrEmpty(r.input.At("metadata")),
		Context:   text(r.input, "context"),
	})
	if err != nil || id == "" {
		return nil, failed(CodeCreateFailed, "the store made no session", err)
	}
	row, err := s.Store.Get(ctx, id)
	if err != nil {
		return nil, failed(CodeCreateFailed, "the store lost the session", err)
	}
	return sessionOf(row), nil
}

func (s Service) title(ctx context.Context, r request) (*value.Map, error) {
	title := text(r.input, "title")
	row, err := s.ownSession(ctx, r)
	if err != nil {
		return nil, err
	}
	if title == "" {
		return nil, refuse(CodeInvalidTitle, "title must not be blank")
	}
	if ok, err := s.Store.SetTitle(ctx, row.ID, title); err != nil || !ok {
		return nil, failed(CodeUpdateFailed, "the store did not rename the session", err)
	}
	row, err = s.Store.Get(ctx, row.ID)
	if err != nil {
		return nil, failed(CodeUpdateFailed, "the store lost the session", err)
	}
	return sessionOf(row), nil
}

func (s Service) delete(ctx context.Context, r request) (*value.Map, error) {
	row, err := s.ownSession(ctx, r)
	if err != nil {
		return nil, err
	}
	if ok, err := s.Store.Delete(ctx, row.ID); err != nil || !ok {
		return nil, failed(CodeDeleteFailed, "the store did not delete the session", err)
	}
	return value.New().Set("deleted", true), nil
}

// ownSession reads the session a request names, if it is the principal's.
func (s Service) ownSession(ctx context.Context, r request) (transcript.Session, error) {
	id := text(r.input, "session_id")
	if id == "" {
		return transcript.Session{}, refuse(CodeInvalidID, "session_id must not be blank")
	}
	if reader, ok := s.Store.(OwnerReader); ok {
		row, err := reader.GetForOwner(ctx, r.scope, r.owner, id)
		return row, found(err)
	}
	row, err := s.Store.Get(ctx, id)
	if err != nil {
		return transcript.Session{}, found(err)
	}
	if !transcript.Owns(row.Summary(), r.scope, r.owner) && !r.principal.Administrator {
		return transcript.Session{}, refuse(CodeForbidden, "the session belongs to another owner")
	}
	return row, nil
}

// found reports a missing session as not found; other errors are the store's.
func found(err error) error {
	if errors.Is(err, transcript.ErrNotFound) {
		return failed(CodeNotFound, "there is no such session", err)
	}
	return err
}

func sessionOf(row transcript.Session) *value.Map {
	return value.New().Set("session", row.Canonical())
}

// Interactive reports whether a person waits for what happens in a context; in
// all others it is automation.
func Interactive(context string) bool {
	return context == "chat" || context == "interactive" || context == "rest"
}

func text(m *value.Map, key string) string { return value.Trim(value.Text(m.At(key))) }

// integer reads a number, or a string that is one, cut towards zero.
func integer(v any) int64 {
	switch v := v.(type) {
	case value.Number:
		return value.Truncate(v.Float64())
	case string:
		i, _, _ := value.Numeric(v)
		return i
	default:
		return 0
	}
}
