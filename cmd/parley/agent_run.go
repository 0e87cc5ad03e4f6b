package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	agentprogram "github.com/parley-hub/parley/agent/program"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/identity"
)

// runFlags are the flags for a model, its tools and its budget.
type runFlags struct {
	name, token, instructions string
	provider                  providerFlags
	tools, confirm            []string
	confirmFor                string
	confirmWait               time.Duration
	budget                    budgetFlags
}

func (a *app) agentRun() *cobra.Command {
	var f runFlags
	c := a.withHub(&cobra.Command{
		Use:   "run --name NAME --provider PROVIDER --model MODEL",
		Short: "Take part under a name and let a provider's model answer",
		Long: `Take part under a name and let a provider's model answer. The model has the tools
of the network (delegate, peers, channels, tasks, context), and in a workflow also
handoff, finish and the tools by whose names the graph routes.

The provider's key is read from OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY
(or GOOGLE_API_KEY) or, for openai-compatible, OPENAI_COMPATIBLE_API_KEY, from the
variable that --key-env names, or from a file. It is sent to the provider and
nowhere else.

With --tools FILE.json the model also gets programs of your own as tools (schema:
parley schema show agent-tools). For each call the program is started, reads the
arguments from standard input and prints the result. One that takes too long or
prints too much is ended, with all that it started. Its environment has neither
PARLEY_TOKEN nor a provider's key.

A tool named with --confirm, or marked so in its file, runs only once a person has approved the call:
parley requests list shows what waits.

A budget is a hard stop: once it is spent, turns fail and the provider is not asked.
The hub keeps it, so it holds across restarts, and for every agent that the model
delegates to, however deep (parley agents budget NAME).`,
		Example: `  parley agent run --name triage --provider anthropic --model claude-sonnet-4-5 --instructions triage.md
  parley agent run --name triage --provider openai --model gpt-5 --confirm delegate --budget-tokens 100000
  parley agent run --name triage --provider openai --model gpt-5 --tools all,tools.json
  parley agent run --name local --provider openai-compatible --base-url http://127.0.0.1:8000/v1 --model llama`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		return a.runAgent(ctx, hub, &f)
	})
	flags := c.Flags()
	flags.StringVar(&f.name, "name", "", "`NAME` to take part under")
	addAgentToken(c, &f.token)
	flags.StringVar(&f.instructions, "instructions", "", "`FILE` with what the model is told about its part")
	flags.StringSliceVar(&f.tools, "tools", []string{"all"}, "tools that the model gets, by `NAME`: all, none, or some of delegate, peers, channels, tasks, context; and FILE.json with programs of your own, beside them")
	flags.StringSliceVar(&f.confirm, "confirm", nil, "`tools` that run only once a person approves the call; all for every one")
	flags.StringVar(&f.confirmFor, "confirm-by", "", "`NAME` of who is asked to approve (default any person of the channel)")
	flags.DurationVar(&f.confirmWait, "confirm-wait", 0, "`time` until a call that nobody approved is refused (default the channel's)")
	f.provider.add(flags)
	f.budget.add(flags)
	for _, name := range []string{"name", "provider", "model"} {
		_ = c.MarkFlagRequired(name)
	}
	return c
}

