package runner

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message/provider"
)

// Money is an amount in billionths of a dollar.
type Money int64

// ParseMoney reads dollars, such as 2.50.
func ParseMoney(text string) (Money, error) {
	whole, part, _ := strings.Cut(strings.TrimPrefix(text, "$"), ".")
	if len(part) > 9 {
		part = part[:9]
	}
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", 9-len(part)), 10, 62)
	if err != nil || whole == "" {
		return 0, fault.New(fault.Invalid, "%q is not an amount of money; it is like 2.50", text)
	}
	return Money(n), nil
}

// String is the amount in dollars.
func (m Money) String() string {
	return fmt.Sprintf("$%d.%04d", m/1e9, m%1e9/1e5)
}

// Prices are what a million tokens cost.
type Prices struct{ Input, Output Money }

// of is what a request cost. Where the provider takes less for cached tokens
// it is an upper bound.
func (p Prices) of(input, output int64) Money {
	return Money((float64(input)*float64(p.Input) + float64(output)*float64(p.Output)) / 1e6)
}

// Limits are what may be spent; 0 is without limit.
type Limits struct {
	Tokens int64
	Money  Money
	Turns  int64
	// WallTime counts from the first turn, across restarts.
	WallTime time.Duration
}

// Spent is what has been spent.
type Spent struct {
	Version int       `json:"version"`
	Tokens  int64     `json:"tokens"`
	Money   Money     `json:"nano_dollars"`
	Turns   int64     `json:"turns"`
	Since   time.Time `json:"since,omitzero"`
}

// Ledger keeps what was spent across restarts.
type Ledger interface {
	Load(ctx context.Context) (Spent, error)
	Save(ctx context.Context, s Spent) error
}

// Budget is a hard stop: a request that would exceed it is not made. What a
// request may cost at most is counted before it is made, and replaced by what
// it did cost afterwards, so a crash in between spends too much rather than too
// little. Safe for concurrent use.
type Budget struct {
	limits Limits
	prices Prices
	ledger Ledger

	mu    sync.Mutex
	spent Spent
}

// NewBudget begins with what the ledger says was spent. A nil ledger forgets
// with the process.
func NewBudget(ctx context.Context, limits Limits, prices Prices, ledger Ledger) (*Budget, error) {
	if limits.Tokens < 0 || limits.Money < 0 || limits.Turns < 0 || limits.WallTime < 0 {
		return nil, fault.New(fault.Invalid, "a budget must not be negative")
	}
	if limits.Money > 0 && prices == (Prices{}) {
		return nil, fault.New(fault.Invalid, "a budget of money needs the model's prices for a million tokens")
	}
	b := &Budget{limits: limits, prices: prices, ledger: ledger, spent: Spent{Version: 1}}
	if ledger != nil {
		spent, err := ledger.Load(ctx)
		if err != nil {
			return nil, err
		}
		if spent.Version > 1 {
			return nil, fault.New(fault.Invalid, "the budget was written by a newer version of parley (format %d)", spent.Version)
		}
		spent.Version = 1
		b.spent = spent
	}
	return b, nil
}

// Spent is what has been spent, with what running requests may cost.
func (b *Budget) Spent() Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// grant is the permission for one request.
type grant struct {
	budget        *Budget
	input, output int64 // counted so far
	// Output is how many tokens the model may write; 0 is without limit.
	Output int64
	// Until is when the time is over; zero is never.
	Until time.Time
}

// unknownOutput is counted for a reply whose length nothing limits.
const unknownOutput = 4096

// begin grants a request of about so many tokens, or says what is spent.
func (b *Budget) begin(ctx context.Context, turn bool, input, output int64) (*grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	g := &grant{budget: b, input: input, Output: output}
	next := b.spent
	if next.Since.IsZero() {
		next.Since = now.UTC()
	}
	if turn {
		next.Turns++
	}
	if most := b.limits.Turns; most > 0 && next.Turns > most {
		return nil, over("%d turns", most)
	}
	if most := b.limits.WallTime; most > 0 {
		if g.Until = next.Since.Add(most); !now.Before(g.Until) {
			return nil, over("%v of time", most)
		}
	}
	if most := b.limits.Tokens; most > 0 {
		left := most - next.Tokens - input
		if left <= 0 {
			return nil, over("%d tokens", most)
		}
		g.Output = least(g.Output, left)
	}
	if most := b.limits.Money; most > 0 {
		left := most - next.Money - b.prices.of(input, 0)
		if left <= 0 {
			return nil, over("%v", most)
		}
		if b.prices.Output > 0 {
			affordable := int64(left) / max(1, int64(b.prices.Output)/1e6)
			if affordable <= 0 {
				return nil, over("%v", most)
			}
			g.Output = least(g.Output, affordable)
		}
	}
	if g.output = g.Output; g.output == 0 {
		g.output = unknownOutput
	}
	next.Tokens += g.input + g.output
	next.Money += b.prices.of(g.input, g.output)
	return g, b.save(ctx, next)
}

// settle replaces what was granted by what was used.
func (g *grant) settle(ctx context.Context, used provider.Usage) error {
	b := g.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	input, output := plausible(used.Prompt), plausible(used.Completion)
	next := b.spent
	next.Tokens += input + output - g.input - g.output
	next.Money += b.prices.of(input, output) - b.prices.of(g.input, g.output)
	g.input, g.output = input, output
	return b.save(ctx, next)
}

// plausible keeps a provider's count to what a request can use.
func plausible(tokens int64) int64 { return min(max(tokens, 0), 1e9) }

// save keeps what is spent. The caller holds the lock.
func (b *Budget) save(ctx context.Context, next Spent) error {
	if b.ledger != nil {
		if err := b.ledger.Save(ctx, next); err != nil {
			return fault.Wrap(fault.Unavailable, err, "what the budget has spent cannot be stored, so nothing more is spent: %v", err)
		}
	}
	b.spent = next
	return nil
}

// over is the refusal of a request past the budget.
func over(format string, args ...any) error {
	return fault.New(fault.RateLimited, "the budget of "+format+" is spent; raise it to go on", args...)
}

// least is the smaller limit of two, of which the first may be none.
func least(a, b int64) int64 {
	if a <= 0 {
		return b
	}
	return min(a, b)
}
