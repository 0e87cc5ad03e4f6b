package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/internal/scripted"
	"github.com/parley-hub/parley/request"
)

// lines are the lines of the demo. Nobody here has a model.
var lines = map[string][]scripted.Line{
	"triage": {
		{Say: "Checkout is slow since 14:02, errors from the order store.", Set: map[string]any{"area": "database", "severity": 2}},
		{Say: "Then it is the network's.", Handoff: peerName, Tool: "hand_over", Reason: "packet loss on db-3"},
		{Say: "Failed over without a restart, checkout is fast again. Closing.", Finish: "resolved"},
	},
	"hana": {},
}

const (
	diagnosis  = "Queries are fine, but db-3 drops packets."
	plan       = "The switch port of db-3 is failing. Plan: drain db-3, promote its replica, no restart."
	correction = "Do not restart db-3: it holds the only copy of today's backup."
	question   = "Drain db-3 and promote its replica, without the restart?"
	slow       = 400 * time.Millisecond // how long a visible step takes
)

// routes returns a graph that routes by speaker and by context.
func routes(id func(string) string) string {
	return fmt.Sprintf(`{"initial_speaker":%[1]q,"transitions":[
{"when":{"name":"from_speaker","args":{"agent_id":%[2]q}},"then":{"name":"agent","args":{"agent_id":%[1]q}}},
{"when":{"name":"from_speaker","args":{"agent_id":%[3]q}},"then":{"name":"agent","args":{"agent_id":%[1]q}}},
{"when":{"name":"context_equals","args":{"key":"area","value":"database"}},"then":{"name":"agent","args":{"agent_id":%[2]q}}},
{"when":{"name":"context_equals","args":{"key":"area","value":"network"}},"then":{"name":"agent","args":{"agent_id":%[3]q}}}],
"default_target":{"name":"terminate","args":{"reason":"nobody_responsible"}},"max_turns":12}`,
		id("triage"), id("database"), id("network"))
}

// cast is everyone who takes part, each over a connection and a protocol of its own:
// triage and hana as AG2 clients, database over HPD, network as an AGH peer.
type cast struct {
	hub    *v1.Client
	links  map[string]*client.Identity
	conns  []*client.Client
	others map[string]string // ids of those without a link, by name
	stream *streamer
	peer   *peer
	plays  sync.WaitGroup
	cancel context.CancelFunc

	// resumed is closed when the hub is back and has hana's message again. Until
	// then network works.
	resumed chan struct{}

	mu     sync.Mutex
	opened string              // the incident's channel
	heard  map[string][]string // by name: ids of what was delivered
}

func assemble(ctx context.Context, p *process) (c *cast, err error) {
	c = &cast{links: map[string]*client.Identity{}, others: map[string]string{}, heard: map[string][]string{}, resumed: make(chan struct{})}
	defer func() {
		if err != nil {
			c.leave()
		}
	}()
	if c.hub, err = v1.New(p.url, v1.Options{}); err != nil {
		return c, err
	}
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range []string{"triage", "hana"} {
		conn, err := client.Dial(ctx, "ws"+strings.TrimPrefix(p.url, "http"), client.Options{Log: quiet, MaxBackoff: 500 * time.Millisecond})
		if err != nil {
			return c, err
		}
		c.conns = append(c.conns, conn)
		who := identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}
		if name == "hana" {
			who.Kind = identity.Human
		}
		if c.links[name], err = conn.Attach(ctx, client.Registration{Passport: who}); err != nil {
			return c, err
		}
	}
	database, err := c.hub.AddAgent(ctx, v1.Registration{Name: "database"})
	if err != nil {
		return c, err
	}
	c.others["database"] = database.Passport.ID
	c.stream = newStreamer(c.hub, "database", diagnosis, c.hears("database"))
	c.peer, err = joinPeer(ctx, c.hub, p, plan, c.resumed, c.hears("network"))
	return c, err
}

// hears returns a function that records what is delivered to a participant.
func (c *cast) hears(name string) func(envelopeID string) {
	return func(id string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard[name] = append(c.heard[name], id)
	}
}

func (c *cast) id(name string) string {
	if link := c.links[name]; link != nil {
		return link.ID()
	}
	return c.others[name]
}

// ids returns everyone's ids, by name.
func (c *cast) ids() map[string]string {
	ids := map[string]string{}
	for _, name := range []string{"triage", "database", "network", "hana"} {
		ids[name] = c.id(name)
	}
	return ids
}

