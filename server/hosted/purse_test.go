package hosted_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/server/budget"
	"github.com/parley-hub/parley/server/hosted"
)

// Four limits bound what definitions may spend, and the hub stores what was
// spent: another process continues where the first one stopped.
func TestDefinitionsHaveBudgets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits budget.Limits
		wait   time.Duration // before the second turn
		want   string
	}{
		"tokens": {budget.Limits{Tokens: 300}, 0, "300 tokens"},
		"money":  {budget.Limits{Money: 1_200_000}, 0, "$0.0012"},
		"turns":  {budget.Limits{Turns: 1}, 0, "1 turns"},
		"time":   {budget.Limits{Nanoseconds: int64(time.Minute)}, time.Minute, "1m0s of time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, err := mem.Open(mem.Options{Store: mem.NewStore()})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close() //nolint:errcheck // memory
			h, err := hub.Open(t.Context(), engine, hub.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			asked := 0
			model := answering(func(context.Context, *runner.Request, func(message.Envelope)) (provider.Reply, error) {
				asked++
				return provider.Reply{Messages: []message.Envelope{text("assistant", "done")}, Usage: &provider.Usage{Prompt: 100, Completion: 200}}, nil
			})
			now := time.Now()
			process := func() *hosted.Host {
				return hosted.New(hosted.Config{
					Runs: 1, Log: slog.New(slog.DiscardHandler), Limits: c.limits, Prices: runner.Prices{Input: 4e9, Output: 4e9},
					Budgets: &budget.Store{Hub: h, Now: func() time.Time { return now }},
					Open: func(context.Context, string, string) (runner.Provider, runner.Secret, error) {
						return model, runner.Secret{}, nil
					},
				})
			}
			if _, err := ask(process(), desk, func(string) {}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(c.wait)
			_, err = ask(process(), desk, func(string) {})
			if fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), c.want) || asked != 1 {
				t.Errorf("asked %d times: %v", asked, err)
			}
			b, err := (&budget.Store{Hub: h}).Read(t.Context(), "d-1")
			if err != nil || b == nil || b.Spent.Tokens != 300 || b.Spent.Turns != 1 || len(b.Open) != 0 {
				t.Errorf("kept %+v: %v", b, err)
			}
		})
	}
}
