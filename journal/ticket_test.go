package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
)

func TestTicketsOfOneFateEndTogether(t *testing.T) {
	t.Parallel()
	cause := errors.New("the disk is gone")
	for _, c := range []struct {
		outcome journal.Outcome
		text    string
	}{
		{journal.Durable, "durable"},
		{journal.Failed, "failed"},
		{journal.Unknown, "unknown"},
		{journal.Aborted, "aborted"},
	} {
		fate := journal.NewFate()
		at := journal.ShardPosition{Epoch: 3, Offset: 9}
		tickets := []*journal.Ticket{
			fate.Ticket(0, at, 2, []journal.Appended{{Incarnation: 9, First: 1, Last: 4}}),
			fate.Ticket(0, at, 2, nil),
		}
		for _, ticket := range tickets {
			if ticket.Outcome() != journal.Pending || ticket.Err() != nil {
				t.Errorf("a new ticket is %v, %v", ticket.Outcome(), ticket.Err())
			}
		}
		fate.End(journal.Pending, nil) // is no end
		fate.End(c.outcome, cause)
		fate.End(journal.Durable, nil) // only the first counts
		for _, ticket := range tickets {
			<-ticket.Done()
			equalText(t, ticket.Outcome().String(), c.text)
			err := ticket.Wait(context.Background())
			if c.outcome == journal.Durable {
				if err != nil || ticket.Err() != nil {
					t.Errorf("a durable ticket has the error %v", err)
				}
				continue
			}
			var why *journal.OutcomeError
			if !errors.As(err, &why) || !errors.Is(err, cause) || why.Outcome != c.outcome || why.Offset != 9 {
				t.Errorf("a ticket that ended %v waits with %v", c.outcome, err)
			}
		}
		if diff := cmp.Diff(journal.Position{Epoch: 3, Incarnation: 9, Seq: 4}, tickets[0].Position(0)); diff != "" {
			t.Error(diff)
		}
	}
	if journal.Settled(0, journal.ShardPosition{}, 1).Outcome() != journal.Durable {
		t.Error("a settled ticket is not durable")
	}
}

func TestWhatMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	again := []error{
		journal.ErrNoSpace, journal.ErrFailed, journal.ErrClosed,
		&journal.OutcomeError{Outcome: journal.Aborted}, &journal.ConflictError{Kind: journal.ClaimConflict},
	}
	never := []error{journal.ErrInvalid, &journal.BoundsError{}, journal.ErrDamaged, &journal.DamageError{}, &journal.GapError{}, nil}
	for _, err := range again {
		if !journal.Retryable(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%v may be tried again", err)
		}
	}
	for _, err := range never {
		if journal.Retryable(err) {
			t.Errorf("%v may not be tried again", err)
		}
	}
}

func TestErrorsSayWhatWasRefused(t *testing.T) {
	t.Parallel()
	log := journal.LogName{Tenant: "acme", Partition: "home", Family: "log", ID: "a"}
	for want, err := range map[string]error{
		"batch: records is 1025, from 1 to 1024 is accepted": &journal.BoundsError{What: "batch: records", Got: 1025, Min: 1, Max: 1024},
		"log acme/home/log/a is at sequence 4, the batch expected 2": &journal.ConflictError{
			Kind: journal.SequenceConflict, Log: log, Actual: 4, Expected: 2,
		},
		`claim "x" is held by record 3 of log acme/home/log/a`: &journal.ConflictError{
			Kind: journal.ClaimConflict, Claim: journal.Claimed{Name: "x", Log: log, Seq: 3},
		},
		`value "v" of acme/home is at version 7, the batch expected 0`: &journal.ConflictError{
			Kind: journal.ValueConflict, Value: journal.ValueKey{Partition: log.Of(), Name: "v"}, Actual: 7,
		},
		"batch was computed in term 1, the shard is in term 2": &journal.ConflictError{Kind: journal.TermConflict, Expected: 1, Actual: 2},
		"position 1.2.3 of log acme/home/log/a does not exist: the epoch has changed; the log ends at 2.2.1": &journal.GapError{
			Reason: journal.EpochChanged, Log: log,
			Want: journal.Position{Epoch: 1, Incarnation: 2, Seq: 3}, Head: journal.Position{Epoch: 2, Incarnation: 2, Seq: 1},
		},
		"position 1.9 of shard 0 does not exist: it is beyond the end; the shard ends at 1.4": &journal.GapError{
			Reason: journal.NeverWritten, WantShard: journal.ShardPosition{Epoch: 1, Offset: 9}, HeadShard: journal.ShardPosition{Epoch: 1, Offset: 4},
		},
		"batch at offset 5 ended unknown: journal is closed": &journal.OutcomeError{Outcome: journal.Unknown, Offset: 5, Cause: journal.ErrClosed},
	} {
		equalText(t, err.Error(), want)
	}
}
