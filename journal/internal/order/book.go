// Package order decides whether a batch fits what is ordered, for engines that
// keep what is not yet durable in memory. It holds the pending heads, claims
// and values of one shard, and reads everything older from the engine. It stores
// nothing, starts no goroutine, and takes no lock: its engine does.
package order

import (
	"time"

	"github.com/parley-hub/parley/journal"
)

// ordinalBits leaves room in an ID for every log that one batch can create.
const ordinalBits = 10

// ID permanently identifies an incarnation of a log: the offset of the batch that
// created the log, and the log's place in that batch.
type ID uint64

func newID(offset uint64, ordinal int) ID { return ID(offset<<ordinalBits | uint64(ordinal)) }

// Incarnation returns the offset at which the log was created.
func (id ID) Incarnation() uint64 { return uint64(id) >> ordinalBits }

// Head is the end of a log; the zero Head means that the log does not exist.
type Head struct {
	ID     ID
	Seq    uint64
	Offset uint64
}

// Held is a claim and the log that holds it.
type Held struct {
	journal.Claimed
	ID ID
}

// Base reads durable state: it does not include what is pending.
type Base interface {
	Head(log journal.LogName) (Head, error)
	// Claim returns the holder, or nil if the claim is free. It does not check
	// expiry.
	Claim(name string) (*Held, error)
	// Value returns the value; its version is 0 if there is none.
	Value(key journal.ValueKey) (journal.Value, error)
}

// Book is what is ordered in one shard and not yet durable.
type Book struct {
	base    Base
	shard   int
	epoch   uint64
	term    uint64
	ordered uint64
	durable uint64

	heads   map[journal.LogName]pending[Head]
	claims  map[string]pending[*Held]
	values  map[journal.ValueKey]pending[journal.Value]
	touched []touch // in order of offset, for Settle

	logs       map[journal.LogName][]Removal
	partitions map[journal.PartitionName][]Removal
}

type pending[T any] struct {
	is     T
	ticket *journal.Ticket
}

type touch struct {
	offset uint64
	kind   uint8
	log    journal.LogName
	claim  string
	value  journal.ValueKey
}

const (
	touchedHead = iota
	touchedClaim
	touchedValue
)

// NewBook returns the book of a shard whose last batch is at a position.
func NewBook(base Base, shard int, at journal.ShardPosition, term uint64) *Book {
	return &Book{
		base: base, shard: shard, epoch: at.Epoch, term: term, ordered: at.Offset, durable: at.Offset,
		heads:      map[journal.LogName]pending[Head]{},
		claims:     map[string]pending[*Held]{},
		values:     map[journal.ValueKey]pending[journal.Value]{},
		logs:       map[journal.LogName][]Removal{},
		partitions: map[journal.PartitionName][]Removal{},
	}
}

// Place returns the place of the shard.
func (b *Book) Place() journal.Place {
	return journal.Place{Epoch: b.epoch, Term: b.term, Ordered: b.ordered, Durable: b.durable}
}

// Position returns the position of the last durable batch.
func (b *Book) Position() journal.ShardPosition {
	return journal.ShardPosition{Epoch: b.epoch, Offset: b.durable}
}

// settledAt returns the ticket of a batch that is durable already.
func (b *Book) settledAt(offset uint64) *journal.Ticket {
	return journal.Settled(b.shard, journal.ShardPosition{Epoch: b.epoch, Offset: offset}, b.term)
}

// Head returns the ordered end of a log. The ticket is nil if it is also the
// durable end.
func (b *Book) Head(log journal.LogName) (Head, *journal.Ticket, error) {
	p, ok := b.heads[log]
	if !ok {
		h, err := b.base.Head(log)
		if err != nil {
			return Head{}, nil, err
		}
		p.is = h
	}
	if p.is.ID == 0 {
		return Head{}, p.ticket, nil
	}
	if r := b.removing(log, p.is.ID.Incarnation(), b.ordered); r != nil {
		return Head{}, b.unlessDurable(r), nil
	}
	return p.is, p.ticket, nil
}

