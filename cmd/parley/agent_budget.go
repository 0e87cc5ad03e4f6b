package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message/provider"
)

// hubPurse spends from the budgets that the hub keeps: the agent's own, and those of
// the agents that delegated to it.
type hubPurse struct {
	hub    *v1.Client
	agent  string
	prices v1.Prices
	log    *slog.Logger
}

// Begin requests a grant from the hub, and waits while the hub is away: nothing is
// spent without a grant.
func (p *hubPurse) Begin(ctx context.Context, t *agent.Turn, c runner.Charge) (*runner.Grant, error) {
	task := t.Delegation()
	var granted *v1.Grant
	err := untilAnswered(ctx, func() (err error) {
		granted, err = p.hub.Grant(ctx, p.agent, v1.GrantAsk{Task: task, Turn: c.Turn, Input: c.Input, Output: c.Output, Prices: p.prices})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Output = granted.Output
	return &runner.Grant{
		Charge: c, ID: granted.ID, Task: task, Until: granted.Until,
		Late: fault.New(fault.RateLimited, "the budget's time is over; raise it to go on"),
	}, nil
}

// Settle reports what was used to the hub. If the hub stays away, the whole grant
// remains counted.
func (p *hubPurse) Settle(ctx context.Context, g *runner.Grant, used provider.Usage) error {
	if g.ID == "" {
		return nil
	}
	err := untilAnswered(ctx, func() error {
		return p.hub.SettleGrant(ctx, p.agent, g.ID, g.Task, used.Prompt, used.Completion)
	})
	if err != nil {
		p.log.WarnContext(ctx, "what a request used is not stored; what it might have used stays counted", "error", err)
	}
	return nil
}

// untilAnswered retries while the hub is away.
func untilAnswered(ctx context.Context, ask func() error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := ask()
		var refusal *fault.Error
		if err == nil || errors.As(err, &refusal) && (!fault.Retryable(err) || fault.CodeOf(err) == fault.RateLimited) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// openBudget makes the purse of an agent: from a file if one is named, else from the
// hub's budget, which the agents that it delegates to also spend from.
func (f *budgetFlags) openBudget(ctx context.Context, hub *v1.Client, agentID string, log *slog.Logger) (runner.Purse, error) {
	if f.file != "" {
		return f.open(ctx)
	}
	limits, prices, err := f.limits()
	if err != nil {
		return nil, err
	}
	purse := &hubPurse{hub: hub, agent: agentID, prices: v1.Prices{Input: int64(prices.Input), Output: int64(prices.Output)}, log: log}
	if limits != (runner.Limits{}) {
		_, err = hub.SetBudget(ctx, agentID, v1Limits(limits), purse.prices)
	}
	return purse, err
}

func v1Limits(l runner.Limits) v1.BudgetLimits {
	return v1.BudgetLimits{Tokens: l.Tokens, NanoDollars: int64(l.Money), Turns: l.Turns, WallTime: l.WallTime}
}

func (a *app) agentsBudget() *cobra.Command {
	var f budgetFlags
	var remove bool
	c := a.withHub(&cobra.Command{
		Use:   "budget NAME",
		Short: "Show or set what an agent's models may spend",
		Long: `Show what an agent's models may spend and have spent, or set it. The budget is kept
by the hub, is a hard stop, and holds for all agents that it delegates to as well,
however deep. What was spent stays when a limit is changed; --remove forgets it.`,
		Example: `  parley agents budget alice --budget-tokens 200000
  parley agents budget alice
  parley agents budget alice --remove`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		limits, prices, err := f.limits()
		if err != nil {
			return err
		}
		var b *v1.Budget
		switch {
		case remove && limits != (runner.Limits{}):
			return usageError("--remove removes the whole budget; give it without other flags")
		case remove:
			if err := hub.RemoveBudget(ctx, args[0]); err != nil {
				return err
			}
			return a.print(map[string]any{"removed": true}, linef("%s  no budget", cell(args[0])))
		case limits != (runner.Limits{}):
			b, err = hub.SetBudget(ctx, args[0], v1Limits(limits), v1.Prices{Input: int64(prices.Input), Output: int64(prices.Output)})
		default:
			b, err = hub.Budget(ctx, args[0])
		}
		if err != nil {
			return err
		}
		return a.print(b.Raw, linef("%s  %s", cell(args[0]), budgetText(b)))
	})
	f.addLimits(c.Flags())
	c.Flags().BoolVar(&remove, "remove", false, "remove the budget, and forget what was spent")
	return c
}

// budgetText returns a budget on one line.
func budgetText(b *v1.Budget) string {
	var parts []string
	add := func(name string, spent, most any, limited bool) {
		if limited {
			parts = append(parts, fmt.Sprintf("%v of %v %s", spent, most, name))
		}
	}
	add("tokens", b.Spent.Tokens, b.Limits.Tokens, b.Limits.Tokens > 0)
	add("spent", runner.Money(b.Spent.NanoDollars), runner.Money(b.Limits.NanoDollars), b.Limits.NanoDollars > 0)
	add("turns", b.Spent.Turns, b.Limits.Turns, b.Limits.Turns > 0)
	if b.Limits.WallTime > 0 {
		until := "the first turn"
		if b.Spent.Since != nil {
			until = b.Spent.Since.UTC().Format(time.RFC3339)
		}
		parts = append(parts, fmt.Sprintf("%v from %s", b.Limits.WallTime, until))
	}
	return strings.Join(parts, ", ")
}
