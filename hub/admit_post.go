package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/envelope"
)

// post is one call of Admit, AdmitAll or AdmitSide on its way into its channel.
type post struct {
	hub     *Hub
	list    []*envelope.Envelope // of one sender, for one channel
	by      *Caller
	sender  *member
	kind    postKind
	refused *envelope.Envelope // which of the list is refused, if one is

	one [1]*envelope.Envelope // room for a list of one
}

type postKind uint8

const (
	postOne postKind = iota
	postAll
	postSide
)

func (h *Hub) newPost(kind postKind, e *envelope.Envelope, sender *member, by *Caller) *post {
	p := &post{hub: h, by: by, sender: sender, kind: kind, one: [1]*envelope.Envelope{e}, refused: e}
	p.list = p.one[:]
	return p
}

// admit answers a repeat, asks the arbiter, and offers the post to its channel
// until the channel's fold is up to date.
func (p *post) admit(ctx context.Context) *Pending {
	h := p.hub
	if answer := p.repeated(ctx); answer != nil {
		return answer
	}
	for _, e := range p.list {
		recipients := h.registry.profiles(e.Audience, e.Sender)
		if err := denied(h.arbiter().AuthorizeSend(p.sender.profile(), e, recipients)); err != nil {
			p.refused = e
			return refused(err)
		}
	}
	if err := h.delivery.await(ctx); err != nil {
		return refused(err)
	}
	for {
		ch, err := h.lock(ctx, p.list[0].Channel)
		if err != nil {
			return refused(err)
		}
		pending, err := p.offer(ctx, ch)
		if err == nil {
			ch.mu.Unlock()
			return pending
		}
		if retryFold(err) {
			h.abandon(ch)
			continue
		}
		if errors.Is(err, errBroke) {
			h.abandon(ch)
			return refused(err)
		}
		basis := ch.last
		ch.mu.Unlock()
		// The key may have been taken since it was looked up: then this is a
		// repeat, whatever the channel says of it now.
		if answer := p.repeated(ctx); answer != nil {
			p.refused = p.list[0]
			return answer
		}
		if isKey(err, p.list...) {
			continue
		}
		return notAccepted(err, basis, func() *Pending { return p.again(ctx) })
	}
}

// offer judges the post and appends what is accepted. The channel is locked.
func (p *post) offer(ctx context.Context, ch *loadedChannel) (*Pending, error) {
	switch p.kind {
	case postAll:
		return p.hub.admitAllTo(ctx, ch, p)
	case postSide:
		return p.hub.admitSideTo(ctx, ch, p.sender, p.list[0], p.by)
	}
	return p.hub.admitTo(ctx, ch, p.sender, p.list[0], p.by)
}

// repeated answers a post whose idempotency keys were used before with the first
// post's answer. It returns nil if the keys are new, or if there are none.
func (p *post) repeated(ctx context.Context) *Pending {
	switch {
	case p.list[0].Key == "":
		return nil
	case p.kind == postAll:
		return p.hub.repeatedAll(ctx, p.list, p.by)
	}
	return p.hub.idempotentRepeat(ctx, p.list[0], func() *Pending { return p.again(ctx) })
}

// again posts anew: what an answer was computed from was not stored after all.
func (p *post) again(ctx context.Context) *Pending {
	switch p.kind {
	case postAll:
		return p.hub.AdmitAll(ctx, p.list, p.by)
	case postSide:
		return p.hub.AdmitSide(ctx, p.list[0], p.by)
	}
	return p.hub.Admit(ctx, p.list[0], p.by)
}