func (b *Book) unlessDurable(r *Removal) *journal.Ticket {
	if r.Offset <= b.durable {
		return nil
	}
	return r.ticket
}

// Claim returns the ordered holder of a claim, or nil if it is free. The ticket is
// nil if the durable holder is the same.
func (b *Book) Claim(name string, now time.Time) (*Held, *journal.Ticket, error) {
	held, ticket, err := b.RawClaim(name)
	if err != nil || held == nil {
		return nil, ticket, err
	}
	if r := b.removing(held.Log, held.Incarnation, b.ordered); r != nil {
		return nil, b.unlessDurable(r), nil
	}
	if Expired(held.Claimed, now) {
		return nil, ticket, nil
	}
	return held, ticket, nil
}

// RawClaim returns the ordered holder of a claim, whether or not the claim has expired
// or the holder's log is being removed.
func (b *Book) RawClaim(name string) (*Held, *journal.Ticket, error) {
	if p, ok := b.claims[name]; ok {
		return p.is, p.ticket, nil
	}
	held, err := b.base.Claim(name)
	return held, nil, err
}

// HasClaim reports whether the book knows a claim without reading its base.
func (b *Book) HasClaim(name string) bool {
	_, ok := b.claims[name]
	return ok
}

// RawHead returns the ordered end of a log, whether or not the log is being removed.
func (b *Book) RawHead(log journal.LogName) (Head, error) {
	if p, ok := b.heads[log]; ok {
		return p.is, nil
	}
	return b.base.Head(log)
}

// PendingHeads returns the ordered ends of a partition's logs that are not durable.
func (b *Book) PendingHeads(p journal.PartitionName) map[journal.LogName]Head {
	heads := map[journal.LogName]Head{}
	for log, pending := range b.heads {
		if log.Of() == p {
			heads[log] = pending.is
		}
	}
	return heads
}

// Expired reports whether a claim is free because it has expired.
func Expired(c journal.Claimed, now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// Value returns the ordered value. The ticket is nil if it is also the durable
// one.
func (b *Book) Value(key journal.ValueKey) (journal.Value, *journal.Ticket, error) {
	p, ok := b.values[key]
	if !ok {
		v, err := b.base.Value(key)
		if err != nil {
			return journal.Value{}, nil, err
		}
		p.is = v
	}
	if p.is.Version == 0 {
		return journal.Value{}, p.ticket, nil
	}
	for i := range b.partitions[key.Partition] {
		if r := &b.partitions[key.Partition][i]; p.is.Version < r.Offset {
			return journal.Value{}, b.unlessDurable(r), nil
		}
	}
	return p.is, p.ticket, nil
}

// Settle records that everything up to an offset is durable. From then on the base
// must return it.
func (b *Book) Settle(offset uint64) {
	b.durable = offset
	n := 0
	for n < len(b.touched) && b.touched[n].offset <= offset {
		t := &b.touched[n]
		switch t.kind {
		case touchedHead:
			if p := b.heads[t.log]; p.ticket != nil && p.ticket.Offset() <= offset {
				delete(b.heads, t.log)
			}
		case touchedClaim:
			if p := b.claims[t.claim]; p.ticket != nil && p.ticket.Offset() <= offset {
				delete(b.claims, t.claim)
			}
		case touchedValue:
			if p := b.values[t.value]; p.ticket != nil && p.ticket.Offset() <= offset {
				delete(b.values, t.value)
			}
		}
		n++
	}
	if n == len(b.touched) {
		b.touched = b.touched[:0]
		return
	}
	b.touched = append(b.touched[:0], b.touched[n:]...)
}

// Advance moves to an offset that another process has ordered and made durable.
// Nothing may be pending.
func (b *Book) Advance(offset uint64) { b.ordered, b.durable = offset, offset }

// Forget discards what is ordered and not durable, and begins a new term.
func (b *Book) Forget() {
	b.term++
	b.ordered = b.durable
	clear(b.heads)
	clear(b.claims)
	clear(b.values)
	b.touched = b.touched[:0]
	b.forgetRemovals()
}
