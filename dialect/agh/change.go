package agh

import (
	"context"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
)

// change describes what a stored message opened and moved.
type change struct {
	opened   bool // its conversation
	was, now workState
}

// workState is the state of work; the zero value is none.
type workState work.State

func (s workState) name() string   { return work.State(s).String() }
func (s workState) terminal() bool { return work.State(s).Terminal() }

func (c change) opensWork() bool  { return c.was == 0 && c.now != 0 }
func (c change) movesWork() bool  { return c.was != 0 && c.was != c.now }
func (c change) closesWork() bool { return c.movesWork() && c.now.terminal() }

// openWork returns by how much the open work of a conversation grew.
func (c change) openWork() int {
	switch {
	case c.opensWork():
		return 1
	case c.closesWork():
		return -1
	}
	return 0
}

// kindOf is the adapter of a surface.
func kindOf(surface wire.Surface) string {
	if surface == wire.Direct {
		return direct.Type
	}
	return thread.Type
}

// changeOf returns what a stored message changed. The state of its work is in the side
// log.
func (sp *space) changeOf(ctx context.Context, e *wire.Envelope, record *envelope.Envelope) change {
	c := change{opened: record.Seq == 1}
	if e.Work == "" {
		return c
	}
	found, ok, err := sp.entry(ctx, kindOf(e.Surface), work.IDKey(e.ID, e.From))
	if err != nil || !ok {
		return c
	}
	where, err := work.ParseWhere(found.Value)
	if err != nil {
		return c
	}
	was, _ := work.ParseState(where.Was)
	now, _ := work.ParseState(where.Now)
	c.was, c.now = workState(was), workState(now)
	return c
}
