package runner

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/agent"
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

// String returns the amount in dollars.
func (m Money) String() string {
	return fmt.Sprintf("$%d.%04d", m/1e9, m%1e9/1e5)
}

// Prices are what a million tokens cost.
type Prices struct {
	Input  Money `json:"input_nano_dollars,omitzero"`
	Output Money `json:"output_nano_dollars,omitzero"`
}

// of returns what a request cost. Where the provider takes less for cached
// tokens it is an upper bound.
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

// Check refuses limits that mean nothing.
func (l Limits) Check(prices Prices) error {
	if l.Tokens < 0 || l.Money < 0 || l.Turns < 0 || l.WallTime < 0 || prices.Input < 0 || prices.Output < 0 {
		return fault.New(fault.Invalid, "a budget must not be negative")
	}
	if l.Money > 0 && prices == (Prices{}) {
		return fault.New(fault.Invalid, "a budget of money needs the model's prices for a million tokens")
	}
	return nil
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

// Charge is what one request is about to use.
type Charge struct {
	Turn   bool  // it begins a turn
	Input  int64 // tokens that the model reads, about
	Output int64 // tokens that it may write; 0 is without limit
}

// Allow returns how many tokens a reply may have (0 is no limit) and until when
// it may come (zero is no limit), or an error that names the limit that is spent.
func (l Limits) Allow(spent Spent, prices Prices, c Charge, now time.Time) (output int64, until time.Time, err error) {
	output = c.Output
	if most := l.Turns; most > 0 && c.Turn && spent.Turns >= most {
		return 0, until, over("%d turns", most)
	}
	if most := l.WallTime; most > 0 {
		since := spent.Since
		if since.IsZero() {
			since = now
		}
		if until = since.Add(most); !now.Before(until) {
			return 0, until, over("%v of time", most)
		}
	}
	if most := l.Tokens; most > 0 {
		left := most - spent.Tokens - c.Input
		if left <= 0 {
			return 0, until, over("%d tokens", most)
		}
		output = least(output, left)
	}
	if most := l.Money; most > 0 {
		left := most - spent.Money - prices.of(c.Input, 0)
		if left <= 0 {
			return 0, until, over("%v", most)
		}
		if prices.Output > 0 {
			affordable := int64(left) / max(1, int64(prices.Output)/1e6)
			if affordable <= 0 {
				return 0, until, over("%v", most)
			}
			output = least(output, affordable)
		}
	}
	return output, until, nil
}

// Begin adds the most that an allowed request can cost to what is spent.
func (s Spent) Begin(prices Prices, c Charge, now time.Time) Spent {
	if s.Since.IsZero() {
		s.Since = now.UTC()
	}
	if c.Turn {
		s.Turns++
	}
	s.Tokens += c.Input + c.counted()
	s.Money += prices.of(c.Input, c.counted())
	return s
}

// Settle replaces the cost that was counted for a request by what the request used.
func (s Spent) Settle(prices Prices, c Charge, input, output int64) Spent {
	input, output = plausible(input), plausible(output)
	s.Tokens = max(0, s.Tokens+input+output-c.Input-c.counted())
	s.Money = max(0, s.Money+prices.of(input, output)-prices.of(c.Input, c.counted()))
	return s
}

// unknownOutput is counted for a reply whose length nothing limits.
const unknownOutput = 4096

func (c Charge) counted() int64 {
	return cmp.Or(c.Output, unknownOutput)
}

// Grant is the permission for one request.
type Grant struct {
	// Charge is what was counted; its Output is how many tokens the model may
	// write.
	Charge
	// Until is when the time is over; zero is never. Late is the error after that.
	Until time.Time
	Late  error
	// ID and Task are for a purse that keeps its grants elsewhere: the grant's
	// id and the delegation that it was given for.
	ID, Task string
}

// Purse grants requests and counts what they cost. It is a hard stop: a request
// that is not granted is not made.
type Purse interface {
	// Begin grants a request for a turn, or returns an error that names the
	// limit that is spent.
	Begin(ctx context.Context, t *agent.Turn, c Charge) (*Grant, error)
	// Settle replaces what was granted by what was used.
	Settle(ctx context.Context, g *Grant, used provider.Usage) error
}

// Budget is a purse of this process. What a request may cost at most is counted
// before it is made, and replaced by what it did cost afterwards, so a crash in
// between spends too much rather than too little. Safe for concurrent use.
type Budget struct {
	limits Limits
	prices Prices
	ledger Ledger

	mu    sync.Mutex
	spent Spent
}

var _ Purse = (*Budget)(nil)

// NewBudget begins with what the ledger says was spent. A nil ledger forgets
// with the process.
func NewBudget(ctx context.Context, limits Limits, prices Prices, ledger Ledger) (*Budget, error) {
	if err := limits.Check(prices); err != nil {
		return nil, err
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

// Spent returns what has been spent, with what running requests may cost.
func (b *Budget) Spent() Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// Begin grants a request of about so many tokens, or returns an error that
// names the limit that is spent.
func (b *Budget) Begin(ctx context.Context, _ *agent.Turn, c Charge) (*Grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	output, until, err := b.limits.Allow(b.spent, b.prices, c, now)
	if err != nil {
		return nil, err
	}
	c.Output = output
	return &Grant{Charge: c, Until: until, Late: over("%v of time", b.limits.WallTime)}, b.save(ctx, b.spent.Begin(b.prices, c, now))
}

// Settle replaces what was granted by what was used.
func (b *Budget) Settle(ctx context.Context, g *Grant, used provider.Usage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.save(ctx, b.spent.Settle(b.prices, g.Charge, used.Prompt, used.Completion))
}

// plausible limits a provider's count to what a request can use.
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

// over returns the refusal of a request past the budget.
func over(format string, args ...any) error {
	return fault.New(fault.RateLimited, "the budget of "+format+" is spent; raise it to go on", args...)
}

// least returns the smaller limit of two, of which the first may be none.
func least(a, b int64) int64 {
	if a <= 0 {
		return b
	}
	return min(a, b)
}
