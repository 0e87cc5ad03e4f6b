package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/result"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// StatusContention is the status of a turn that did not get its session's
// lock: nothing was run.
const StatusContention = "transcript_lock_contention"

// Turn is the input of a runner.
type Turn struct {
	Agent     string
	SessionID string
	RunID     string
	Messages  []message.Envelope
	Input     *value.Map
	Principal transcript.Principal
}

// Runner runs the turns of one request and returns a conversation result: a
// map with messages as plain rows, envelopes or both.
type Runner func(ctx context.Context, turn Turn) (any, error)

// Claims hold run ids, so that each is executed once. Errors other than an
// *Error come from the storage of the claims.
type Claims interface {
	// Claim reserves a run id. An id that was claimed already is refused: as
	// started, or, if the claim is of another session or owner, as forbidden.
	Claim(ctx context.Context, id, sessionID string, owner transcript.Owner) error
	// Bind sets the session that a claimed run belongs to.
	Bind(ctx context.Context, id, sessionID string) error
	// Finish records how a run ended. Its claim stays.
	Finish(ctx context.Context, id, status string) error
	// Abandon takes back a claim under which nothing was run.
	Abandon(ctx context.Context, id string) error
}

// Settler is implemented by claims that store the end of a run together with
// what it wrote, so that a crash leaves both or neither. Settle then replaces
// the store's Update and Finish.
type Settler interface {
	Settle(ctx context.Context, id, sessionID string, update transcript.Update, status string, output *value.Map) error
}

// Dispatcher runs chats with the first of its runners.
type Dispatcher struct {
	Runners []Runner
	Runs    Claims           // *Runs keeps them in memory
	Store   transcript.Store // nil keeps nothing, and callers bring history
	// Failed is called with the code of every refusal.
	Failed func(ctx context.Context, code string, input *value.Map)
}

// Chat runs one request and returns what its client is shown. Every error is
// an *Error; a runner that fails is a result.
func (d Dispatcher) Chat(ctx context.Context, principal transcript.Principal, rawInput any) (*value.Map, error) {
	input := value.MapOrEmpty(value.Of(rawInput))
	output, err := d.chat(ctx, principal, input)
	var refusal *Error
	if d.Failed != nil && errors.As(err, &refusal) {
		d.Failed(ctx, refusal.Code, input)
	}
	return output, err
}

func (d Dispatcher) chat(ctx context.Context, principal transcript.Principal, input *value.Map) (*value.Map, error) {
	if len(d.Runners) == 0 {
		return nil, refuse(CodeNoHandler, "no chat runtime is registered; register a runner")
	}
	t, err := newTurn(principal, input)
	if err != nil {
		return nil, err
	}
	if err := d.Runs.Claim(ctx, t.RunID, t.SessionID, t.owner); err != nil {
		return nil, claimed(err)
	}
	output, err := d.run(ctx, t)
	// The caller gets the refusal, whatever happens to the claim.
	switch kept := context.WithoutCancel(ctx); {
	case err != nil && t.begun:
		_ = d.Runs.Finish(kept, t.RunID, result.StatusFailed)
	case err != nil:
		_ = d.Runs.Abandon(kept, t.RunID)
	}
	return output, err
}

// turn is a request that was checked.
type turn struct {
	Turn
	owner  transcript.Owner
	owned  bool
	scope  transcript.Scope
	added  []message.Envelope
	stored transcript.Session // as it was when its lock was taken
	begun  bool               // the runner was called
}

func newTurn(principal transcript.Principal, input *value.Map) (*turn, error) {
	t := &turn{Turn: Turn{
		Agent:     value.Trim(value.Text(input.At("agent"))),
		SessionID: value.Trim(value.Text(input.At("session_id"))),
		RunID:     value.Trim(value.Text(input.At("run_id"))),
		Input:     input,
		Principal: principal,
	}}
	if t.Agent == "" {
		return nil, refuse(CodeAgentRequired, "agent must name an agent")
	}
	t.owner, t.owned = principal.Owner()
	if claimed := input.At("session_owner"); claimed != nil {
		m := value.MapOrEmpty(claimed)
		asserted := transcript.Owner{Type: value.Trim(value.Text(m.At("type"))), Key: value.Trim(value.Text(m.At("key")))}
		if asserted.Type == transcript.OwnerUser {
			asserted.Key = strings.TrimPrefix(asserted.Key, "user:")
		}
		if asserted.Type == "" || asserted.Key == "" {
			return nil, refuse(CodeInvalidOwner, "session_owner needs a type and a key")
		}
		if asserted != t.owner {
			return nil, refuse(CodeRunForbidden, "session_owner is not the principal who asks")
		}
	}
	t.scope = transcript.Scope{Type: "site", ID: "default"}
	var err error
	if workspace := input.At("workspace"); workspace != nil {
		if t.scope, err = transcript.ScopeFrom(workspace); err != nil {
			return nil, wrap(CodeInvalidWorkspace, err)
		}
	}
	if t.added, err = turnMessages(input); err != nil {
		return nil, err
	}
	if t.RunID == "" {
		t.RunID = newID("run_")
	}
	return t, nil
}

