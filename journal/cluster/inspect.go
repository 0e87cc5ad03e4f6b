package cluster

import (
	"context"
	"fmt"

	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// Inspected is the state of a shard as read from its log alone.
type Inspected struct {
	port.State
	Term   uint64 // sequence of the last fence; 0: there is none
	Leader string // node that wrote it
}

// Inspect reads the end of a shard's log, without a copy of it.
func Inspect(ctx context.Context, log port.Log, shard int) (at Inspected, err error) {
	if at.State, err = log.State(ctx, shard); err != nil || at.Last == 0 {
		return at, err
	}
	m, err := inspectAt(ctx, log, shard, at.Last)
	if err != nil {
		return at, err
	}
	if at.Term = m.Term; m.Kind != frame.Fence {
		if m, err = inspectAt(ctx, log, shard, m.Term); err != nil {
			return at, err
		}
	}
	body, err := frame.DecodeFence(m.Body)
	if err != nil {
		return at, fmt.Errorf("shard %d: the fence at %d: %w", shard, at.Term, err)
	}
	at.Leader = body.Node
	return at, nil
}

func inspectAt(ctx context.Context, log port.Log, shard int, seq uint64) (frame.Message, error) {
	messages, err := log.Read(ctx, shard, seq)
	if err != nil {
		return frame.Message{}, err
	}
	if len(messages) == 0 || messages[0].Seq != seq {
		return frame.Message{}, &MissingError{Shard: shard, Seq: seq}
	}
	m, err := frame.Decode(messages[0].Data)
	if err != nil {
		return m, fmt.Errorf("shard %d: message %d of the log: %w", shard, seq, err)
	}
	return m, nil
}
