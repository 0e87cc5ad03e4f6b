package taskstore

import (
	"context"
	"errors"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Each task has a log, in the partition of its channel or, without one, of its owner.
// Callers look tasks up by id alone, so the id is claimed first, in a partition of
// its own whose only log says where the task is. The first versions stored the claim
// in the task's own log.

// unusedClaim is how long a task's id stays claimed if no task follows.
const unusedClaim = time.Hour

// ErrThere reports that another caller has stored the task first.
var ErrThere = errors.New("the task has been stored meanwhile")

// place returns the place of a task that exists or is about to be stored; ok is
// false if its id is free.
func (s *Store) place(ctx context.Context, id string) (p schema.TaskPlace, ok bool, err error) {
	log := s.Tenant.TaskPlace(id)
	for {
		state, err := s.Journal.Claim(ctx, s.Journal.Shard(log.Of()), schema.TaskClaim(id))
		if err != nil {
			return p, false, ledger.Unavailable(err)
		}
		if state.Pending != nil {
			if err := state.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
				return p, false, ledger.Unavailable(err)
			}
			continue
		}
		holder := state.Durable
		if holder == nil {
			return p, false, nil
		}
		if holder.Log.Family == schema.FamilyTask {
			return schema.TaskPlace{Log: holder.Log}, true, nil
		}
		page, err := s.Journal.Read(ctx, holder.Log, journal.ReadOptions{From: holder.Seq, To: holder.Seq})
		if err != nil {
			return p, false, ledger.Unavailable(err)
		}
		if len(page.Entries) == 0 {
			continue // dropped since
		}
		if p, err = schema.DecodeTaskPlace(s.Tenant, page.Entries[0]); err != nil {
			return p, false, fault.Wrap(fault.Internal, err, "where task '%s' is cannot be read: %v", id, err)
		}
		return p, true, nil
	}
}

// Find returns the log of a task; ok is false if the task was never observed.
func (s *Store) Find(ctx context.Context, id string) (log journal.LogName, ok bool, err error) {
	p, ok, err := s.place(ctx, id)
	if err != nil || !ok {
		return log, false, err
	}
	there, err := s.there(ctx, p.Log)
	return p.Log, there, err
}

// there reports whether a task's log has a record. It waits for one that is being
// written.
func (s *Store) there(ctx context.Context, log journal.LogName) (bool, error) {
	for {
		heads, err := s.Journal.Head(ctx, log)
		if err != nil {
			return false, ledger.Unavailable(err)
		}
		if heads.Durable.Exists() || heads.Pending == nil {
			return heads.Durable.Exists(), nil
		}
		if err := heads.Pending.Wait(ctx); err != nil && ctx.Err() != nil {
			return false, ledger.Unavailable(err)
		}
	}
}

// Claim claims a task's id for a log, in which the task is stored next. An id that
// was claimed without a task is free after an hour, or when its channel is deleted.
func (s *Store) Claim(ctx context.Context, id string, log journal.LogName, channelID string) error {
	p, claimed, err := s.place(ctx, id)
	if err != nil {
		return err
	}
	now := s.Now().UTC()
	if claimed {
		if p.Log == log {
			return nil
		}
		if there, err := s.there(ctx, p.Log); err != nil || there {
			return errors.Join(err, ErrThere)
		}
		if free, err := s.unused(ctx, &p, now); err != nil {
			return err
		} else if !free {
			return fault.New(fault.Unavailable, "task id '%s' is being used for another place; try again, or choose another id", id)
		}
	}
	record, err := schema.EncodeTaskPlace(id, schema.TaskPlace{Log: log, Channel: channelID, At: now}, claimed)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "task '%s' cannot be claimed: %v", id, err)
	}
	ticket, err := s.Journal.Append(ctx, journal.Batch{Appends: []journal.Append{
		{Log: s.Tenant.TaskPlace(id), Expect: journal.Exactly(p.Seq), Records: []journal.Record{record}},
	}})
	if conflict, ok := errors.AsType[*journal.ConflictError](err); ok {
		_ = conflict.LostTo.Wait(ctx)
		return ErrThere // the caller looks the task up again, whatever the result
	}
	if err != nil {
		return ledger.Unavailable(err)
	}
	return ledger.Unavailable(ticket.Wait(ctx))
}

// unused reports whether a claimed id without a task may be claimed again.
func (s *Store) unused(ctx context.Context, p *schema.TaskPlace, now time.Time) (bool, error) {
	if now.Sub(p.At) > unusedClaim {
		return true, nil
	}
	if p.Channel == "" {
		return false, nil
	}
	return s.ChannelGone(ctx, p.Channel)
}
