// Package budget keeps what agents may spend as documents of a hub. A request to a
// model is granted before it is made. The grant is counted in the budget of the agent
// that makes the request and in those of all who delegated to it, in one durable step:
// a budget that is spent stops all of them. When the request is done, what it used
// replaces the grant.
package budget

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

const (
	kind       = "budget"
	maxNesting = 16  // delegations within delegations
	maxOpen    = 256 // grants of a budget that are not settled; older ones stay counted
)

// Hub stores the budgets.
type Hub interface {
	Document(ctx context.Context, kind, name string) (hub.Document, error)
	EditDocuments(ctx context.Context, edits []hub.DocumentEdit, notes ...hub.AuditNote) (uint64, error)
	Task(ctx context.Context, id string) (*task.Task, error)
}

// Store reads and changes the budgets of a hub.
type Store struct {
	Hub Hub
	Now func() time.Time // nil: time.Now
}

// Limits are what may be spent, as they are stored; 0 means no limit.
type Limits struct {
	Tokens      int64        `json:"tokens,omitzero"`
	Money       runner.Money `json:"nano_dollars,omitzero"`
	Turns       int64        `json:"turns,omitzero"`
	Nanoseconds int64        `json:"nanoseconds,omitzero"` // from the first turn
}

// Runner converts the limits to those of package runner.
func (l Limits) Runner() runner.Limits {
	return runner.Limits{Tokens: l.Tokens, Money: l.Money, Turns: l.Turns, WallTime: time.Duration(l.Nanoseconds)}
}

// Budget is what an agent may spend, and has spent.
type Budget struct {
	Limits Limits `json:"limits"`
	// Prices are used for spenders that name none of their own.
	Prices runner.Prices `json:"prices"`
	Spent  runner.Spent  `json:"spent"`
	// Open are the grants that are not settled, oldest first.
	Open []Open `json:"open,omitzero"`

	version uint64
}

// Open is a grant that counts until it is settled.
type Open struct {
	ID     string        `json:"grant_id"`
	By     string        `json:"by"`            // the agent that spends
	Task   string        `json:"task,omitzero"` // the delegation that it works for
	Input  int64         `json:"input"`
	Output int64         `json:"output,omitzero"`
	Prices runner.Prices `json:"prices"`
}

func (o Open) charge() runner.Charge { return runner.Charge{Input: o.Input, Output: o.Output} }

// Ask is a request to a model that is about to be made.
type Ask struct {
	Agent  string // who makes it
	Task   string // the delegation that it works for; empty: none
	Charge runner.Charge
	Prices runner.Prices // zero: those of each budget
}

// Grant is the answer to an Ask. It has no id if no budget applies.
type Grant struct {
	ID     string    `json:"grant_id,omitzero"`
	Output int64     `json:"output,omitzero"` // tokens that the model may write; 0: without limit
	Until  time.Time `json:"until,omitzero"`
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Read returns an agent's budget, or nil if it has none.
func (s *Store) Read(ctx context.Context, owner string) (*Budget, error) {
	d, err := s.Hub.Document(ctx, kind, owner)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &Budget{version: d.Version}
	if err := json.Unmarshal(d.Data, b); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the budget of '%s' cannot be read: %v", owner, err)
	}
	return b, nil
}

// Set sets what an agent may spend; what it has spent stays. Only a caller that may
// raise budgets can set limits that are less strict than the present ones.
func (s *Store) Set(ctx context.Context, owner string, limits Limits, prices runner.Prices, mayRaise bool) (*Budget, error) {
	if err := limits.Runner().Check(prices); err != nil {
		return nil, err
	}
	if limits == (Limits{}) {
		return nil, fault.New(fault.Invalid, "a budget needs a limit of tokens, nano_dollars, turns or nanoseconds")
	}
	for {
		b, err := s.Read(ctx, owner)
		if err != nil {
			return nil, err
		}
		if b == nil {
			b = &Budget{Spent: runner.Spent{Version: 1}}
		} else if !mayRaise && raises(b, limits, prices) {
			return nil, fault.New(fault.AccessDenied, "the budget of '%s' is stricter, and only an operator's key may raise it", owner)
		}
		b.Limits, b.Prices = limits, prices
		if err := s.write(ctx, map[string]*Budget{owner: b}); err == nil || !changed(err) {
			return b, err
		}
	}
}

// raises reports whether limits let more be spent than a budget does.
func raises(b *Budget, l Limits, prices runner.Prices) bool {
	more := func(now, before int64) bool { return before > 0 && (now == 0 || now > before) }
	return more(l.Tokens, b.Limits.Tokens) || more(int64(l.Money), int64(b.Limits.Money)) || more(l.Turns, b.Limits.Turns) ||
		more(l.Nanoseconds, b.Limits.Nanoseconds) || b.Limits.Money > 0 && (prices.Input < b.Prices.Input || prices.Output < b.Prices.Output)
}

// Remove forgets an agent's budget and what it has spent.
func (s *Store) Remove(ctx context.Context, owner string) error {
	_, err := s.Hub.EditDocuments(ctx, []hub.DocumentEdit{{Kind: kind, Name: owner, Remove: true}})
	return err
}

