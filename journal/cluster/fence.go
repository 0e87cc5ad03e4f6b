package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// This is the proof that only one process orders a shard, whatever is paused, cut
// off, delayed or sent twice.
//
// A slot of the log is written once. A process publishes in term T only after
// each slot from T to its last one was shown to hold its own message: by an
// acknowledgement, which a quorum has made durable, or by reading the slot. It
// publishes each message with the expectation of exactly that last slot.
//
// Suppose a message of term T is at slot s > T', where T' > T is another fence.
// Then all slots from T to s-1 hold messages of term T, slot T' among them: a
// contradiction. So nothing of an old term follows a new fence. The proof uses no
// clock.
//
// A time-out, a lost connection, no responders and a refusal do not decide whether
// a message was stored. A leader without quorum refuses a message because of its own
// proposal, which may yet become durable. Only reading the slot decides.

// term is a period in which this process orders a shard. It is used by the
// committer of the shard's copy.
type term struct {
	log    port.Log
	shard  int
	number uint64      // slot of the fence
	last   uint64      // the last slot that this process wrote in this term
	chain  frame.Chain // of the message in it
}

// errOver ends a term: the next slot holds a message of another process.
var errOver = errors.New("another process has written to the log: the term is over")

// acquire publishes a fence directly after slot last, whose chain is given. Only an
// acknowledgement begins a term; after any error the caller starts again from the
// slot that is then the last.
func acquire(ctx context.Context, log port.Log, shard int, last uint64, chain frame.Chain, f frame.FenceBody) (*term, error) {
	_, _ = rand.Read(f.Nonce[:])
	data, chain := frame.Encode(chain, frame.Fence, last+1, f.Encode())
	if err := log.Append(ctx, shard, last, data); err != nil {
		return nil, fmt.Errorf("fencing shard %d at %d: %w", shard, last+1, err)
	}
	return &term{log: log, shard: shard, number: last + 1, last: last + 1, chain: chain}, nil
}

// firstLook and slowestLook bound the wait between two tries of put. After elsewhere
// without success put calls Log.Elsewhere, because the log may be connected to the
// wrong server.
const (
	firstLook   = 10 * time.Millisecond
	slowestLook = 500 * time.Millisecond
	elsewhere   = time.Second
)

// append publishes a message in the slot after the last one. It returns nil if the
// message is durable there; errOver if another process's message is, so that this one
// never will be; errResize if the servers no longer accept messages of this size and a
// barrier of this term is there instead; the error of ctx if none of this is known;
// and any error of check, which checks that the log is still the same.
func (t *term) append(ctx context.Context, kind frame.Kind, body []byte, check func(context.Context) error) error {
	data, chain := frame.Encode(t.chain, kind, t.number, body)
	err := t.put(ctx, []candidate{{data, chain}}, check)
	if !errors.Is(err, port.ErrTooLarge) {
		return err
	}
	// The message may have been stored anyway: the contents of the slot decide.
	barrier, next := frame.Encode(t.chain, frame.Barrier, t.number, nil)
	if err := t.put(ctx, []candidate{{data, chain}, {barrier, next}}, check); err != nil {
		return err
	}
	if t.chain != chain {
		return errResize
	}
	return nil
}

// errResize is returned when a message has to be split into smaller ones.
var errResize = errors.New("the servers take smaller messages than before")

// candidate is a message of this term for the next slot.
type candidate struct {
	data  []byte
	chain frame.Chain
}

// put publishes the last candidate until the slot holds one of them.
func (t *term) put(ctx context.Context, all []candidate, check func(context.Context) error) error {
	wait, last, told := firstLook, all[len(all)-1], time.Now()
	for {
		err := t.log.Append(ctx, t.shard, t.last, last.data)
		if err == nil {
			t.last, t.chain = t.last+1, last.chain
			return nil
		}
		if stored, found := t.slot(ctx, t.last+1); found {
			i := slices.IndexFunc(all, func(c candidate) bool { return bytes.Equal(c.data, stored) })
			if i < 0 {
				return errOver
			}
			t.last, t.chain = t.last+1, all[i].chain
			return nil
		}
		if errors.Is(err, port.ErrTooLarge) && len(all) == 1 {
			return err
		}
		if time.Since(told) > elsewhere {
			told = time.Now()
			t.log.Elsewhere(t.shard)
		}
		// While a log has no leader, check gets no answer; a short time-out keeps the next
		// try from waiting long.
		short, cancel := context.WithTimeout(ctx, slowestLook)
		err = check(short)
		cancel()
		if err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, slowestLook)
	}
}

// slot reads one slot. A message found there is durable; finding none proves
// nothing.
func (t *term) slot(ctx context.Context, seq uint64) (data []byte, found bool) {
	messages, err := t.log.Read(ctx, t.shard, seq)
	if err != nil || len(messages) == 0 || messages[0].Seq != seq {
		return nil, false
	}
	return messages[0].Data, true
}
