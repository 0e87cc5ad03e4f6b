package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/budget"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/hosted"
)

// hostOf runs agent definitions in this process, if agents.hosted says so. The
// providers' keys come from the environment of the hub.
func hostOf(cfg config.Config, h *hub.Hub, log *slog.Logger) (*hosted.Host, error) {
	if !cfg.Agents.Hosted {
		return nil, nil
	}
	limits, prices, err := hostedLimits(cfg.Agents)
	if err != nil {
		return nil, err
	}
	environ := os.Environ()
	return hosted.New(hosted.Config{
		Open: func(ctx context.Context, name, endpoint string) (runner.Provider, runner.Secret, error) {
			flags := &providerFlags{name: name, baseURL: endpoint}
			key, err := (&app{environ: environ}).providerKey(flags)
			if err != nil {
				return nil, runner.Secret{}, fault.New(fault.Invalid, "the hub cannot ask the provider %.100q: %v", name, err)
			}
			p, err := flags.open(ctx, key)
			return p, key, err
		},
		Budgets: &budget.Store{Hub: h}, Limits: limits, Prices: prices, Runs: cfg.Agents.Runs, Log: log,
	}), nil
}

// hostedLimits returns what each definition may spend.
func hostedLimits(a config.Agents) (limits budget.Limits, prices runner.Prices, err error) {
	limits = budget.Limits{Tokens: int64(a.Tokens), Turns: int64(a.Turns), Nanoseconds: int64(a.Time)}
	for _, one := range []struct {
		text string
		into *runner.Money
	}{{a.Money, &limits.Money}, {a.PriceInput, &prices.Input}, {a.PriceOutput, &prices.Output}} {
		if *one.into, err = runner.ParseMoney(one.text); err != nil {
			return limits, prices, err
		}
	}
	if limits.Money > 0 && prices == (runner.Prices{}) {
		err = fault.New(fault.Invalid, "agents.money needs the prices of the model: set agents.price_input and agents.price_output")
	}
	return limits, prices, err
}

// definitions is the store of agent definitions.
type definitions interface {
	Definition(ctx context.Context, id string) (wire.StoredAgent, error)
}

// hostedChats finds the definitions for chat sessions.
func hostedChats(host *hosted.Host, all dialects) func(ctx context.Context, agent string) (chat.Hosted, bool, error) {
	if host == nil {
		return nil
	}
	return func(ctx context.Context, agent string) (chat.Hosted, bool, error) {
		for _, d := range all {
			stored, ok := d.(definitions)
			if !ok {
				continue
			}
			a, err := stored.Definition(ctx, agent)
			if fault.CodeOf(err) == fault.NotFound {
				continue
			}
			return host.Chat(a), err == nil, err
		}
		return nil, false, nil
	}
}
