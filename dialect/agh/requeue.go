package agh

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// toldEntry refers to a message that a peer received.
type toldEntry struct {
	order, channel string
	seq            uint64
}

// requeue puts messages back into the queue, in the order in which they were
// stored.
func (p *peer) requeue(ctx context.Context, found []toldEntry) error {
	slices.SortFunc(found, func(a, b toldEntry) int { return strings.Compare(a.order, b.order) })
	if extra := len(found) - p.queue.depth; extra > 0 {
		found = found[extra:]
	}
	for _, t := range found {
		for record, err := range p.room.space.s.hub.Log(ctx, t.channel, t.seq, t.seq) {
			if err != nil {
				return err
			}
			e, data, err := wire.Message(record)
			if err != nil || e.From == p.id {
				continue
			}
			p.queue.push(&waiting{
				order: t.order, channel: t.channel, seq: t.seq, id: e.ID, from: e.From, data: inline(data), meta: about(e, len(data)),
			})
		}
	}
	return nil
}

// joinedBound returns a hub id below which everything is older than the join: the ids
// begin with their time.
func (p *peer) joinedBound() string { return fmt.Sprintf("%016x", p.joinedAt.UnixNano()) }
