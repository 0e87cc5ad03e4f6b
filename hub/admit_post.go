package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/journal"
)

// post is one call of Admit, AdmitAll, AdmitSide or Say that is being admitted.
type post struct {
	hub     *Hub
	list    []*envelope.Envelope // of one sender, for one channel
	by      *Caller
	sender  *registry.Member
	kind    postKind
	saying  *Saying            // from which the list is made, or nil
	refused *envelope.Envelope // the refused one of the list, or nil
	looked  bool               // its key was looked up and was new

	one [1]*envelope.Envelope // room for a list of one
}

type postKind uint8

const (
	postOne postKind = iota
	postAll
	postSide
	postSay
	postRun
)

func (h *Hub) newPost(kind postKind, e *envelope.Envelope, sender *registry.Member, by *Caller) *post {
	p := &post{hub: h, by: by, sender: sender, kind: kind, one: [1]*envelope.Envelope{e}, refused: e}
	p.list = p.one[:]
	return p
}

// admit answers a repeat, calls the arbiter, and offers the post to its channel until
// the channel's fold is up to date.
func (p *post) admit(ctx context.Context) *Pending {
	h := p.hub
	ctx = h.spans.Arrived(ctx, h.now)
	if !p.looked {
		if answer := p.repeated(ctx); answer != nil {
			return answer
		}
	}
	for _, e := range p.list {
		recipients := h.registry.Profiles(e.Audience, e.Sender)
		if err := denied(h.arbiter().AuthorizeSend(p.sender.Profile(), e, recipients)); err != nil {
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
		// The key may have been taken since it was looked up: then this is a repeat,
		// even if the channel would refuse it now.
		if answer := p.repeated(ctx); answer != nil {
			p.refused = p.list[0]
			return answer
		}
		if isKey(err, p.list...) {
			continue
		}
		return notAccepted(err, basis, func() *Pending { return p.repost(ctx) })
	}
}

// offer checks the post and appends what is accepted. The channel is locked.
func (p *post) offer(ctx context.Context, ch *loadedChannel) (*Pending, error) {
	switch p.kind {
	case postAll:
		return p.hub.admitAllTo(ctx, ch, p)
	case postSide:
		return p.hub.admitSideTo(ctx, ch, p.sender, p.list[0], p.by)
	case postSay:
		return p.hub.sayIn(ctx, ch, p)
	}
	return p.hub.admitTo(ctx, ch, p.sender, p.list[0], p.by)
}

// repeated answers a post whose idempotency keys were used before with the first
// post's answer. It returns nil if the keys are new, or if there are none.
func (p *post) repeated(ctx context.Context) *Pending {
	switch {
	case p.kind == postSay:
		return p.repeatedSaying(ctx)
	case p.list[0].Key == "":
		return nil
	case p.kind == postAll:
		return p.hub.repeatedAll(ctx, p.list, p.by)
	}
	return p.hub.idempotentRepeat(ctx, p.list[0], func() *Pending { return p.repost(ctx) })
}

// repost posts once more, because what the answer was computed from was not stored.
func (p *post) repost(ctx context.Context) *Pending {
	switch p.kind {
	case postAll:
		return p.hub.AdmitAll(ctx, p.list, p.by)
	case postSide:
		return p.hub.AdmitSide(ctx, p.list[0], p.by)
	case postSay:
		return p.hub.Say(ctx, *p.saying, p.by)
	}
	return p.hub.Admit(ctx, p.list[0], p.by)
}

// MaxAdmitAll is how many envelopes AdmitAll takes at once.
const MaxAdmitAll = 512

// AdmitAll is Admit for several envelopes of one sender in one channel. They are stored
// as one batch, all or none, and each is checked against the channel as the previous one
// leaves it. Either all have different idempotency keys or none has one. The hub owns the
// envelopes from here on.
func (h *Hub) AdmitAll(ctx context.Context, list []*envelope.Envelope, by *Caller) *Pending {
	if len(list) == 0 || len(list) > MaxAdmitAll {
		return refused(fault.New(fault.Invalid, "%d envelopes; 1 to %d are posted together", len(list), MaxAdmitAll))
	}
	sender, culprit, err := h.boundAll(list, by)
	if err != nil {
		p := refused(err)
		h.tellRefusal(p, culprit)
		return p
	}
	all := &post{hub: h, list: list, by: by, sender: sender, kind: postAll, refused: list[0]}
	p := all.admit(ctx)
	h.tellRefusal(p, all.refused)
	return p
}

// boundAll checks what can be checked without the channel.
func (h *Hub) boundAll(list []*envelope.Envelope, by *Caller) (sender *registry.Member, culprit *envelope.Envelope, err error) {
	first, size := list[0], 0
	var keys map[string]bool
	if first.Key != "" {
		keys = make(map[string]bool, len(list))
	}
	for i, e := range list {
		switch {
		case e.Channel != first.Channel || e.Sender != first.Sender:
			err = fault.New(fault.Invalid, "envelope %d is of '%s' for channel '%s', the first of '%s' for '%s'; post them separately",
				i, e.Sender, e.Channel, first.Sender, first.Channel)
		case (e.Key == "") != (first.Key == ""):
			err = fault.New(fault.Invalid, "envelope %d: give each envelope an idempotency key, or none of them", i)
		case keys[e.Key]:
			err = fault.New(fault.Invalid, "envelope %d: idempotency key '%s' is given twice; choose one for each envelope", i, e.Key)
		default:
			err = h.bound(e, by)
		}
		if err != nil {
			return nil, e, err
		}
		if e.Key != "" {
			keys[e.Key] = true
		}
		size += len(e.Data) + len(e.Ext)
	}
	if most := journal.MaxBatchBytes - batchRoom; size > most {
		return nil, first, fault.New(fault.TooLarge, "%d envelopes with %d bytes; at most %d bytes are posted together", len(list), size, most)
	}
	sender, err = h.sender(first, by)
	return sender, first, err
}

// admitAllTo checks the envelopes against a channel, each after the one before.
// The channel is locked.
func (h *Hub) admitAllTo(ctx context.Context, ch *loadedChannel, all *post) (p *Pending, err error) {
	defer h.rescue(&err)
	places := make([]string, 0, len(all.list))
	kept := false
	defer func() {
		if !kept {
			h.vacate(all.sender.ID, places)
		}
	}()
	b := h.newBatch(ch)
	b.caller, b.by, b.crossing = h.spans.Caller(ctx), all.by, all.saying != nil
	bytes := 0
	for _, e := range all.list {
		bytes += len(e.Data) + len(e.Ext)
	}
	b.expect(len(all.list), bytes)
	for _, e := range all.list {
		all.refused = e
		if err := h.judgeNext(ctx, b, all.sender, e, all.by); err != nil {
			return nil, err
		}
		b.places = nil
		if !envelope.IsProtocol(e.Type) {
			if places, err = b.reserve(places, all.sender, e); err != nil {
				return nil, err
			}
		}
		if err := b.accept(e); err != nil {
			return nil, err
		}
	}
	b.posted = all.list
	if p, err = b.order(ctx); err != nil {
		return nil, err
	}
	kept = true
	for _, e := range all.list {
		ch.noteAnswer(e)
	}
	b.release()
	return p, nil
}

// MaxRun is how many posts AdmitRun stores as one batch.
const MaxRun = 64

// maxRunBytes bounds what the payloads of a run have together.
const maxRunBytes = 256 << 10

// AdmitRun is Admit for posts of one sender in one channel that arrived together. Each is
// checked on its own, against the channel as the previous one leaves it. It admits one or
// more from the front as one batch and returns their number: the hub owns these from here
// on, and the caller posts the rest next. A post that is refused, or that takes more than
// its place in the history, is admitted alone.
func (h *Hub) AdmitRun(ctx context.Context, list []*envelope.Envelope, by *Caller) (p *Pending, n int) {
	if len(list) == 0 {
		return refused(fault.New(fault.Invalid, "a run has no envelope; post one at least")), 0
	}
	run := &post{hub: h, by: by, kind: postRun}
	if run.list = h.boundRun(list, by); len(run.list) > 1 {
		if p := run.admitRun(ctx); p != nil {
			return p, len(run.list)
		}
	}
	return h.Admit(ctx, list[0], by), 1
}

// boundRun returns the posts from the front that may be a run, as far as that is known
// without the channel.
func (h *Hub) boundRun(list []*envelope.Envelope, by *Caller) []*envelope.Envelope {
	first, size := list[0], 0
	for i, e := range list {
		size += len(e.Data) + len(e.Ext)
		if i == MaxRun || size > maxRunBytes || e.Channel != first.Channel || e.Sender != first.Sender ||
			e.Key != "" || h.bound(e, by) != nil || envelope.IsProtocol(e.Type) {
			return list[:i]
		}
	}
	return list
}

// admitRun admits the posts that can be stored together, and leaves these in the
// list. It returns nil if the first is to be admitted alone.
func (p *post) admitRun(ctx context.Context) *Pending {
	h := p.hub
	ctx = h.spans.Arrived(ctx, h.now)
	var err error
	if p.sender, err = h.sender(p.list[0], p.by); err != nil || p.sender.Profile().Enforced().Limits.Rate.PerMinute > 0 {
		return nil // a rate counts every attempt
	}
	for i, e := range p.list {
		e.Sender = p.sender.ID
		if h.arbiter().AuthorizeSend(p.sender.Profile(), e, h.registry.Profiles(e.Audience, e.Sender)) != nil {
			p.list = p.list[:i]
			break
		}
	}
	for len(p.list) > 1 && h.delivery.await(ctx) == nil {
		ch, err := h.lock(ctx, p.list[0].Channel)
		if err != nil {
			return nil
		}
		pending, at, err := h.admitRunTo(ctx, ch, p)
		if retryFold(err) || errors.Is(err, errBroke) {
			h.abandon(ch)
		} else {
			ch.mu.Unlock()
		}
		switch {
		case err == nil:
			return pending
		case retryFold(err):
		case at < len(p.list):
			p.list = p.list[:at] // those before the one that failed
		default:
			p.list = p.list[:len(p.list)/2] // usually too much for one batch
		}
	}
	return nil
}

// admitRunTo orders as many posts of a run as a channel accepts one after the
// other, and leaves these in the list. If there is an error, nothing is ordered, and
// at is the post that it is about, or how many there are. The channel is locked.
func (h *Hub) admitRunTo(ctx context.Context, ch *loadedChannel, run *post) (p *Pending, at int, err error) {
	defer h.rescue(&err)
	places := make([]string, 0, len(run.list))
	defer func() {
		if p == nil {
			h.vacate(run.sender.ID, places)
		}
	}()
	if ch.extras != nil {
		return nil, 0, nil // posts that wait, or were delivered twice, are handled one by one
	}
	b := h.newBatch(ch)
	b.caller, b.by = h.spans.Caller(ctx), run.by
	bytes := 0
	for _, e := range run.list {
		bytes += len(e.Data) + len(e.Ext)
	}
	b.expect(len(run.list), bytes)
	for ; at < len(run.list); at++ {
		e := run.list[at]
		if h.judgeNext(ctx, b, run.sender, e, run.by) != nil {
			break
		}
		if places, err = b.reserve(places, run.sender, e); err != nil {
			break
		}
		if err := b.accept(e); err != nil {
			return nil, at, err
		}
	}
	if at == 0 {
		return nil, 0, nil
	}
	run.list = run.list[:at]
	b.posted = run.list
	if p, err = b.order(ctx); err != nil {
		return nil, at, err
	}
	b.release()
	return p, at, nil
}

// reserve is capacity for the next envelope of several. It appends the inboxes in which it
// reserved room to those of the envelopes before.
func (b *batch) reserve(places []string, sender *registry.Member, e *envelope.Envelope) ([]string, error) {
	more, err := b.hub.capacity(b.ch, b.meta, b.state, sender, e, places)
	if err != nil {
		return places, err
	}
	b.places = more[len(places):len(more):len(more)]
	return more, nil
}

// judgeNext checks the next envelope of a batch against the channel as the batch leaves
// it so far.
func (h *Hub) judgeNext(ctx context.Context, b *batch, sender *registry.Member, e *envelope.Envelope, by *Caller) error {
	ch := b.ch
	if err := h.accepts(ch, b.meta, e); err != nil {
		return err
	}
	if err := h.belongs(ctx, ch, b.meta, b.state, e); err != nil {
		return err
	}
	if err := h.answeredElsewhere(ch, sender, e, by); err != nil {
		return err
	}
	if supervised, ok := ch.adapter.(channel.Supervised); ok && isTurn(e.Type) && supervised.Supervisor(b.meta, b.state, e.Sender) && ch.inRound(e.Sender) {
		return fault.New(fault.Protocol, "channel '%s' is in a round, and '%s' supervises it: what a supervisor says then waits, so post it alone", ch.id, e.Sender)
	}
	if err := ch.adapter.ValidateSend(b.meta, b.state, e); err != nil {
		return err
	}
	return ch.answeredTwice(e)
}

// repeatedAll answers a post of several whose idempotency keys were used before
// with the first post's answer. It returns nil if the keys are new.
func (h *Hub) repeatedAll(ctx context.Context, list []*envelope.Envelope, by *Caller) *Pending {
	if list[0].Key == "" {
		return nil
	}
	holders := make([]journal.ClaimState, 0, len(list))
	for _, e := range list {
		holder, err := h.keyHolder(ctx, e)
		if err != nil {
			return refused(err)
		}
		if holder.Ordered != nil {
			holders = append(holders, holder)
		}
	}
	switch len(holders) {
	case 0:
		return nil
	case len(list):
		return &Pending{done: closedChan, resolve: func(ctx context.Context) (*Pending, error) { return h.answerAll(ctx, list, holders, by) }}
	}
	return refused(fault.New(fault.Protocol, "%d of the %d idempotency keys were used before; repeat a post with the same envelopes, or choose new keys", len(holders), len(list)))
}

// answerAll is the answer to the first post of the keys.
func (h *Hub) answerAll(ctx context.Context, list []*envelope.Envelope, holders []journal.ClaimState, by *Caller) (*Pending, error) {
	for _, holder := range holders {
		if holder.Pending == nil {
			continue
		}
		if err := holder.Pending.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, unavailable(err)
			}
			p := h.AdmitAll(ctx, list, by) // the first was not stored after all
			_, err := p.Wait(ctx)
			return p, err
		}
	}
	answer := &Pending{done: closedChan, channel: list[0].Channel, repeated: true}
	for i, e := range list {
		first, err := h.answerIdempotent(ctx, holders[i].Ordered, e)
		if err != nil {
			return nil, err
		}
		answer.id, answer.seq = first.id, first.seq
		answer.all = append(answer.all, stored{id: first.id, seq: first.seq})
	}
	return answer, nil
}
