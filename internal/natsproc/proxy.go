package natsproc

import (
	"context"
	"io"
	"net"
	"sync"
)

// Proxy forwards connections to a server, and can be cut.
type Proxy struct {
	target   string
	listener net.Listener

	mu    sync.Mutex
	off   bool
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

// NewProxy listens for connections, and carries them to a target.
func NewProxy(ctx context.Context, target string) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Address returns the address that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.carry(c) })
	}
}

// carry carries bytes both ways until one end closes, or the proxy is cut.
func (p *Proxy) carry(c net.Conn) {
	defer c.Close() //nolint:errcheck // it is over
	other, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil || !p.track(c, other) {
		return
	}
	defer p.forget(c, other)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, other}, {other, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
		})
	}
	both.Wait()
}

func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.off {
			_ = c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return !p.off
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// Cut ends all connections and takes no new ones, or takes them again.
func (p *Proxy) Cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	if off {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// Carries counts the connections that it carries now.
func (p *Proxy) Carries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

// Close stops the proxy.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut(true)
	p.wg.Wait()
}
