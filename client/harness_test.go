package client_test

import (
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
)

const wait = 20 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// rig is a hub behind its server, and a proxy that can cut connections.
type rig struct {
	t      testing.TB
	hub    *hub.Hub
	server *ag2.Server
	http   *httptest.Server
	engine *mem.Engine
	proxy  *proxy
	store  *mem.Store
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, store: mem.NewStore()}
	var err error
	if r.engine, err = mem.Open(mem.Options{Store: r.store}); err != nil {
		t.Fatal(err)
	}
	auth := identity.NewAuthRegistry(identity.None{}, identity.NewAPIKey(map[string]string{"keyed": "tok-8"}, nil))
	if r.hub, err = hub.Open(t.Context(), r.engine, hub.Options{Adapters: adapter.All(), Log: quiet, Auth: auth}); err != nil {
		t.Fatal(err)
	}
	if r.server, err = ag2.New(ag2.Config{Hub: r.hub, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	r.http = httptest.NewServer(r.server)
	r.proxy = newProxy(t, strings.TrimPrefix(r.http.URL, "http://"))
	t.Cleanup(r.stop)
	return r
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := r.server.Drain(ctx); err != nil {
		r.t.Error(err)
	}
	r.proxy.close()
	r.http.Close()
	r.hub.Close()
	_ = r.engine.Close()
}

// second opens another hub on what the first one stored, after the first has
// closed.
func (r *rig) second() (h *hub.Hub, closeSecond func()) {
	r.t.Helper()
	r.hub.Close()
	_ = r.engine.Close()
	engine, err := mem.Open(mem.Options{Store: r.store})
	if err != nil {
		r.t.Fatal(err)
	}
	if h, err = hub.Open(context.Background(), engine, hub.Options{Adapters: adapter.All(), Log: quiet}); err != nil {
		r.t.Fatal(err)
	}
	return h, func() { h.Close(); _ = engine.Close() }
}

// dial connects through the proxy.
func (r *rig) dial(o client.Options) *client.Client {
	r.t.Helper()
	o.Log = quiet
	o.Backoff = time.Millisecond
	o.MaxBackoff = 10 * time.Millisecond
	c, err := client.Dial(r.t.Context(), "ws://"+r.proxy.address(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) attach(c *client.Client, name string) *client.Identity {
	r.t.Helper()
	i, err := c.Attach(r.t.Context(), client.Registration{Passport: identity.Passport{Name: name}})
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

// open opens a channel; invitees ack by themselves.
func (r *rig) open(channelType string, creator *client.Identity, invitees ...*client.Identity) string {
	r.t.Helper()
	var group sync.WaitGroup
	ids := make([]string, len(invitees))
	for n, i := range invitees {
		ids[n] = i.ID()
		group.Go(func() {
			invite := r.receive(i, envelope.TypeInvite)
			_, err := i.Post(r.t.Context(), &envelope.Envelope{Channel: invite.Envelope.Channel, Type: envelope.TypeInviteAck})
			if err != nil {
				r.t.Error(err)
			}
		})
	}
	m, err := creator.OpenChannel(r.t.Context(), agent.Opening{Type: channelType, Participants: ids})
	group.Wait()
	if err != nil {
		r.t.Fatal(err)
	}
	return m.ID
}

// receive takes deliveries, acknowledging them, until one of a type, which is
// left to the test.
func (r *rig) receive(i *client.Identity, eventType string) *agent.Delivery {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for {
		d, err := i.Receive(ctx)
		if err != nil {
			r.t.Errorf("waiting for %s: %v", eventType, err)
			return nil
		}
		if d.Envelope.Type == eventType {
			return d
		}
		_ = d.Ack(ctx)
	}
}

// proxy stands between a client and the hub.
type proxy struct {
	t      testing.TB
	ln     net.Listener
	target string

	mu      sync.Mutex
	pairs   map[net.Conn]net.Conn
	refuse  bool
	swallow func(hubToClient []byte) bool // true: mute from here on, and cut
	done    sync.WaitGroup
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, ln: ln, target: target, pairs: map[net.Conn]net.Conn{}}
	p.done.Go(p.accept)
	return p
}

func (p *proxy) address() string { return p.ln.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse
		p.mu.Unlock()
		out, err := net.Dial("tcp", p.target)
		if err != nil || refuse {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		p.mu.Lock()
		p.pairs[in] = out
		p.mu.Unlock()
		p.done.Go(func() { p.pump(out, in, false) })
		p.done.Go(func() { p.pump(in, out, true) })
	}
}

func (p *proxy) pump(to, from net.Conn, fromHub bool) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		cut := fromHub && p.swallow != nil && p.swallow(buf[:n])
		p.mu.Unlock()
		if cut {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections; more are let in unless refuse is set.
func (p *proxy) cut(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
	for in, out := range p.pairs {
		_ = in.Close()
		_ = out.Close()
		delete(p.pairs, in)
	}
}

func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *proxy) close() {
	_ = p.ln.Close()
	p.cut(true)
	p.done.Wait()
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(wait)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
