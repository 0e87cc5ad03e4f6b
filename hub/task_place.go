package hub

import (
	"context"
	"errors"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// A task has a log of its own, beside the channel that it belongs to, or its
// owner's. Its id is claimed before in a partition of its own, whose one log says
// where the task is: wherever a task is looked for, only its id is known. Data of
// the first versions have the claim in the task's own log.

// unusedClaim is how long a task's id stays claimed if no task follows.
const unusedClaim = time.Hour

// errTaskThere says that somebody else has stored a task first.
var errTaskThere = errors.New("the task has been stored meanwhile")

// taskPlace returns where a task is or is about to be; ok is false if its id is
// free.
func (h *Hub) taskPlace(ctx context.Context, id string) (p schema.TaskPlace, ok bool, err error) {
	log := h.tenant.TaskPlace(id)
	for {
		state, err := h.journal.Claim(ctx, h.journal.Shard(log.Of()), schema.TaskClaim(id))
		if err != nil {
			return p, false, unavailable(err)
		}
		if state.Pending != nil {
			if err := state.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
				return p, false, unavailable(err)
			}
			continue
		}
		held := state.Durable
		if held == nil {
			return p, false, nil
		}
		if held.Log.Family == schema.FamilyTask {
			return schema.TaskPlace{Log: held.Log}, true, nil
		}
		page, err := h.journal.Read(ctx, held.Log, journal.ReadOptions{From: held.Seq, To: held.Seq})
		if err != nil {
			return p, false, unavailable(err)
		}
		if len(page.Entries) == 0 {
			continue // dropped since
		}
		if p, err = schema.DecodeTaskPlace(h.tenant, page.Entries[0]); err != nil {
			return p, false, fault.Wrap(fault.Internal, err, "where task '%s' is cannot be read: %v", id, err)
		}
		return p, true, nil
	}
}

// findTask returns the log of a task; ok is false if nobody has observed it.
func (h *Hub) findTask(ctx context.Context, id string) (log journal.LogName, ok bool, err error) {
	p, ok, err := h.taskPlace(ctx, id)
	if err != nil || !ok {
		return log, false, err
	}
	there, err := h.taskThere(ctx, p.Log)
	return p.Log, there, err
}

// taskThere reports whether a task's log has a record, and waits for one that is on
// its way.
func (h *Hub) taskThere(ctx context.Context, log journal.LogName) (bool, error) {
	for {
		heads, err := h.journal.Head(ctx, log)
		if err != nil {
			return false, unavailable(err)
		}
		if heads.Durable.Exists() || heads.Pending == nil {
			return heads.Durable.Exists(), nil
		}
		if err := heads.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
			return false, unavailable(err)
		}
	}
}

// claimTask claims a task's id for a log, in which the task is stored next. An id
// that was claimed in vain is free after an hour, or when its channel is gone.
func (h *Hub) claimTask(ctx context.Context, id string, log journal.LogName, channelID string) error {
	p, held, err := h.taskPlace(ctx, id)
	if err != nil {
		return err
	}
	now := h.now().UTC()
	if held {
		if p.Log == log {
			return nil
		}
		if there, err := h.taskThere(ctx, p.Log); err != nil || there {
			return errors.Join(err, errTaskThere)
		}
		if free, err := h.claimIsUnused(ctx, &p, now); err != nil {
			return err
		} else if !free {
			return fault.New(fault.Unavailable, "task id '%s' is being used for another place; try again, or choose another id", id)
		}
	}
	record, err := schema.EncodeTaskPlace(id, schema.TaskPlace{Log: log, Channel: channelID, At: now}, held)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "task '%s' cannot be claimed: %v", id, err)
	}
	ticket, err := h.journal.Append(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.TaskPlace(id), Expect: journal.Exactly(p.Seq), Records: []journal.Record{record}},
	}})
	var conflict *journal.ConflictError
	if errors.As(err, &conflict) {
		_ = conflict.LostTo.Wait(ctx)
		return errTaskThere // it is looked up again, however that ended
	}
	if err != nil {
		return unavailable(err)
	}
	return unavailable(ticket.Wait(ctx))
}

// claimIsUnused reports whether a claimed id without a task may be claimed again.
func (h *Hub) claimIsUnused(ctx context.Context, p *schema.TaskPlace, now time.Time) (bool, error) {
	if now.Sub(p.At) > unusedClaim {
		return true, nil
	}
	if p.Channel == "" {
		return false, nil
	}
	_, err := h.Channel(ctx, p.Channel)
	return Deleted(err), ignoreMissing(err)
}
