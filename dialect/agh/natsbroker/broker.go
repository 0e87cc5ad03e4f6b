// Package natsbroker connects AGH's runtime to NATS: to a server of this process
// or to one elsewhere. It uses the core protocol only, and never sees what the
// messages mean.
package natsbroker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// Bounds of a subscription whose messages are not handled fast enough; the
// client library drops what is over.
const (
	pendingMessages = 4096
	pendingBytes    = 64 << 20
)

const (
	readyWithin   = 5 * time.Second
	reconnectWait = 500 * time.Millisecond
	maxPayload    = wire.MaxBytes + 64<<10 // for the protocol's own lines
)

// Options of a broker: either Listen or URL.
type Options struct {
	// Listen is the address of a server of this process.
	Listen string
	// TLS is needed to listen beyond this machine.
	TLS *tls.Config
	// URL is a server elsewhere.
	URL string
	// Token is what clients of either show; a URL may have one itself.
	Token string
	Log   *slog.Logger
}

// Broker is a connection to NATS.
type Broker struct {
	conn   *nats.Conn
	server *server.Server // nil: it is elsewhere

	mu      sync.Mutex // held while a change is told, so that they are told in their order
	changed func(error)
	late    bool // Watch told that there is no connection yet
}

// Open connects, and starts the server if it is this process's. A server
// elsewhere need not be there yet.
func Open(o Options) (*Broker, error) {
	b := &Broker{}
	options := []nats.Option{
		nats.Name("parley"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), // what is published while it is away is not kept
		nats.NoEcho(),             // hosted peers are told without a detour
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = errors.New("disconnected")
			}
			b.tell(err)
		}),
		nats.ReconnectHandler(func(*nats.Conn) { b.tell(nil) }),
		nats.ConnectHandler(func(*nats.Conn) { b.arrived() }), // the first connection is no reconnect
		nats.IgnoreAuthErrorAbort(),                           // a token may be wrong for a while
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if o.Log != nil {
				o.Log.Warn("NATS", "error", err)
			}
		}),
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	url := o.URL
	if o.Listen != "" {
		s, err := listen(o)
		if err != nil {
			return nil, err
		}
		// The URL is not dialled. It is one without TLS: within the process the
		// certificate, which need not be valid for this machine, does not matter.
		b.server, url = s, nats.DefaultURL
		options = append(options, nats.InProcessServer(s))
	}
	var err error
	if b.conn, err = nats.Connect(url, options...); err != nil {
		if b.server != nil {
			b.server.Shutdown()
		}
		return nil, fault.Wrap(fault.Unavailable, err, "NATS cannot be reached: %v", err)
	}
	return b, nil
}

// listen starts a server of this process.
func listen(o Options) (*server.Server, error) {
	host, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "agh.nats.listen is host:port, such as 127.0.0.1:4222, not %q", o.Listen)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return nil, fault.New(fault.Invalid, "agh.nats.listen is host:port, such as 127.0.0.1:4222, not %q", o.Listen)
	}
	port = cmp.Or(port, server.RANDOM_PORT)
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && o.TLS == nil {
		return nil, fault.New(fault.Invalid, "NATS on %q is reachable from outside and needs TLS: set tls.cert and tls.key, or listen on 127.0.0.1", o.Listen)
	}
	if o.Token == "" {
		return nil, fault.New(fault.Invalid, "a NATS server of this process needs a token")
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "parley", Host: host, Port: port, Authorization: o.Token, MaxPayload: maxPayload,
		NoSigs: true, NoLog: true, TLSConfig: o.TLS, TLS: o.TLS != nil,
	})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the NATS server cannot be started: %v", err)
	}
	s.Start()
	if !s.ReadyForConnections(readyWithin) {
		s.Shutdown()
		return nil, fault.New(fault.Unavailable, "the NATS server did not listen on %s within %s; is the port free?", o.Listen, readyWithin)
	}
	return s, nil
}

// arrived tells of the first connection if it was missed.
func (b *Broker) arrived() {
	b.mu.Lock()
	late := b.late
	b.late = false
	b.mu.Unlock()
	if late {
		b.tell(nil)
	}
}

func (b *Broker) tell(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		b.changed(err)
	}
}

// Watch tells whenever the connection is lost and when it is back.
func (b *Broker) Watch(changed func(err error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = changed
	if b.late = !b.conn.IsConnected(); b.late {
		changed(errors.New("not connected yet"))
	}
}

// Subscribe hears what is published on a subject.
func (b *Broker) Subscribe(subject string, handle func(data []byte)) (stop func(), err error) {
	s, err := b.conn.Subscribe(subject, func(m *nats.Msg) { handle(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("natsbroker: subscribe: %w", err)
	}
	if err := s.SetPendingLimits(pendingMessages, pendingBytes); err != nil {
		return nil, fmt.Errorf("natsbroker: subscribe: %w", err)
	}
	if b.conn.IsConnected() { // else it is subscribed with the reconnect
		if err := b.conn.FlushTimeout(readyWithin); err != nil {
			return nil, fmt.Errorf("natsbroker: subscribe: %w", err)
		}
	}
	return func() { _ = s.Unsubscribe() }, nil // it fails only on a closed connection
}

// Publish sends a message.
func (b *Broker) Publish(subject string, data []byte) error {
	if !b.conn.IsConnected() {
		return errors.New("natsbroker: there is no connection to NATS")
	}
	if err := b.conn.Publish(subject, data); errors.Is(err, nats.ErrMaxPayload) {
		return fault.Wrap(fault.TooLarge, err, "the NATS server takes at most %d bytes, and the message has %d: raise its max_payload", b.conn.MaxPayload(), len(data))
	} else if err != nil {
		return fmt.Errorf("natsbroker: publish: %w", err)
	}
	return nil
}

// Flush waits until the server has everything that was published.
func (b *Broker) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("natsbroker: publish: %w", err)
	}
	return nil
}

// Address is where the server of this process listens.
func (b *Broker) Address() (host string, port int) {
	if b.server == nil {
		return "", 0
	}
	if a, ok := b.server.Addr().(*net.TCPAddr); ok {
		return a.IP.String(), a.Port
	}
	return "", 0
}

// Close ends the connection and the server.
func (b *Broker) Close() error {
	b.conn.Close()
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	return nil
}
