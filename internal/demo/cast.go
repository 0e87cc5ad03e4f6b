package demo

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/scripted"
)

// The lines of the demo. Nobody here has a model.
var lines = map[string][]scripted.Line{
	"triage": {
		{Say: "Checkout is slow since 14:02, errors from the order store.", Set: map[string]any{"area": "database", "severity": 2}},
		{Say: "Failed over, checkout is fast again. Closing.", Finish: "resolved"},
	},
	"database": {{Say: "Queries are fine, but db-3 drops packets.", Handoff: "network", Tool: "hand_over", Reason: "packet loss on db-3"}},
	"network":  {{Say: "The switch port of db-3 is failing. Plan: drain db-3, promote its replica, then restart it. Approve?"}},
	"hana":     {{Say: "Never mind."}, {Say: "Approved, without the restart."}},
}

const (
	correction = "Do not restart db-3: it holds the only copy of today's backup."
	slow       = 400 * time.Millisecond // what a step takes that nobody waits for
)

// routes routes by speaker and by context.
func routes(id func(string) string) string {
	return fmt.Sprintf(`{"initial_speaker":%[1]q,"transitions":[
{"when":{"name":"from_speaker","args":{"agent_id":%[3]q}},"then":{"name":"agent","args":{"agent_id":%[4]q}}},
{"when":{"name":"from_speaker","args":{"agent_id":%[4]q}},"then":{"name":"agent","args":{"agent_id":%[1]q}}},
{"when":{"name":"context_equals","args":{"key":"area","value":"database"}},"then":{"name":"agent","args":{"agent_id":%[2]q}}},
{"when":{"name":"context_equals","args":{"key":"area","value":"network"}},"then":{"name":"agent","args":{"agent_id":%[3]q}}}],
"default_target":{"name":"terminate","args":{"reason":"nobody_responsible"}},"max_turns":12}`,
		id("triage"), id("database"), id("network"), id("hana"))
}

// cast is everyone who takes part, each on a connection of its own.
type cast struct {
	links  map[string]*client.Identity
	conns  []*client.Client
	plays  sync.WaitGroup
	cancel context.CancelFunc

	// resumed is closed when the hub is back and hana's word is there again:
	// network has worked until then.
	resumed chan struct{}

	mu    sync.Mutex
	heard map[string][]string // by name: ids of what was delivered
}

func assemble(ctx context.Context, hubURL string) (*cast, error) {
	c := &cast{links: map[string]*client.Identity{}, heard: map[string][]string{}, resumed: make(chan struct{})}
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range []string{"triage", "database", "network", "hana"} {
		conn, err := client.Dial(ctx, "ws"+strings.TrimPrefix(hubURL, "http"), client.Options{Log: quiet, MaxBackoff: 500 * time.Millisecond})
		if err != nil {
			c.leave()
			return nil, err
		}
		c.conns = append(c.conns, conn)
		who := identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}
		if name == "hana" {
			who.Kind = identity.Human
		}
		if c.links[name], err = conn.Attach(ctx, client.Registration{Passport: who}); err != nil {
			c.leave()
			return nil, err
		}
	}
	return c, nil
}

func (c *cast) id(name string) string { return c.links[name].ID() }

// ids are everyone's, by name.
func (c *cast) ids() map[string]string {
	ids := map[string]string{}
	for name := range c.links {
		ids[name] = c.id(name)
	}
	return ids
}

// perform lets everyone play their lines.
func (c *cast) perform(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	for name, link := range c.links {
		p := &scripted.Participant{Link: link, Lines: scripted.Script(lines[name])}
		if name == "network" {
			p.Lines = c.atWork(ctx, p.Lines)
		}
		p.Heard = func(e *envelope.Envelope) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.heard[name] = append(c.heard[name], e.ID)
		}
		c.plays.Go(func() { _ = p.Run(ctx) }) // what goes wrong shows in the log that is checked
	}
}

// atWork are lines that are said once the hub is back.
func (c *cast) atWork(ctx context.Context, lines scripted.Lines) scripted.Lines {
	return func(said int, heard string) (scripted.Line, bool) {
		select {
		case <-c.resumed:
		case <-ctx.Done():
		}
		return lines(said, heard)
	}
}

// awaitHana waits until hana is back at the hub, and gives her word the time to
// follow: network would end the round before it.
func (c *cast) awaitHana(ctx context.Context, url string) error {
	hub, err := v1.New(url, v1.Options{})
	if err != nil {
		return err
	}
	for {
		hana, err := hub.Agent(ctx, c.id("hana"))
		if err != nil {
			return err
		}
		wait := slow / 8
		if hana.Online {
			wait = 2 * slow
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		if hana.Online {
			return nil
		}
	}
}

func (c *cast) leave() {
	if c.cancel != nil {
		c.cancel()
	}
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.plays.Wait()
}

// open opens the incident's channel, as triage, and says the first line.
func (c *cast) open(ctx context.Context) (string, error) {
	knobs := fmt.Sprintf(`{"graph":%s,"supervisors":[%q]}`, routes(c.id), c.id("hana"))
	m, err := c.links["triage"].OpenChannel(ctx, agent.Opening{
		Type: "workflow", Participants: []string{c.id("database"), c.id("network"), c.id("hana")},
		Knobs: []byte(knobs), Intent: "incident",
	})
	if err != nil {
		return "", err
	}
	triage := &scripted.Participant{Link: c.links["triage"]}
	return m.ID, triage.Speak(ctx, m, lines["triage"][0], "")
}

// correct is hana's word while network works: it waits for the round to end.
func (c *cast) correct(ctx context.Context, channel string) error {
	for {
		_, err := c.links["hana"].Post(ctx, &envelope.Envelope{
			Channel: channel, Sender: c.id("hana"), Type: envelope.TypeText, Key: "correction",
			Data: fmt.Appendf(nil, `{"text":%q}`, correction),
		})
		if !fault.Retryable(err) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
