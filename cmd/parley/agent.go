package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/scripted"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) agent() *cobra.Command {
	return group("agent", "Run a participant", a.agentEcho(), a.agentScript(), a.agentExec(), a.agentRun())
}

func (a *app) agentEcho() *cobra.Command {
	var stream bool
	var pause time.Duration
	var token string
	c := &cobra.Command{
		Use:   "echo NAME",
		Short: "Take part under a name and repeat what is said",
		Long: `Take part under a name and repeat what is said.

With --stream it is a remote producer of HPD runs instead: it answers the inputs of
HPD clients for the agent NAME over HTTP, one event for each word, as a model
streams its answer. A run goes on where it was when the hub or the producer restarts.`,
		Example: `  parley agent echo parrot
  parley agent echo parrot --stream`,
		Args: cobra.ExactArgs(1),
	}
	c = a.withHub(c, func(ctx context.Context, hub *v1.Client, args []string) error {
		if stream {
			return a.echoStream(ctx, hub, args[0], token, pause)
		}
		if c.Flags().Changed("pause") {
			return usageError("--pause is for --stream")
		}
		return a.saysLines(ctx, hub, args[0], token, scripted.Echo)
	})
	addAgentToken(c, &token)
	c.Flags().BoolVar(&stream, "stream", false, "produce for HPD clients, a word at a time")
	c.Flags().DurationVar(&pause, "pause", 20*time.Millisecond, "with --stream: `time` between the words")
	return c
}

func (a *app) agentScript() *cobra.Command {
	return a.withAgent(&cobra.Command{
		Use:   "script NAME FILE",
		Short: "Take part under a name and say the lines of a file, one each turn",
		Long: `Take part under a name and say the lines of a YAML file, one for each turn:

  - say: Looks like the database.
    set: {area: database}
  - handoff: network
    reason: packet loss
  - finish: resolved

The FILE - is standard input.`,
		Example: "  parley agent script triage lines.yaml",
		Args:    cobra.ExactArgs(2),
	}, func(args []string) (scripted.Lines, error) {
		raw, err := a.read(args[1])
		if err != nil {
			return nil, err
		}
		var lines []scripted.Line
		decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
		decoder.KnownFields(true)
		if err := decoder.Decode(&lines); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w; it is a list of lines like - say: hello", args[1], scripted.Explain(err))
		}
		return scripted.Script(lines), nil
	})
}

// withAgent gives a command the flags that find a hub, and runs it as a participant
// that says lines until it is stopped.
func (a *app) withAgent(c *cobra.Command, lines func(args []string) (scripted.Lines, error)) *cobra.Command {
	var token string
	c = a.withHub(c, func(ctx context.Context, hub *v1.Client, args []string) error {
		says, err := lines(args)
		if err != nil {
			return err
		}
		return a.saysLines(ctx, hub, args[0], token, says)
	})
	addAgentToken(c, &token)
	return c
}

// saysLines takes part under a name and says lines until it is stopped.
func (a *app) saysLines(ctx context.Context, hub *v1.Client, name, token string, says scripted.Lines) error {
	return a.takePart(ctx, hub, identity.Passport{Name: name}, token, func(ctx context.Context, me *client.Identity, _ *slog.Logger) error {
		return (&scripted.Participant{Link: me, Lines: says}).Run(ctx)
	})
}

func addAgentToken(c *cobra.Command, token *string) {
	c.Flags().StringVar(token, "token", "", "the `TOKEN` that proves the name, from parley keys add --agent NAME; PARLEY_TOKEN is not visible to others, as this is")
}

// agentToken returns the token for a name: that of the flag, which other users of the
// machine can see, or the command's own, if it is that agent's.
func (a *app) agentToken(ctx context.Context, hub *v1.Client, name, token string) (string, error) {
	if token != "" {
		fmt.Fprintln(cleanWriter{a.err}, "parley: --token is visible to everyone who can list this machine's processes; set PARLEY_TOKEN instead")
		return token, nil
	}
	if hub.Token() == "" {
		return "", nil
	}
	var who struct {
		Agent string `json:"agent"`
	}
	if err := hub.Call(ctx, http.MethodGet, "/v1/session", nil, &who); err != nil {
		return "", err
	}
	if who.Agent != name {
		return "", nil
	}
	return hub.Token(), nil
}

// takePart connects to a hub under a name, prints that, and runs as that participant
// until it is stopped.
func (a *app) takePart(ctx context.Context, hub *v1.Client, who identity.Passport, token string,
	run func(ctx context.Context, me *client.Identity, log *slog.Logger) error,
) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log, err := newLog(a.err, config.Log{Level: "warn", Format: "auto"})
	if err != nil {
		return err
	}
	if token, err = a.agentToken(ctx, hub, who.Name, token); err != nil {
		return err
	}
	opts := client.Options{Log: log, HTTP: hub.HTTP(), Again: func() string { return webSocket(hub.Relocate()) }}
	at := hub.Addresses()
	if strings.Contains(at, ",") {
		opts.Again = nil // the client finds the serving node itself
	}
	link, err := client.Dial(ctx, webSocket(at), opts)
	if err != nil {
		// What answers there tells more over HTTP than a handshake that failed.
		if _, why := hub.Health(ctx); errors.Is(why, v1.ErrTLS) || errors.Is(why, v1.ErrNoHub) {
			return why
		}
		return err
	}
	defer link.Close()
	who.Auth = identity.Auth{Scheme: identity.SchemeNone}
	if token != "" {
		claim, err := json.Marshal(map[string]string{"token": token})
		if err != nil {
			return err
		}
		who.Auth = identity.Auth{Scheme: identity.SchemeAPIKey, Claim: claim}
	}
	me, err := link.Attach(ctx, client.Registration{Passport: who})
	if err != nil {
		return err
	}
	err = a.print(map[string]string{"name": who.Name, "agent_id": me.ID()}, linef("%s takes part as %s; stop with Ctrl+C", who.Name, me.ID()))
	if err != nil {
		return err
	}
	return run(ctx, me, log)
}

// webSocket returns the address of AG2's protocol for a hub's URL.
func webSocket(urls string) string {
	list := strings.Split(urls, ",")
	for i, url := range list {
		list[i] = "ws" + strings.TrimPrefix(url, "http")
	}
	return strings.Join(list, ",")
}
