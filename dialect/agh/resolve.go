package agh

import (
	"context"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// resolve opens the direct room that a hosted peer shares with another, unless
// it is open.
func (p *peer) resolve(ctx context.Context, id string, to actor) error {
	sp := p.room.space
	count := func(result string) {
		sp.s.counts.resolves.Add(1)
		sp.s.metrics.resolves.WithLabelValues(sp.s.metrics.label(p.room.channel), result).Inc()
	}
	_, err := sp.s.hub.Named(ctx, sp.home.ID, direct.Type, id)
	if fault.CodeOf(err) != fault.NotFound {
		if err == nil {
			count("existing")
		}
		return err
	}
	o, err := sp.opening(p.room, wire.Container{Channel: p.room.channel, Surface: wire.Direct, ID: id}, actor{p.id, p.agent}, to)
	if err != nil {
		return err
	}
	_, err = sp.s.hub.AdmitNamed(ctx, o, &envelope.Envelope{Sender: p.agent, Type: direct.TypeResolve, Data: []byte("{}"), Origin: origin}, nil).Wait(ctx)
	if fault.CodeOf(err) == fault.Conflict { // opened meanwhile
		count("existing")
		return nil
	}
	if err == nil {
		count("opened")
	}
	return err
}
