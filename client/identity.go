package client

import (
	"cmp"
	"context"
	"sync"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

// Registration describes the identity to register or attach to. Only the
// passport's name is needed.
type Registration struct {
	Passport identity.Passport
	Resume   *identity.Resume
	Rule     *identity.Rule
	Skill    *string
}

// Identity is an identity on a connection. Safe for concurrent use.
type Identity struct {
	client   *Client
	id       string
	passport identity.Passport // with its claim

	mu      sync.Mutex
	queue   []*envelope.Envelope
	arrived chan struct{}   // has one element while the queue is not empty
	busy    map[string]bool // delivered and not yet acknowledged, by id
	recent  recent          // acknowledged ones
	lost    bool            // the queue was full: deliveries are dropped until the replay
	asking  bool            // of that replay
	moved   chan struct{}   // closed and renewed at each delivery
	err     error
}

// hello is a handshake that waits for its answer.
type hello struct {
	identity    *Identity
	reconnected bool // after a reconnect
	done        chan struct{}
	err         error
}

func (h *hello) end(err error) {
	h.err = err
	if h.done != nil {
		close(h.done)
	}
}

// Register makes a new identity; a name that exists is refused.
func (c *Client) Register(ctx context.Context, r Registration) (*Identity, error) {
	p := r.Passport
	p.Auth.Scheme = cmp.Or(p.Auth.Scheme, identity.SchemeNone)
	p.Version = cmp.Or(p.Version, 1)
	params := wire.RegisterParams{Passport: &p, Rule: r.Rule, Skill: r.Skill}
	resume := identity.DefaultResume()
	if r.Resume != nil {
		resume = *r.Resume
	}
	resume.Version = max(resume.Version, 1)
	params.Resume = &resume
	var i *Identity
	var bad error
	// The identity must be known before the next frame: it may be for it.
	_, err := c.ask(ctx, wire.Register, params, func(result []byte) {
		var stamped identity.Passport
		if bad = wire.DecodeResult(result, &stamped); bad == nil {
			stamped.Auth.Claim = p.Auth.Claim
			i = c.host(stamped)
		}
	})
	if err != nil {
		return nil, err
	}
	return i, bad
}

// Attach attaches to an existing identity, and receives what it has not
// acknowledged. An unknown name is registered.
func (c *Client) Attach(ctx context.Context, r Registration) (*Identity, error) {
	for {
		var id *string
		if err := c.fetch(ctx, wire.FindAgentID, wire.ByName{Name: r.Passport.Name}, &id); err != nil {
			return nil, err
		}
		if id != nil {
			return c.attach(ctx, *id, r.Passport)
		}
		i, err := c.Register(ctx, r)
		if fault.ReasonOf(err) == fault.NameTaken {
			continue // somebody else was faster
		}
		return i, err
	}
}

func (c *Client) attach(ctx context.Context, id string, p identity.Passport) (*Identity, error) {
	var stored identity.Passport
	if err := c.fetch(ctx, wire.GetAgent, wire.NameOrID{NameOrID: id}, &stored); err != nil {
		return nil, err
	}
	stored.Auth.Claim = p.Auth.Claim
	i := c.host(stored)
	h := &hello{identity: i, done: make(chan struct{})}
	if err := c.greet(h, ""); err != nil {
		c.forget(i)
		return nil, err
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		h.err = fault.Wrap(fault.Unavailable, ctx.Err(), "hello was not answered in time: %v", ctx.Err())
	}
	if h.err != nil {
		c.forget(i)
		return nil, h.err
	}
	return i, nil
}

// greet sends a hello now; without a connection it fails.
func (c *Client) greet(h *hello, since string) error {
	c.greeting.Lock()
	defer c.greeting.Unlock()
	c.mu.Lock()
	conn := c.conn
	if conn != nil {
		c.hellos = append(c.hellos, h)
	}
	c.mu.Unlock()
	if conn == nil {
		return fault.New(fault.Unavailable, "there is no connection at the moment; try again")
	}
	c.write(conn, h.identity.helloFrame(since))
	return nil
}

// greeted takes the answer to the oldest hello.
func (c *Client) greeted(err error) {
	c.mu.Lock()
	if len(c.hellos) == 0 {
		c.mu.Unlock()
		return
	}
	h := c.hellos[0]
	c.hellos = c.hellos[1:]
	c.mu.Unlock()
	if err == nil {
		h.identity.welcome()
	}
	h.end(err)
	if err != nil && h.reconnected {
		c.opts.Log.Warn("the hub does not know this identity any more", "name", h.identity.passport.Name, "error", err)
		c.forget(h.identity)
		h.identity.fail(err)
	}
}

func (i *Identity) helloFrame(since string) []byte {
	return wire.AppendHello(nil, &wire.Hello{
		Name: i.passport.Name, Scheme: i.passport.Auth.Scheme, Claim: i.passport.Auth.Claim, Since: &since,
	})
}

// host adds an identity, so that it receives its deliveries.
func (c *Client) host(p identity.Passport) *Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := &Identity{
		client: c, id: p.AgentID, passport: p,
		arrived: make(chan struct{}, 1), busy: map[string]bool{}, moved: make(chan struct{}),
	}
	c.identities[p.AgentID] = i
	return i
}

func (c *Client) forget(i *Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.identities[i.id] == i {
		delete(c.identities, i.id)
	}
}

// ID returns the identity's id.
func (i *Identity) ID() string { return i.id }

// Name returns the identity's name.
func (i *Identity) Name() string { return i.passport.Name }

// Client returns the connection that the identity is on.
func (i *Identity) Client() *Client { return i.client }

// Unregister removes the identity from the hub.
func (i *Identity) Unregister(ctx context.Context) error {
	err := i.client.fetch(ctx, wire.Unregister, wire.ByAgent{Agent: i.id}, nil)
	if err == nil {
		i.client.forget(i)
		i.fail(fault.New(fault.NotFound, "'%s' was unregistered", i.passport.Name))
	}
	return err
}