// perform lets everyone say their lines.
func (c *cast) perform(ctx context.Context, decide func(ctx context.Context, channel string) error) {
	ctx, c.cancel = context.WithCancel(ctx)
	for name, link := range c.links {
		hears := c.hears(name)
		p := &scripted.Participant{Link: link, Lines: scripted.Script(lines[name]), Heard: func(e *envelope.Envelope) { hears(e.ID) }}
		if name == "triage" {
			p.Lines = c.withApproval(ctx, p, decide)
		}
		c.plays.Go(func() { _ = p.Run(ctx) }) // a failure shows in the log that is checked
	}
	c.plays.Go(func() { c.approve(ctx) })
}

// approve approves everything that hana is asked.
func (c *cast) approve(ctx context.Context) {
	hana := c.id("hana")
	_ = c.hub.FollowRequests(ctx, url.Values{"for": {hana}}, "", func(r *v1.Request) error {
		if r.State == request.Open && r.For == hana {
			_, err := c.hub.AnswerRequest(ctx, r.ID, v1.Reply{Choice: "approve", As: hana, Note: "Without the restart.", Digest: r.Action.Digest})
			return err
		}
		return nil
	})
}

// ask asks hana for triage, and waits for her answer.
func (c *cast) ask(ctx context.Context, channel string) (*v1.Request, error) {
	asked, err := c.hub.Ask(ctx, v1.Asking{Key: "failover", Request: request.Request{
		Kind: request.Approval, Channel: channel, AskedBy: c.id("triage"), For: c.id("hana"), Title: question,
		Action:  &request.Action{Name: "fail_over", Arguments: []byte(`{"from":"db-3","restart":false}`)},
		Choices: []request.Choice{{ID: "approve", Label: "Approve"}, {ID: "deny", Label: "Deny"}},
	}})
	if err != nil {
		return nil, err
	}
	answered, err := c.hub.AwaitRequest(ctx, asked.ID)
	if err == nil && !request.Approves(answered.Outcome()) {
		err = fmt.Errorf("hana answered %q", answered.Outcome())
	}
	return answered, err
}

// awaitHana waits until hana is connected again, and then a moment for her
// message: network's answer would end the round before it.
func (c *cast) awaitHana(ctx context.Context) error {
	for ctx.Err() == nil {
		hana, err := c.hub.Agent(ctx, c.id("hana"))
		if err != nil {
			return err
		}
		if hana.Online {
			_ = loop.Pause(ctx, 2*slow)
			break
		}
		_ = loop.Pause(ctx, slow/8)
	}
	return ctx.Err()
}

func (c *cast) leave() {
	if c.cancel != nil {
		c.cancel()
	}
	if c.stream != nil {
		c.stream.leave()
	}
	if c.peer != nil {
		c.peer.leave()
	}
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.plays.Wait()
}

// open opens the incident's channel, as triage, once the peer is known, and says the
// first line.
func (c *cast) open(ctx context.Context) (string, error) {
	network, err := c.hub.Agent(ctx, peerName)
	for err != nil && ctx.Err() == nil {
		_ = loop.Pause(ctx, slow/8)
		network, err = c.hub.Agent(ctx, peerName)
	}
	if err != nil {
		return "", err
	}
	c.others["network"] = network.Passport.ID
	var opened v1.Channel
	err = c.hub.Call(ctx, http.MethodPost, "/v1/channels", map[string]any{
		"type": "workflow", "creator": "triage", "intent": "incident", "required_acks": 0,
		"participants": []string{"database", peerName, "hana"},
		"knobs":        json.RawMessage(fmt.Sprintf(`{"graph":%s,"supervisors":[%q]}`, routes(c.id), c.id("hana"))),
	}, &opened)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.opened = opened.ID
	c.mu.Unlock()
	c.stream.follow(ctx, opened.ID)
	m, err := c.links["triage"].Channel(ctx, opened.ID)
	if err != nil {
		return "", err
	}
	triage := &scripted.Participant{Link: c.links["triage"]}
	return m.ID, triage.Speak(ctx, m, lines["triage"][0], "")
}

// correct posts hana's correction while network works: it waits for the round
// to end.
func (c *cast) correct(ctx context.Context, channel string) error {
	for {
		_, err := c.links["hana"].Post(ctx, &envelope.Envelope{
			Channel: channel, Sender: c.id("hana"), Type: envelope.TypeText, Key: "correction",
			Data: fmt.Appendf(nil, `{"text":%q}`, correction),
		})
		if !fault.Retryable(err) {
			return err
		}
		_ = loop.Pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// withApproval returns triage's lines; the last is said once it is approved.
func (c *cast) withApproval(ctx context.Context, p *scripted.Participant, decide func(ctx context.Context, channel string) error) scripted.Lines {
	script := p.Lines
	return func(said int, heard string) (scripted.Line, bool) {
		if said == len(lines["triage"])-1 && decide(ctx, c.channel()) != nil {
			return scripted.Line{}, false
		}
		return script(said, heard)
	}
}

func (c *cast) channel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}
