package hpd

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

func isTurnEnd(e *wire.Event) bool { return e.Payload.EventType() == branch.MessageTurnFinished }

func errTurnEnded(turn string) error {
	return fault.New(fault.Invalid, "MESSAGE_TURN_FINISHED ends turn %s, which has ended; a turn ends once", turn)
}

// turnOpen returns an error if a list has a second end of the run's turn, before
// any of the list is stored. The caller holds the run's lock.
func (x *run) turnOpen(list []published) error {
	for i := range list {
		if !x.turnEnded || !isTurnEnd(list[i].event) {
			continue
		}
		err := errTurnEnded(x.turn)
		if len(list) > 1 {
			err = fault.Wrap(fault.Invalid, err, "event %d: %v", i, err)
		}
		return err
	}
	return nil
}

// endedBefore does the same as turnOpen for a list with a key. If the list was
// stored before, the hub knows the key of its end; otherwise the hub refuses the
// end, and nothing else of the list has been stored.
func (s *Server) endedBefore(ctx context.Context, x *run, list []published, key string) error {
	i := slices.IndexFunc(list, func(p published) bool { return isTurnEnd(p.event) })
	if i < 0 {
		return nil
	}
	p := list[i]
	p.key = keyOf(key, len(list)-i)
	x.mu.Lock()
	if err := s.begin(x); err != nil || !x.turnEnded {
		x.mu.Unlock()
		return err
	}
	pending := s.hub.Admit(ctx, s.stored(x, &p), trusted)
	x.mu.Unlock()
	_, err := pending.Wait(ctx)
	return err
}

// keyOf returns the key of one event of a list. It contains the number of events
// from this one to the list's end.
func keyOf(key string, left int) string { return fmt.Sprintf("%s/%d", key, left) }

// cut drops the end of an interrupted turn and shows EVENT_DROPPED in its
// place: an interrupted turn has no end (§5.4). The caller holds the run's
// lock.
func (x *run) cut(p *published) {
	if x.interrupted == "" || x.turnEnded || !isTurnEnd(p.event) {
		return
	}
	told := &wire.Event{Payload: wire.EventDropped{DroppedEventFlowID: x.turn, DroppedEventType: branch.MessageTurnFinished}}
	data, err := told.Data()
	if err != nil {
		return // it has no text that could fail to encode
	}
	*p = published{event: told, data: data}
}
