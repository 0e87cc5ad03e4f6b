package agent

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/task"
)

// Delegation describes a delegation to the hub, as the payload of its task. The
// agent that works for the task spends from the owner's budget.
type Delegation struct {
	To     string `json:"delegated_to"`    // the agent's id
	Within string `json:"within,omitzero"` // the task that the owner itself works for
}

// Delegation returns the task that the turn works for, if another agent
// delegated it and named the task; else empty.
func (t *Turn) Delegation() string {
	if t.Depth() == 0 {
		return ""
	}
	return t.Trigger.Task
}

// trackDelegation reports a delegation to the hub as a task, if the options say
// so. end ends the task; with a reason it failed.
func (t *Turn) trackDelegation(ctx context.Context, to *Peer, in delegation) (id string, end func(failed string), err error) {
	if !t.Agent.opts.TrackDelegations {
		return "", func(string) {}, nil
	}
	payload, err := json.Marshal(Delegation{To: to.ID, Within: t.Delegation()})
	if err != nil {
		return "", nil, err
	}
	now := time.Now().UTC()
	link := t.Agent.link
	id = envelope.NewID()
	err = link.ObserveTask(ctx, &task.Task{
		ID: id, Owner: t.Agent.Self().ID, State: task.Running, Channel: t.channelID(),
		Spec:      task.Spec{Title: "Delegated to " + to.Name, Payload: payload, Capability: in.Capability},
		CreatedAt: now, StartedAt: now, ExpiresAt: now.Add(duration(in.timeout())),
	})
	return id, func(failed string) {
		u := task.Update{ID: id, State: task.Completed}
		if failed != "" {
			u.State, u.Error = task.Failed, failed
		}
		if err := link.UpdateTask(ctx, u); err != nil {
			t.Agent.opts.Log.WarnContext(ctx, "the end of a delegation is not recorded", "task", id, "error", err)
		}
	}, err
}
