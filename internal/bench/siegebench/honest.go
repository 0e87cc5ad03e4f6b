package siegebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
)

// How many honest clients there are.
const (
	pairs   = 4 // of AG2 clients in a conversation; the last is also written to over /v1
	posters = 4 // posts in flight for each
)

// honest are the clients that behave, and what the hub acknowledged to them.
type honest struct {
	v1       *v1.Client // with the operator's key
	clients  []*client.Client
	senders  []*client.Identity
	channels []string
	large    string // a channel of the hostile agent, with a long log
	victim   string // the id of an honest agent
	readers  sync.WaitGroup
	stop     context.CancelFunc

	refused atomic.Int64
	mu      sync.Mutex
	acked   map[string]string // the channel of each acknowledged envelope
	last    error
}

// gather connects the honest clients, and lets the hostile agent write what it
// will ask for later.
func gather(ctx context.Context, hub *bench.Process, operator, mallory string) (h *honest, err error) {
	h = &honest{acked: map[string]string{}}
	if h.v1, err = v1.New(hub.URL, v1.Options{Token: operator}); err != nil {
		return nil, err
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	join := func(name, token string) (*client.Identity, error) {
		c, err := client.Dial(ctx, hub.Socket(), client.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		h.clients = append(h.clients, c)
		p := identity.Passport{Name: name}
		if token != "" {
			p.Auth = identity.Auth{Scheme: identity.SchemeAPIKey, Claim: fmt.Appendf(nil, `{"token":%q}`, token)}
		}
		return c.Register(ctx, client.Registration{Passport: p})
	}
	meet := func(name, other, token string) (*client.Identity, *client.Identity, string, error) {
		a, err := join(name, token)
		if err != nil {
			return nil, nil, "", err
		}
		b, err := join(other, "")
		if err != nil {
			return nil, nil, "", err
		}
		h.readers.Go(func() { read(reading, b) })
		m, err := a.OpenChannel(ctx, agent.Opening{Type: "conversation", Participants: []string{b.ID()}, TTL: "0s"})
		if err != nil {
			return nil, nil, "", err
		}
		return a, b, m.ID, nil
	}
	for i := range pairs {
		a, b, channel, err := meet(fmt.Sprint("honest-a", i), fmt.Sprint("honest-b", i), "")
		if err != nil {
			return h, errors.Join(err, ctx.Err())
		}
		h.senders, h.channels, h.victim = append(h.senders, a), append(h.channels, channel), b.ID()
	}
	m, _, channel, err := meet("mallory", "mule", mallory)
	if err != nil {
		return h, err
	}
	if err := fill(ctx, h.clients[len(h.clients)-1]); err != nil {
		return h, err
	}
	h.large = channel
	for range 12 {
		if _, err := m.Send(ctx, channel, strings.Repeat("x", 700<<10)); err != nil {
			return h, err
		}
	}
	return h, nil
}

// read accepts an agent's invitations and acknowledges its deliveries.
func read(ctx context.Context, i *client.Identity) {
	for {
		d, err := i.Receive(ctx)
		if err != nil {
			return
		}
		if d.Envelope.Type == envelope.TypeInvite {
			_, _ = i.Post(ctx, &envelope.Envelope{Channel: d.Envelope.Channel, Type: envelope.TypeInviteAck, Data: []byte("{}")}) // a lost one is seen when the channel does not open
		}
		_ = d.Ack(ctx) // it is delivered again
	}
}

// work posts until the context ends and returns how many posts were acknowledged.
func (h *honest) work(ctx context.Context) int {
	var group sync.WaitGroup
	var posts atomic.Int64
	text := strings.Repeat("the quick brown fox ", 20)
	for i, sender := range h.senders {
		channel := h.channels[i]
		for range posters {
			group.Go(func() {
				for ctx.Err() == nil {
					id, err := sender.Send(ctx, channel, text)
					h.note(ctx, &posts, id, channel, err)
				}
			})
		}
	}
	for i := range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				sent, err := h.v1.Send(ctx, h.channels[i], v1.Posting{Sender: h.senders[i].ID(), Text: &text})
				h.note(ctx, &posts, sent.ID, h.channels[i], err)
			}
		})
	}
	group.Wait()
	return int(posts.Load())
}

func (h *honest) note(ctx context.Context, posts *atomic.Int64, id, channel string, err error) {
	switch {
	case err == nil:
		posts.Add(1)
		h.mu.Lock()
		h.acked[id] = channel
		h.mu.Unlock()
	case ctx.Err() == nil:
		h.refused.Add(1)
		h.mu.Lock()
		h.last = err
		h.mu.Unlock()
	}
}

func (h *honest) refusal() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

func (h *honest) close() {
	h.stop()
	for _, c := range h.clients {
		_ = c.Close() // the hub may have ended first
	}
	h.readers.Wait()
}

// reached returns an error if the victim became unreachable: its pair, the
// last, then has a fraction of the posts of the one before, which nobody
// attacks. What fills an inbox stays there until the end.
func (h *honest) reached() error {
	posts := map[string]int{}
	for _, channel := range h.acked {
		posts[channel]++
	}
	victim, other := posts[h.channels[pairs-1]], posts[h.channels[pairs-2]]
	if victim < other/3 {
		return fmt.Errorf("the attack %q met no bound: %d posts reached the victim, and %d somebody else", "inbox of another", victim, other)
	}
	return nil
}

// missing counts the acknowledged envelopes that a hub does not have.
func (h *honest) missing(ctx context.Context, hub *bench.Process, operator string) (lost, acknowledged int, err error) {
	operated, err := v1.New(hub.URL, v1.Options{Token: operator})
	if err != nil {
		return 0, 0, err
	}
	acknowledged = len(h.acked)
	for _, channel := range h.channels {
		err := operated.Events(ctx, channel, v1.EventQuery{}, func(e *v1.Event) error {
			if h.acked[e.ID] == channel {
				delete(h.acked, e.ID)
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return len(h.acked), acknowledged, nil
}