func (a *app) runAgent(ctx context.Context, hub *v1.Client, f *runFlags) error {
	tools, err := a.agentTools(f)
	if err != nil {
		return err
	}
	system, err := a.instructions(f.instructions)
	if err != nil {
		return err
	}
	if _, _, err := f.budget.limits(); err != nil {
		return err
	}
	secret, err := a.providerKey(&f.provider)
	if err != nil {
		return err
	}
	served, err := f.provider.open(ctx, secret)
	if err != nil {
		return err
	}
	options, err := f.provider.options(secret)
	if err != nil {
		return err
	}
	asked, err := f.requests(hub)
	if err != nil {
		return err
	}
	who := identity.Passport{Name: f.name, Provider: &f.provider.name, Model: &f.provider.model}
	return a.takePart(ctx, hub, who, f.token, func(ctx context.Context, me *client.Identity, log *slog.Logger) error {
		budget, err := f.budget.openBudget(ctx, asked, me.ID(), log)
		if err != nil && ctx.Err() != nil {
			return nil // stopped before it began
		}
		if err != nil {
			return err
		}
		options.Budget, options.Log = budget, log
		live := newDeltas(func(ctx context.Context, channel string, d agent.Delta) error {
			return asked.ShowLive(ctx, channel, me.ID(), envelope.TypeDelta, d)
		})
		defer live.run(ctx)()
		options.Observe = live.observe
		model, err := runner.New(served, options)
		if err != nil {
			return err
		}
		return agent.New(me, model, agent.Options{
			System: system, Tools: tools, NoNetworkTools: true, RoutingTools: true, TrackDelegations: true, Log: log,
			Confirm: agent.ConfirmBy(asked, agent.Confirmation{For: f.confirmFor, Wait: f.confirmWait}),
		}).Run(ctx)
	})
}

// requests returns the client that asks for approvals: as the agent, if it has a
// token.
func (f *runFlags) requests(hub *v1.Client) (*v1.Client, error) {
	if f.token == "" {
		return hub, nil
	}
	return hubAt(hub.Addresses(), v1.Options{Token: f.token, HTTP: hub.HTTP()})
}

// agentTools returns the model's tools: those of the network by name, and those in
// files; marked if they need approval.
func (a *app) agentTools(f *runFlags) ([]*agent.Tool, error) {
	var names []string
	var own []*agent.Tool
	for _, name := range f.tools {
		if !strings.HasSuffix(name, ".json") {
			names = append(names, name)
			continue
		}
		raw, err := a.read(name)
		if err != nil {
			return nil, err
		}
		env := a.environ
		for _, secret := range a.secretVariables(&f.provider) {
			env = without(env, secret)
		}
		tools, err := agentprogram.Tools(raw, agentprogram.Options{Env: env, Stderr: cleanWriter{a.err}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own = append(own, tools...)
	}
	if len(names) == 0 {
		names = []string{"all"} // tools of files are added to the default ones
	}
	given, err := pick("tools", names, agent.NetworkTools())
	if err != nil {
		return nil, err
	}
	reserved := append(agent.NetworkTools(), &agent.Tool{Name: agent.HandoffTool}, &agent.Tool{Name: agent.FinishTool}, &agent.Tool{Name: turn.Say})
	for i, tool := range own {
		if slices.ContainsFunc(append(reserved, own[:i]...), func(t *agent.Tool) bool { return t.Name == tool.Name }) {
			return nil, usageError("--tools: the name %q is taken; give the tool another name", tool.Name)
		}
	}
	given = append(slices.Clone(given), own...)
	confirmed, err := pick("confirm", f.confirm, given)
	if err != nil {
		return nil, err
	}
	for _, tool := range confirmed {
		tool.Confirm = true
	}
	return given, nil
}

// secretVariables are removed from a tool's environment.
func (a *app) secretVariables(f *providerFlags) []string {
	names := []string{"PARLEY_TOKEN", f.keyEnv}
	for _, known := range keyVariables {
		names = append(names, known...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// pick finds tools by name.
func pick(flag string, names []string, from []*agent.Tool) ([]*agent.Tool, error) {
	var picked []*agent.Tool
	for _, name := range names {
		switch name {
		case "all":
			return from, nil
		case "none":
			continue
		}
		found := false
		for _, tool := range from {
			if tool.Name == name {
				picked, found = append(picked, tool), true
			}
		}
		if !found {
			known := "all, none"
			for _, tool := range from {
				known += ", " + tool.Name
			}
			return nil, usageError("--%s: there is no tool %q; there are %s", flag, name, known)
		}
	}
	return picked, nil
}
