package ag2

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

// Config says how the protocol is served. The zero value of each field but Hub
// is a sensible one.
type Config struct {
	Hub Hub
	// TrustClients lets any connection act for anyone, as AG2's own hub did.
	TrustClients bool
	// MirrorTasks is what of a task is told to the channel it names.
	MirrorTasks Mirror
	// Operator is for a connection that an operator asks for, who may look into
	// every channel: what it returns is asked each time, because keys are made
	// and revoked while connections last. Nil, here or returned, is no operator.
	Operator func(*http.Request) func() bool
	// Peer tells who asks for a connection; nil reads the remote address.
	Peer func(*http.Request) identity.Peer
	Log  *slog.Logger     // nil: slog.Default()
	Now  func() time.Time // nil: time.Now
	// DebugFrames logs every frame in and out, with its kind.
	DebugFrames bool

	Limits Limits
}

// Mirror is what of a task is told to the channel it names.
type Mirror string

const (
	MirrorEnds Mirror = "ends" // start and end; the default
	MirrorAll  Mirror = "all"  // progress too
	MirrorOff  Mirror = "off"
)

// ParseMirror reads a setting.
func ParseMirror(s string) (Mirror, error) {
	switch m := Mirror(s); m {
	case MirrorEnds, MirrorAll, MirrorOff:
		return m, nil
	case "":
		return MirrorEnds, nil
	}
	return "", fault.New(fault.Invalid, "ag2.mirror_tasks %q is unknown; it is ends, all or off", s)
}

// Limits bound what connections hold. Zero is the default given with each; the
// name of its config key stands in every refusal.
type Limits struct {
	Connections int // ag2.limits.connections: 20,000
	FrameBytes  int // ag2.limits.frame_bytes: 1 MiB of one message to the hub
	QueueBytes  int // ag2.limits.queue_bytes: 8 MiB waiting for one slow reader
	Requests    int // ag2.limits.requests: 1,024 of one connection waiting for their turn
	Openings    int // ag2.limits.openings: 256 channels being opened by one connection
	Identities  int // ag2.limits.identities: 10,000 on one connection

	Handshake time.Duration // ag2.limits.handshake: 10 s to upgrade
	Message   time.Duration // ag2.limits.message: 30 s from a message's first byte to its last
	Ping      time.Duration // ag2.limits.ping: 20 s of silence until a ping is sent
	Pong      time.Duration // ag2.limits.pong: 20 s to answer it
	Write     time.Duration // ag2.limits.write: 30 s to take what is written
}

func (c Config) withDefaults() Config {
	if c.MirrorTasks == "" {
		c.MirrorTasks = MirrorEnds
	}
	if c.Operator == nil {
		c.Operator = func(*http.Request) func() bool { return nil }
	}
	if c.Peer == nil {
		c.Peer = peerOf
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	l := &c.Limits
	setDefault(&l.Connections, 20_000)
	setDefault(&l.FrameBytes, wire.MaxFrame)
	setDefault(&l.QueueBytes, 8<<20)
	setDefault(&l.Requests, 1024)
	setDefault(&l.Openings, 256)
	setDefault(&l.Identities, 10_000)
	setDefault(&l.Handshake, 10*time.Second)
	setDefault(&l.Message, 30*time.Second)
	setDefault(&l.Ping, 20*time.Second)
	setDefault(&l.Pong, 20*time.Second)
	setDefault(&l.Write, 30*time.Second)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func peerOf(r *http.Request) identity.Peer {
	p := identity.Peer{Address: r.RemoteAddr}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		ip := net.ParseIP(host)
		p.Loopback = ip != nil && ip.IsLoopback()
	}
	return p
}