func (d Dispatcher) run(ctx context.Context, t *turn) (*value.Map, error) {
	before, err := d.conversation(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := d.Runs.Bind(ctx, t.RunID, t.SessionID); err != nil {
		return nil, claimed(err)
	}
	if d.Store != nil && t.owned {
		token, err := d.Store.Acquire(ctx, t.SessionID, 0)
		if err != nil {
			return nil, wrap(CodeStoreFailed, err)
		}
		if token == "" {
			if err := d.Runs.Abandon(ctx, t.RunID); err != nil {
				return nil, claimed(err)
			}
			return contention(t, before)
		}
		// A lock that cannot be released expires.
		defer func() { _, _ = d.Store.Release(context.WithoutCancel(ctx), t.SessionID, token) }()
		// Another run may have written before the lock was taken.
		if t.stored, err = d.Store.Get(ctx, t.SessionID); err != nil {
			return nil, wrap(CodeStoreFailed, err)
		}
		before = t.stored.Envelopes()
	}
	if t.Messages, err = message.NormalizeAll(value.List(append(before, t.added...))); err != nil {
		return nil, wrap(CodeInvalidMessages, err)
	}
	t.begun = true
	normalized, err := d.execute(ctx, t)
	if err != nil {
		return nil, err
	}
	messages, err := result.Messages(normalized)
	if err != nil {
		return nil, wrap(CodeInvalidResult, err)
	}
	shown := output(t, normalized, messages)
	if err := d.store(ctx, t, normalized, messages, shown); err != nil {
		return nil, err
	}
	return shown, nil
}

// conversation finds what was said before: in the store, where a session that
// does not exist is made, or in the caller's history.
func (d Dispatcher) conversation(ctx context.Context, t *turn) ([]message.Envelope, error) {
	if d.Store == nil {
		if t.SessionID == "" {
			t.SessionID = newID("session_")
		}
		return history(t.Input.At("history")), nil
	}
	if t.SessionID != "" {
		session, err := d.Store.Get(ctx, t.SessionID)
		if err == nil {
			if !t.owned || !transcript.Owns(session.Summary(), t.scope, t.owner) {
				return nil, refuse(CodeSessionForbidden, "the session belongs to another owner")
			}
			return session.Envelopes(), nil
		}
		if !errors.Is(err, transcript.ErrNotFound) {
			return nil, wrap(CodeStoreFailed, err)
		}
	}
	if !t.owned {
		t.SessionID = newID("session_")
		return nil, nil
	}
	id, err := d.Store.Create(ctx, t.scope, t.owner, transcript.Create{AgentSlug: t.Agent})
	if err != nil {
		return nil, wrap(CodeStoreFailed, err)
	}
	t.SessionID = id
	return nil, nil
}

// execute runs the turn. A runner's failure is a failed result with the
// transcript as it was.
func (d Dispatcher) execute(ctx context.Context, t *turn) (*value.Map, error) {
	raw, err := d.Runners[0](ctx, t.Turn)
	if err != nil {
		text := cmp.Or(err.Error(), "The agent run failed.")
		raw = value.New().
			Set("messages", value.List(t.Messages)).
			Set("status", result.StatusFailed).
			Set("completed", false).
			Set("failure", value.New().
				Set("type", "runner_error").
				Set("message", text))
	}
	normalized, err := result.Normalize(raw)
	if err != nil {
		return nil, wrap(CodeInvalidResult, err)
	}
	return normalized, nil
}

// store stores the transcript, as envelopes, and the end of the run. Other keys
// of the session's metadata stay.
func (d Dispatcher) store(ctx context.Context, t *turn, normalized *value.Map, messages []message.Envelope, shown *value.Map) error {
	ended := result.ControlStatus(normalized)
	if d.Store == nil || !t.owned {
		return claimed(d.Runs.Finish(ctx, t.RunID, ended))
	}
	status := "completed"
	if !completed(normalized) {
		status = "processing"
	}
	turns, _ := value.Integer(normalized.At("turn_count"))
	update := transcript.Update{
		Messages: t.rows(messages),
		Metadata: t.stored.Metadata.Clone().
			Set("status", status).
			Set("message_count", value.Int(len(messages))).
			Set("current_turn", value.Int(turns)),
	}
	if s, ok := d.Runs.(Settler); ok {
		return claimed(s.Settle(ctx, t.RunID, t.SessionID, update, ended, shown))
	}
	if _, err := d.Store.Update(ctx, t.SessionID, update); err != nil {
		return wrap(CodeStoreFailed, err)
	}
	return claimed(d.Runs.Finish(ctx, t.RunID, ended))
}

// claimed gives an error of claims a code, unless it has one.
func claimed(err error) error {
	var refusal *Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return wrap(CodeStoreFailed, err)
}

// rows returns the messages and the stored rows that could not be read. Each
// such row follows the same messages as before, as far as these are still there.
func (t *turn) rows(messages []message.Envelope) []any {
	list := make([]any, 0, len(messages))
	begins := true
	for _, row := range t.stored.Messages {
		if row.Err != nil {
			list = append(list, row)
			continue
		}
		begins = begins && len(messages) > 0 && value.Equal(row.Canonical(), messages[0].Canonical())
		if begins {
			list, messages = append(list, messages[0].Canonical()), messages[1:]
		}
	}
	return append(list, value.List(messages)...)
}
