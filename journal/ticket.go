package journal

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Outcome is how a ticket ended.
type Outcome uint32

// A ticket is pending until it ends in exactly one of the other ways.
const (
	Pending Outcome = iota
	Durable         // synced: it survives a crash, and readers see it
	Failed          // it will never be there
	Unknown         // handed to the disk or the network: it may be there after the next open
	Aborted         // it stood behind one that failed or is unknown, and will never be there
)

// String names the outcome.
func (o Outcome) String() string {
	switch o {
	case Pending:
		return "pending"
	case Durable:
		return "durable"
	case Failed:
		return "failed"
	case Unknown:
		return "unknown"
	case Aborted:
		return "aborted"
	}
	return fmt.Sprintf("outcome(%d)", uint32(o))
}

// Appended tells what became of one Append of a batch.
type Appended struct {
	Incarnation uint64 // of the log; equal to the ticket's offset when the batch created it
	First, Last uint64 // sequences of the records
}

// Ticket is an ordered batch on its way to the disk. What it says about
// sequences and offset is final; whether the batch is there is told by its end.
type Ticket struct {
	fate     *Fate
	shard    int
	epoch    uint64
	term     uint64
	offset   uint64
	appended []Appended
	one      [1]Appended // room for what most batches need
}

// Shard the batch was ordered in.
func (t *Ticket) Shard() int { return t.shard }

// Epoch of the shard.
func (t *Ticket) Epoch() uint64 { return t.epoch }

// Term of the shard when the batch was ordered.
func (t *Ticket) Term() uint64 { return t.term }

// Offset of the batch in its shard; 0 for a call that had nothing to order.
func (t *Ticket) Offset() uint64 { return t.offset }

// Appended tells the sequences given out, one element for each Append of the
// batch. The slice is shared: do not change it.
func (t *Ticket) Appended() []Appended { return t.appended }

// Position of the last record of the i-th Append of the batch.
func (t *Ticket) Position(i int) Position {
	return Position{Epoch: t.epoch, Incarnation: t.appended[i].Incarnation, Seq: t.appended[i].Last}
}

// Done is closed when the ticket has ended.
func (t *Ticket) Done() <-chan struct{} { return t.fate.done }

// Outcome is Pending until Done is closed.
func (t *Ticket) Outcome() Outcome { return t.fate.Outcome() }

// Err is nil while the ticket is pending and when it ended durable; otherwise
// it is an *OutcomeError.
func (t *Ticket) Err() error {
	o := t.fate.Outcome()
	if o == Pending || o == Durable {
		return nil
	}
	return &OutcomeError{Outcome: o, Offset: t.offset, Cause: t.fate.cause}
}

// Wait waits for the end. It returns nil when the batch is durable, an
// *OutcomeError when it ended otherwise, and the context's error when ctx ended
// first, which says nothing about the batch.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.fate.done:
		return t.Err()
	default:
	}
	select {
	case <-t.fate.done:
		return t.Err()
	case <-ctx.Done():
		return fmt.Errorf("waiting for offset %d to be durable: %w", t.offset, context.Cause(ctx))
	}
}

// Fate is the one end that tickets of a group share. It is the engine's side
// of a ticket.
type Fate struct {
	done    chan struct{}
	outcome atomic.Uint32
	cause   error // written before outcome
}

// NewFate returns a fate that is pending.
func NewFate() *Fate { return &Fate{done: make(chan struct{})} }

var settled = func() *Fate {
	f := NewFate()
	f.End(Durable, nil)
	return f
}()

// Ticket issues a ticket that ends with the fate.
func (f *Fate) Ticket(shard int, at ShardPosition, term uint64, appended []Appended) *Ticket {
	t := &Ticket{fate: f, shard: shard, epoch: at.Epoch, term: term, offset: at.Offset}
	if len(appended) > 0 {
		t.appended = append(t.one[:0], appended...)
	}
	return t
}

// Settled returns a ticket that has ended durable: for conflicts with what was
// durable already, and for calls that had nothing to order.
func Settled(shard int, at ShardPosition, term uint64) *Ticket {
	return settled.Ticket(shard, at, term, nil)
}

// End ends every ticket of the fate. Only the first call counts; calls must
// not race.
func (f *Fate) End(outcome Outcome, cause error) {
	if outcome == Pending || f.Outcome() != Pending {
		return
	}
	f.cause = cause
	f.outcome.Store(uint32(outcome))
	close(f.done)
}

// Outcome of the fate.
func (f *Fate) Outcome() Outcome { return Outcome(f.outcome.Load()) }

// Done is closed when the fate has ended.
func (f *Fate) Done() <-chan struct{} { return f.done }