// Grant counts a request in every budget that pays for it. If one of them is spent it
// counts the request in none, and the error names that budget.
func (s *Store) Grant(ctx context.Context, ask Ask) (Grant, error) {
	if c := ask.Charge; c.Input < 0 || c.Output < 0 || ask.Prices.Input < 0 || ask.Prices.Output < 0 {
		return Grant{}, fault.New(fault.Invalid, "a request for a grant must not be negative")
	}
	for {
		grant, err := s.grant(ctx, ask)
		if err == nil || !changed(err) {
			return grant, err
		}
	}
}

func (s *Store) grant(ctx context.Context, ask Ask) (Grant, error) {
	payers, err := s.chain(ctx, ask.Agent, ask.Task, false)
	if err != nil {
		return Grant{}, err
	}
	paying := map[string]*Budget{}
	now, g := s.now(), Grant{Output: ask.Charge.Output}
	for _, owner := range payers {
		b, err := s.Read(ctx, owner)
		if err != nil {
			return Grant{}, err
		}
		if b == nil {
			continue
		}
		charge := ask.Charge
		charge.Output = g.Output
		output, until, err := b.Limits.Runner().Allow(b.Spent, ask.pricesFor(b), charge, now)
		if err != nil && owner != ask.Agent {
			return Grant{}, fault.Wrap(fault.CodeOf(err), err, "the work was delegated, and for the agent that delegated it %v", err)
		}
		if err != nil {
			return Grant{}, err
		}
		g.Output = output
		if !until.IsZero() && (g.Until.IsZero() || until.Before(g.Until)) {
			g.Until = until
		}
		paying[owner] = b
	}
	if len(paying) == 0 {
		return g, nil
	}
	g.ID = envelope.NewID()
	charge := ask.Charge
	charge.Output = g.Output
	for _, b := range paying {
		prices := ask.pricesFor(b)
		b.Spent = b.Spent.Begin(prices, charge, now)
		b.Open = append(b.Open, Open{ID: g.ID, By: ask.Agent, Task: ask.Task, Input: charge.Input, Output: charge.Output, Prices: prices})
		b.Open = b.Open[max(0, len(b.Open)-maxOpen):]
	}
	return g, s.write(ctx, paying)
}

func (a Ask) pricesFor(b *Budget) runner.Prices {
	if a.Prices == (runner.Prices{}) {
		return b.Prices
	}
	return a.Prices
}

// Settle replaces a grant by what was used. A grant that is settled already, or too
// old, stays as it was counted.
func (s *Store) Settle(ctx context.Context, by, taskID, id string, input, output int64) error {
	for {
		err := s.settle(ctx, by, taskID, id, input, output)
		if err == nil || !changed(err) {
			return err
		}
	}
}

func (s *Store) settle(ctx context.Context, by, taskID, id string, input, output int64) error {
	payers, err := s.chain(ctx, by, taskID, true)
	if err != nil {
		return err
	}
	settled := map[string]*Budget{}
	for _, owner := range payers {
		b, err := s.Read(ctx, owner)
		if err != nil {
			return err
		}
		if b == nil {
			continue
		}
		for i, o := range b.Open {
			if o.ID == id && o.By == by {
				b.Spent = b.Spent.Settle(o.Prices, o.charge(), input, output)
				b.Open = append(b.Open[:i], b.Open[i+1:]...)
				settled[owner] = b
				break
			}
		}
	}
	if len(settled) == 0 {
		return nil
	}
	return s.write(ctx, settled)
}

// chain returns an agent and all who delegated the task that it works for, the nearest
// first. A delegation that has ended pays for no new grants, but its old grants are
// still settled.
func (s *Store) chain(ctx context.Context, agentID, taskID string, ended bool) ([]string, error) {
	who := []string{agentID}
	for at := agentID; taskID != ""; {
		if len(who) > maxNesting {
			return nil, fault.New(fault.AccessDenied, "the work was delegated through %d agents, which is more than the limit; delegate it over fewer", len(who))
		}
		t, err := s.Hub.Task(ctx, taskID)
		if fault.CodeOf(err) == fault.NotFound {
			return who, nil // the owner is a client of another hub, which nobody here knows
		}
		if err != nil {
			return nil, err
		}
		var d agent.Delegation
		if json.Unmarshal(t.Spec.Payload, &d) != nil || d.To == "" {
			return who, nil // a task of another kind
		}
		if d.To != at {
			return nil, fault.New(fault.AccessDenied, "task '%s' is not delegated to '%s'", taskID, at)
		}
		if over := t.State.Terminal() || !t.ExpiresAt.IsZero() && !s.now().Before(t.ExpiresAt); over && !ended {
			return nil, fault.New(fault.Protocol, "the delegation '%s' has ended, so nothing more is spent for it", taskID)
		}
		who = append(who, t.Owner)
		at, taskID = t.Owner, d.Within
	}
	return who, nil
}

// write stores several budgets in one batch if none has changed since it was read.
func (s *Store) write(ctx context.Context, budgets map[string]*Budget) error {
	edits := make([]hub.DocumentEdit, 0, len(budgets))
	for owner, b := range budgets {
		data, err := json.Marshal(b)
		if err != nil {
			return err
		}
		edits = append(edits, hub.DocumentEdit{Kind: kind, Name: owner, Data: data, Expect: &b.version})
	}
	_, err := s.Hub.EditDocuments(ctx, edits)
	return err
}

// changed reports whether a write failed because another spender changed a budget.
func changed(err error) bool { return fault.CodeOf(err) == fault.Conflict }
