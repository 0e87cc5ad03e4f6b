package order

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-hub/parley/journal"
)

// Plan is an ordered batch: what the engine has to write for it.
type Plan struct {
	Ticket *journal.Ticket
	Offset uint64
	Heads  []Head        // new head of each Append's log; records end at its sequence
	Before []Head        // head before; zero if the batch created the log
	Claims []ClaimChange // the claims' last states, each name once

	few [8]Head // enough for most batches, without an allocation
}

// Created reports whether the i-th Append created its log.
func (p *Plan) Created(i int) bool { return p.Before[i].ID == 0 }

// First returns the sequence of the first record of the i-th Append.
func (p *Plan) First(i int) uint64 { return p.Before[i].Seq + 1 }

// ClaimChange is the state of a claim after a batch; Held is nil when it is
// free.
type ClaimChange struct {
	Name string
	Held *Held
}

// Order checks a valid batch against everything ordered, and orders it. A
// refused batch leaves the book as it was. The plan is written over, so that its memory
// can serve many batches, one after the other.
func (b *Book) Order(batch *journal.Batch, fate *journal.Fate, now time.Time, plan *Plan) error {
	if batch.Term != 0 && batch.Term != b.term {
		return &journal.ConflictError{
			Kind: journal.TermConflict, Expected: batch.Term, Actual: b.term, LostTo: b.settledAt(b.durable),
		}
	}
	plan.reset(b.ordered+1, len(batch.Appends))
	if err := b.checkHeads(batch, plan); err != nil {
		return err
	}
	if err := b.checkClaims(batch, plan, now); err != nil {
		return err
	}
	if err := b.checkValues(batch.Values); err != nil {
		return err
	}
	b.accept(batch, plan, fate)
	return nil
}

// keptClaims bounds the memory that a plan keeps for the next batch.
const keptClaims = 64

// reset makes the plan that of a batch of n Appends, with the memory it has.
func (p *Plan) reset(offset uint64, n int) {
	claims := p.Claims[:0]
	clear(p.Claims)
	if cap(claims) > keptClaims {
		claims = nil
	}
	*p = Plan{Offset: offset, Claims: claims}
	if 2*n <= len(p.few) {
		p.Heads, p.Before = p.few[:n:n], p.few[n:2*n]
	} else {
		p.Heads, p.Before = make([]Head, n), make([]Head, n)
	}
}

func (b *Book) checkHeads(batch *journal.Batch, plan *Plan) error {
	for i := range batch.Appends {
		a := &batch.Appends[i]
		head, ticket, err := b.Head(a.Log)
		if err != nil {
			return err
		}
		if !a.Expect.Accepts(head.Seq) {
			want, _ := a.Expect.Number()
			return &journal.ConflictError{
				Kind: journal.SequenceConflict, Log: a.Log, Expected: want, Actual: head.Seq,
				LostTo: b.orSettled(ticket, head.Offset),
			}
		}
		plan.Before[i] = head
		next := Head{ID: head.ID, Seq: head.Seq + uint64(len(a.Records)), Offset: plan.Offset}
		if next.ID == 0 {
			next.ID = newID(plan.Offset, i)
		}
		plan.Heads[i] = next
	}
	return nil
}

func (b *Book) orSettled(ticket *journal.Ticket, offset uint64) *journal.Ticket {
	if ticket != nil {
		return ticket
	}
	return b.settledAt(offset)
}

// checkClaims applies the batch's releases and takes in order, on top of what is
// ordered.
func (b *Book) checkClaims(batch *journal.Batch, plan *Plan, now time.Time) error {
	var played playedClaims
	for i := range batch.Appends {
		a := &batch.Appends[i]
		for j := range a.Records {
			for _, name := range a.Records[j].Release {
				held, err := b.holder(name, plan, &played)
				if err != nil {
					return err
				}
				if held != nil && held.ID == plan.Heads[i].ID {
					played.set(plan, name, nil)
				}
			}
			for _, take := range a.Records[j].Take {
				if at := played.find(plan, take.Name); at >= 0 {
					if plan.Claims[at].Held != nil {
						return fmt.Errorf("batch takes claim %q twice: %w", take.Name, journal.ErrInvalid)
					}
				} else if held, ticket, err := b.Claim(take.Name, now); err != nil {
					return err
				} else if held != nil {
					return &journal.ConflictError{
						Kind: journal.ClaimConflict, Claim: held.Claimed, LostTo: b.orSettled(ticket, held.Offset),
					}
				}
				played.set(plan, take.Name, &Held{ID: plan.Heads[i].ID, Claimed: journal.Claimed{
					Name: take.Name, Log: a.Log, Incarnation: plan.Heads[i].ID.Incarnation(),
					Seq: plan.First(i) + uint64(j), Offset: plan.Offset, Expires: Milliseconds(take.Expires),
				}})
			}
		}
	}
	return nil
}

