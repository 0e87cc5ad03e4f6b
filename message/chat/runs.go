package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// Limits of Runs by default.
const (
	DefaultRunLimit   = 100000
	DefaultQueueLimit = 100
)

// StatusQueued is the status of a message that waits for a run to end.
const StatusQueued = "queued"

// StatusRunning is the status of a run that was claimed and has not ended.
const StatusRunning = "running"

// Run is one claimed execution.
type Run struct {
	ID        string
	SessionID string // "" until the session is known
	Owner     transcript.Owner
	Status    string
	StartedAt string
	UpdatedAt string
	named     string // the session that its claim named; a new one may replace it
}

// in reports whether a request that names a session, or none, can be the run's.
func (r *Run) in(sessionID string) bool {
	return sessionID == "" || r.SessionID == "" || sessionID == r.SessionID || sessionID == r.named
}

// Runs holds the claims, so that a run id is executed once, and the messages
// that wait for a session's run to end. Past its limit the oldest ended runs
// are forgotten.
type Runs struct {
	now   func() time.Time
	limit int

	mu     sync.Mutex
	runs   map[string]*Run
	order  []*Run
	queues map[string][]*value.Map
	queued int
}

var _ Claims = (*Runs)(nil)

// NewRuns returns an empty set of claims for at most limit runs, or the
// default.
func NewRuns(now func() time.Time, limit int) *Runs {
	if limit < 1 {
		limit = DefaultRunLimit
	}
	return &Runs{now: now, limit: limit, runs: map[string]*Run{}, queues: map[string][]*value.Map{}}
}

// Claim reserves a run id. An id that was claimed already is refused: as
// started, or, if the claim is of another session or owner, as forbidden.
func (r *Runs) Claim(_ context.Context, id, sessionID string, owner transcript.Owner) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run, ok := r.runs[id]; ok {
		if run.Owner != owner || !run.in(sessionID) {
			return refuse(CodeRunForbidden, "the run id belongs to another session or owner")
		}
		return refuse(CodeRunStarted, "the run id was executed already; use a new one")
	}
	if !r.makeRoom() {
		return refuse(CodeTooManyRuns, "too many runs are under way; try again later")
	}
	now := message.FormatTime(r.now())
	run := &Run{ID: id, SessionID: sessionID, Owner: owner, Status: StatusRunning, StartedAt: now, UpdatedAt: now, named: sessionID}
	r.runs[id] = run
	r.order = append(r.order, run)
	return nil
}

// makeRoom forgets the oldest run that has ended if the set is full.
func (r *Runs) makeRoom() bool {
	if len(r.order) < r.limit {
		return true
	}
	at := slices.IndexFunc(r.order, func(run *Run) bool { return run.Status != StatusRunning })
	if at < 0 {
		return false
	}
	delete(r.runs, r.order[at].ID)
	r.order = slices.Delete(r.order, at, at+1)
	return true
}

// Bind sets the session that a claimed run belongs to.
func (r *Runs) Bind(_ context.Context, id, sessionID string) error {
	r.update(id, func(run *Run) { run.SessionID = sessionID })
	return nil
}

// Finish records how a run ended. Its claim stays.
func (r *Runs) Finish(_ context.Context, id, status string) error {
	r.update(id, func(run *Run) { run.Status = status })
	return nil
}

// Abandon takes back a claim under which nothing was run.
func (r *Runs) Abandon(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, id)
	r.order = slices.DeleteFunc(r.order, func(run *Run) bool { return run.ID == id })
	return nil
}

// Get returns a run.
func (r *Runs) Get(id string) (Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, ok := r.runs[id]
	if !ok {
		return Run{}, false
	}
	return *run, true
}

func (r *Runs) update(id string, apply func(*Run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run, ok := r.runs[id]; ok {
		apply(run)
		run.UpdatedAt = message.FormatTime(r.now())
	}
}

// Enqueue keeps a follow-up for a session until its run has ended, and returns
// the answer for the caller: the message's id and its position, counted from 1.
func (r *Runs) Enqueue(sessionID, runID string, rawInput any) (*value.Map, error) {
	input := value.MapOrEmpty(value.Of(rawInput))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queues[sessionID]) >= DefaultQueueLimit || r.queued >= r.limit {
		return nil, refuse(CodeTooManyQueued, "too many messages wait; try again when the run has ended")
	}
	attachments, _ := value.Values(input.At("attachments"))
	if attachments == nil {
		attachments = []any{}
	}
	item := value.New().
		Set("queued_message_id", newID("queued_")).
		Set("session_id", sessionID).
		Set("run_id", runID).
		Set("agent", value.Text(input.At("agent"))).
		Set("message", value.Text(input.At("message"))).
		Set("attachments", attachments).
		Set("client_context", value.MapOrEmpty(input.At("client_context"))).
		Set("created_at", message.FormatTime(r.now()))
	r.queues[sessionID] = append(r.queues[sessionID], item)
	r.queued++
	return value.New().
		Set("run_id", runID).
		Set("session_id", sessionID).
		Set("status", StatusQueued).
		Set("queued_message_id", item.At("queued_message_id")).
		Set("position", value.Int(len(r.queues[sessionID]))), nil
}

// Dequeue takes the oldest follow-up of a session, or nil.
func (r *Runs) Dequeue(sessionID string) *value.Map {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queues[sessionID]
	if len(queue) == 0 {
		return nil
	}
	r.queued--
	if len(queue) == 1 {
		delete(r.queues, sessionID)
	} else {
		r.queues[sessionID] = queue[1:]
	}
	return queue[0]
}

func newID(prefix string) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return prefix + hex.EncodeToString(id[:])
}
