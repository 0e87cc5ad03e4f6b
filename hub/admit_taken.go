package hub

import (
	"errors"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// notAccepted is a post that was refused for what it was compared with: the
// newest batch of its channel, and the batch that holds a claim it wanted. It is
// answered when both are durable, and posted again if one of them failed.
func notAccepted(err error, basis *Pending, again func() *Pending) *Pending {
	lost, err := taken(err)
	return &Pending{err: unavailable(err), done: closedChan, basis: basis, lost: lost, retry: again}
}

// taken turns a lost claim into a conflict that names the holder, and returns the
// batch that it was lost to.
func taken(err error) (*journal.Ticket, error) {
	var conflict *journal.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != journal.ClaimConflict {
		return nil, err
	}
	holder, _ := schema.ChannelOf(conflict.Claim.Log)
	refusal := fault.Wrap(fault.Conflict, err, "taken by channel '%s': %v", holder, err).Because(fault.Taken)
	refusal.Details = map[string]string{fault.DetailChannel: holder}
	return conflict.LostTo, refusal
}
