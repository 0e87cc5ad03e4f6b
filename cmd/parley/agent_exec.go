package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/agent"
	agentprogram "github.com/parley-hub/parley/agent/program"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/identity"
)

// execFlags are the flags for running a program.
type execFlags struct {
	name, token, instructions string
	timeout                   time.Duration
	output                    int
	noTools                   bool
}

func (a *app) agentExec() *cobra.Command {
	var f execFlags
	c := a.withHub(&cobra.Command{
		Use:   "exec --name NAME [flags] -- COMMAND...",
		Short: "Take part under a name and let a program answer",
		Long: `Take part under a name and let a program answer. For each turn the program is
started, reads one JSON object from standard input and prints one to standard
output, such as {"text":"hello"}; {} stays silent. It may call the tools that the
turn lists, and is then run again with their results. Their schemas:

  parley schema show agent-turn
  parley schema show agent-answer

A program that takes too long or prints too much is ended, with all that it
started. What it prints to standard error is shown here, and nowhere else.
PARLEY_TOKEN is not in its environment.`,
		Example: `  parley agent exec --name clock -- sh -c 'printf "{\"text\":\"%s\"}" "$(date)"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("COMMAND is missing: parley agent exec --name NAME -- COMMAND")
			}
			return nil
		},
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		return a.execAgent(ctx, hub, f, args)
	})
	flags := c.Flags()
	flags.StringVar(&f.name, "name", "", "`NAME` to take part under")
	addAgentToken(c, &f.token)
	flags.StringVar(&f.instructions, "instructions", "", "`FILE` whose text is given to the program as part of system")
	flags.DurationVar(&f.timeout, "timeout", agentprogram.DefaultTimeout, "`time` after which a run is ended")
	flags.IntVar(&f.output, "max-output", agentprogram.DefaultOutput, "most `bytes` a run may print")
	flags.BoolVar(&f.noTools, "no-tools", false, "give no network tools (delegate, peers, channels, tasks, context)")
	_ = c.MarkFlagRequired("name")
	return c
}

func (a *app) execAgent(ctx context.Context, hub *v1.Client, f execFlags, command []string) error {
	if f.timeout <= 0 || f.output <= 0 {
		return usageError("--timeout and --max-output must be more than 0")
	}
	model, err := agentprogram.New(command, agentprogram.Options{
		Env: without(a.environ, "PARLEY_TOKEN"), Timeout: f.timeout, Output: f.output, Stderr: cleanWriter{a.err},
	})
	if err != nil {
		return err
	}
	system, err := a.instructions(f.instructions)
	if err != nil {
		return err
	}
	who := identity.Passport{Name: f.name}
	return a.takePart(ctx, hub, who, f.token, func(ctx context.Context, me *client.Identity, log *slog.Logger) error {
		return agent.New(me, model, agent.Options{System: system, NoNetworkTools: f.noTools, RoutingTools: true, Log: log}).Run(ctx)
	})
}

// instructions returns the text of a file, or "" if none is named.
func (a *app) instructions(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	raw, err := a.read(file)
	return strings.TrimSpace(string(raw)), err
}

// without returns an environment without a variable.
func without(environ []string, name string) []string {
	kept := make([]string, 0, len(environ))
	for _, entry := range environ {
		if !strings.HasPrefix(entry, name+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}
