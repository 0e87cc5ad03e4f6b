package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// Why only one process orders a shard, whatever is paused, cut off, delayed or
// sent twice.
//
// A slot of the log is written once. A process publishes in term T only after
// each slot from T to its last one was shown to hold its own message: by an
// acknowledgement, which a quorum has made durable, or by reading the slot. It
// publishes each message with the expectation of exactly that last slot.
//
// Suppose a message of term T stands at s > T', where T' > T is another fence.
// Then all slots from T to s-1 hold messages of term T, T' among them: a
// contradiction. So nothing of an old term follows a new fence. No clock occurs
// in this.
//
// What is not an answer: a time-out, a lost connection, no responders, and also
// a refusal. A leader without quorum refuses a message because of its own
// proposal, which may yet become durable. Only the slot tells.

// term is one time in which this process orders a shard. It is used by the
// committer of the shard's copy.
type term struct {
	log    port.Log
	shard  int
	number uint64      // slot of the fence
	last   uint64      // the last slot that this process wrote in this term
	chain  frame.Chain // of the message in it
}

// errOver ends a term: the next slot holds another's message.
var errOver = errors.New("another process has written to the log: the term is over")

// acquire publishes a fence directly after slot last, whose chain is given. Only
// an acknowledgement begins a term; after anything else the caller begins again
// with what is then the last slot.
func acquire(ctx context.Context, log port.Log, shard int, last uint64, chain frame.Chain, f frame.FenceBody) (*term, error) {
	_, _ = rand.Read(f.Nonce[:])
	data, chain := frame.Encode(chain, frame.Fence, last+1, f.Encode())
	if err := log.Append(ctx, shard, last, data); err != nil {
		return nil, fmt.Errorf("fencing shard %d at %d: %w", shard, last+1, err)
	}
	return &term{log: log, shard: shard, number: last + 1, last: last + 1, chain: chain}, nil
}

// How long append waits between two looks, and after how many of them in vain it
// asks for another server.
const (
	firstLook     = 10 * time.Millisecond
	slowestLook   = 500 * time.Millisecond
	looksPerPlace = 8
)

// append publishes a message in the slot after the last one. It returns nil when
// the message is durable there; errOver when another one is, so that this one
// never will be; the error of ctx when neither is known; and any error of check,
// which looks whether the log still is what it was.
func (t *term) append(ctx context.Context, kind frame.Kind, body []byte, check func(context.Context) error) error {
	data, chain := frame.Encode(t.chain, kind, t.number, body)
	wait := firstLook
	for n := 1; ; n++ {
		if t.log.Append(ctx, t.shard, t.last, data) == nil {
			break
		}
		stored, found := t.slot(ctx, t.last+1)
		if found && !bytes.Equal(stored, data) {
			return errOver
		}
		if found {
			break
		}
		if err := check(ctx); err != nil {
			return err
		}
		if n%looksPerPlace == 0 {
			t.log.Elsewhere()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, slowestLook)
	}
	t.last++
	t.chain = chain
	return nil
}

// slot reads one slot. What is found there is durable; that nothing is found
// means nothing.
func (t *term) slot(ctx context.Context, seq uint64) (data []byte, found bool) {
	messages, err := t.log.Read(ctx, t.shard, seq)
	if err != nil || len(messages) == 0 || messages[0].Seq != seq {
		return nil, false
	}
	return messages[0].Data, true
}
