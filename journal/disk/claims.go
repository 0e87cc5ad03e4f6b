package disk

import (
	"context"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

// claimTable holds the durable holders of claims that changed or were looked up
// lately; a nil holder means that the claim is free. It has two generations and
// forgets the older one when the younger is full.
//
// It also tells whether a lookup made in an older view is still valid: every claim
// that changed since view number known is in the table, so a claim that is not in
// the table has not changed since that view.
type claimTable struct {
	size       int // of a generation
	young, old map[string]*order.Held
	turned     uint64 // number of the view when young began
	known      uint64 // number of the view when old began
}

// reset forgets everything, and makes lookups from before view number now
// invalid.
func (c *claimTable) reset(now uint64) {
	c.young, c.old = map[string]*order.Held{}, nil
	c.turned, c.known = now, now
}

func (c *claimTable) get(name string) (held *order.Held, ok bool) {
	if held, ok = c.young[name]; !ok {
		held, ok = c.old[name]
	}
	return held, ok
}

// put records the holder of a claim in view number now, which is the newest.
func (c *claimTable) put(name string, held *order.Held, now uint64) {
	if len(c.young) >= c.size {
		next := emptied(c.old, c.size)
		c.old, c.known = c.young, c.turned
		c.young, c.turned = next, now
	}
	c.young[name] = held
}

// lookup is the holder of a claim in one view.
type lookup struct {
	name string
	held *order.Held
}

// enterClaims begins a read for claims and returns the names that must be
// looked up in the view. The caller leaves the view; it is nil when there is
// nothing to look up.
func (e *Engine) enterClaims(names []string) (*view, []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended() != nil {
		return nil, nil
	}
	var unknown []string
	for _, name := range names {
		if e.mustLookUp(name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	v, err := e.enterLocked()
	if err != nil {
		return nil, nil
	}
	return v, unknown
}

// mustLookUp reports whether the holder of a claim can only be read from the store;
// the lock is held.
func (e *Engine) mustLookUp(name string) bool {
	if _, known := e.claims.get(name); known || e.book.HasClaim(name) {
		return false
	}
	s := &e.sieves.claims
	return !s.lacks(s.claim(name))
}

// findClaims looks claims up without the lock, so that the lookup under
// the lock finds them in memory (addClaims). It omits a claim that cannot be
// read: the lookup under the lock returns the error.
func (e *Engine) findClaims(names []string) (found []lookup, number uint64) {
	if len(names) == 0 {
		return nil, 0
	}
	v, unknown := e.enterClaims(names)
	if v == nil {
		return nil, 0
	}
	defer v.leave()
	found = make([]lookup, 0, len(unknown))
	for _, name := range unknown {
		if held, err := v.claim(name); err == nil {
			found = append(found, lookup{name, held})
		}
	}
	return found, v.number
}

// addClaims adds those lookups made in view number n to the table that are still
// valid; the lock is held.
func (e *Engine) addClaims(found []lookup, n uint64) {
	if n < e.claims.known {
		return // some claim may have changed and been forgotten since
	}
	for _, l := range found {
		if l.held == nil {
			e.sieves.claims.vain++
		}
		if _, newer := e.claims.get(l.name); !newer {
			e.claims.put(l.name, l.held, e.view.number)
		}
	}
}

// claimNames lists the claims that a batch takes or releases.
func claimNames(b *journal.Batch) []string {
	var names []string
	for i := range b.Appends {
		for j := range b.Appends[i].Records {
			r := &b.Appends[i].Records[j]
			names = append(names, r.Release...)
			for _, take := range r.Take {
				names = append(names, take.Name)
			}
		}
	}
	return names
}

// Claim implements journal.Engine.
func (e *Engine) Claim(ctx context.Context, shard int, name string) (journal.ClaimState, error) {
	if err := e.checkShard(ctx, shard); err != nil {
		return journal.ClaimState{}, err
	}
	found, n := e.findClaims([]string{name})
	e.mu.Lock()
	defer e.mu.Unlock()
	v, err := e.enterSeen(ctx)
	if err != nil {
		return journal.ClaimState{}, err
	}
	defer v.leave()
	e.addClaims(found, n)
	now := e.now()
	var state journal.ClaimState
	held, ticket, err := e.book.Claim(name, now)
	if err != nil {
		return state, err
	}
	if held != nil {
		state.Ordered = new(held.Claimed)
	}
	state.Pending = ticket
	durable, err := base{e}.Claim(name)
	if err != nil || durable == nil || order.Expired(durable.Claimed, now) {
		return state, err
	}
	if _, gone := v.hidden[durable.ID]; !gone {
		state.Durable = new(durable.Claimed)
	}
	return state, nil
}