// holder returns the holder of a claim. It ignores expiry, because the last holder of
// an expired claim may release it.
func (b *Book) holder(name string, plan *Plan, played *playedClaims) (*Held, error) {
	if at := played.find(plan, name); at >= 0 {
		return plan.Claims[at].Held, nil
	}
	held, _, err := b.RawClaim(name)
	return held, err
}

// Milliseconds returns an expiry with the precision that engines store.
func Milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

func (b *Book) checkValues(writes []journal.ValueWrite) error {
	for i := range writes {
		w := &writes[i]
		want, conditional := w.Expect.Number()
		if !conditional {
			continue
		}
		v, ticket, err := b.Value(w.Key)
		if err != nil {
			return err
		}
		if v.Version != want {
			return &journal.ConflictError{
				Kind: journal.ValueConflict, Value: w.Key, Expected: want, Actual: v.Version,
				LostTo: b.orSettled(ticket, v.Version),
			}
		}
	}
	return nil
}

func (b *Book) accept(batch *journal.Batch, plan *Plan, fate *journal.Fate) {
	var few [4]journal.Appended
	appended := few[:0]
	for i, head := range plan.Heads {
		appended = append(appended, journal.Appended{Incarnation: head.ID.Incarnation(), First: plan.First(i), Last: head.Seq})
	}
	b.ordered = plan.Offset
	at := journal.ShardPosition{Epoch: b.epoch, Offset: plan.Offset}
	plan.Ticket = fate.Ticket(b.shard, at, b.term, appended)
	for i := range batch.Appends {
		log := batch.Appends[i].Log
		b.heads[log] = pending[Head]{plan.Heads[i], plan.Ticket}
		b.touched = append(b.touched, touch{offset: plan.Offset, kind: touchedHead, log: log})
	}
	for _, c := range plan.Claims {
		b.claims[c.Name] = pending[*Held]{c.Held, plan.Ticket}
		b.touched = append(b.touched, touch{offset: plan.Offset, kind: touchedClaim, claim: c.Name})
	}
	for i := range batch.Values {
		w := &batch.Values[i]
		v := journal.Value{Version: plan.Offset, Data: append([]byte(nil), w.Data...)}
		if w.Delete {
			v = journal.Value{}
		}
		b.values[w.Key] = pending[journal.Value]{v, plan.Ticket}
		b.touched = append(b.touched, touch{offset: plan.Offset, kind: touchedValue, value: w.Key})
	}
}

// fewClaims is the number of claims of a batch up to which they are searched linearly.
const fewClaims = 8

// playedClaims finds the claims of a plan by name. Most batches have one or two.
type playedClaims map[string]int // place in plan.Claims; nil while they are few

func (p *playedClaims) find(plan *Plan, name string) int {
	if *p == nil {
		return slices.IndexFunc(plan.Claims, func(c ClaimChange) bool { return c.Name == name })
	}
	if at, ok := (*p)[name]; ok {
		return at
	}
	return -1
}

func (p *playedClaims) set(plan *Plan, name string, held *Held) {
	if at := p.find(plan, name); at >= 0 {
		plan.Claims[at].Held = held
		return
	}
	plan.Claims = append(plan.Claims, ClaimChange{Name: name, Held: held})
	switch {
	case *p != nil:
		(*p)[name] = len(plan.Claims) - 1
	case len(plan.Claims) > fewClaims:
		*p = make(playedClaims, 2*fewClaims)
		for i := range plan.Claims {
			(*p)[plan.Claims[i].Name] = i
		}
	}
}
