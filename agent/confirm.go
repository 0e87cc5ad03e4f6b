package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/request"
)

// Requests is how an agent asks people: the hub in the same process, or a client
// of its /v1.
type Requests interface {
	// Ask stores a request, or finds the one that was asked with the same key.
	Ask(ctx context.Context, q request.Asking) (*request.Request, error)
	// AwaitRequest returns a request once it is no longer open.
	AwaitRequest(ctx context.Context, id string) (*request.Request, error)
}

// Confirmation says how a tool call is confirmed.
type Confirmation struct {
	For  string        // who is asked, by id or, over /v1, by name; empty: any person of the channel
	Kind string        // empty: request.Approval
	Wait time.Duration // how long until the call is refused; 0: until the channel ends
	// AgentsMayAnswer lets another agent answer.
	AgentsMayAnswer bool
}

// ConfirmBy returns an Options.Confirm that asks for an approval in the channel of
// the turn and waits for the answer. The request is the hub's and is found again by
// the call's key, so that it survives a restart of the hub and of the agent: the
// round that is tried again waits for the same answer.
func ConfirmBy(requests Requests, c Confirmation) func(ctx context.Context, call *Call) error {
	return func(ctx context.Context, call *Call) error {
		q, err := c.ask(call)
		if err != nil {
			return err
		}
		asked, err := untilReached(ctx, func() (*request.Request, error) { return requests.Ask(ctx, q) })
		if err != nil {
			return err
		}
		ended, err := untilReached(ctx, func() (*request.Request, error) { return requests.AwaitRequest(ctx, asked.ID) })
		if err != nil {
			return err
		}
		return verdict(ended)
	}
}

func (c Confirmation) ask(call *Call) (request.Asking, error) {
	if call.Turn == nil || call.Turn.Channel == nil {
		return request.Asking{}, fault.New(fault.AccessDenied, "'%s' is called outside a channel, where nobody can be asked", call.Name)
	}
	arguments := jsontext.Value(call.Arguments)
	if len(arguments) > 0 && !arguments.IsValid() {
		return request.Asking{}, fault.New(fault.Invalid, "the arguments of '%s' are not JSON", call.Name)
	}
	// Different arguments are a different question: an answer holds only for
	// what was shown.
	sum := sha256.Sum256([]byte(call.Arguments))
	q := request.Asking{Key: "confirm:" + call.Key + ":" + hex.EncodeToString(sum[:8]), Request: request.Request{
		Kind: cmp.Or(c.Kind, request.Approval), Channel: call.Turn.Channel.ID, AskedBy: call.Turn.Agent.link.Self().ID, For: c.For,
		AgentsMayAnswer: c.AgentsMayAnswer, Title: fmt.Sprintf("Run %.200s?", call.Name),
		Action: &request.Action{Name: call.Name, Arguments: arguments},
		Choices: []request.Choice{
			{ID: "approve", Label: "Approve", Consequence: "The tool runs with these arguments."},
			{ID: "deny", Label: "Deny", Consequence: "The tool does not run, and the model is told so."},
		},
	}}
	if e := call.Turn.Trigger; e != nil {
		q.Trigger = &request.Trigger{Envelope: e.ID, Seq: e.Seq}
	}
	if c.Wait > 0 {
		q.DueAt, q.IfNobodyAnswers = time.Now().Add(c.Wait), "deny"
	}
	return q, nil
}

// verdict returns nil if a request was granted.
func verdict(r *request.Request) error {
	if request.Approves(r.Outcome()) {
		return nil
	}
	switch {
	case r.Answer != nil && cmp.Or(r.Answer.Note, r.Answer.Text) != "":
		return fault.New(fault.AccessDenied, "denied: %s", cmp.Or(r.Answer.Note, r.Answer.Text))
	case r.Answer != nil:
		return fault.New(fault.AccessDenied, "denied")
	case r.State == request.Expired:
		return fault.New(fault.AccessDenied, "nobody answered until %s", r.DueAt.Format(time.RFC3339))
	}
	return fault.New(fault.AccessDenied, "the request was cancelled: %s", r.Reason)
}

// untilReached retries ask while the hub cannot be reached.
func untilReached(ctx context.Context, ask func() (*request.Request, error)) (*request.Request, error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		r, err := ask()
		var refusal *fault.Error
		if err == nil || errors.As(err, &refusal) && !fault.Retryable(err) {
			return r, err
		}
		if loop.Pause(ctx, pause) != nil {
			return nil, err
		}
	}
}
