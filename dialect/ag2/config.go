package ag2

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/wsconn"
)

// Config configures the server. The zero value of each field but Hub is a usable
// default.
type Config struct {
	Hub Hub
	// TrustClients lets any connection act for anyone, as AG2's own hub did.
	TrustClients bool
	// MirrorTasks says which changes of a task are posted to the channel that it names.
	MirrorTasks Mirror
	// ReadWAL says how read_wal shows envelopes that its reader may not see.
	ReadWAL WAL
	// Operator returns a function that reports whether the connection belongs to an
	// operator, who may read every channel. The function is called each time,
	// because keys are made and revoked while connections last. If Operator or its
	// result is nil, nobody is an operator.
	Operator func(*http.Request) func() bool
	// Prove returns the function that checks the proofs of a connection's
	// identities. If Prove or its result is nil, a proof is valid for ever.
	Prove func(*http.Request) Prove
	// AuthFailed is called for each identity that could not be proved; it may be
	// nil.
	AuthFailed func(p identity.Peer, name string)
	// Strangers reports whether a connection that has proved no identity may
	// read the directory; nil allows connections from this machine.
	Strangers func(identity.Peer) bool
	// Peer returns the peer that asks for a connection; nil reads the remote
	// address.
	Peer func(*http.Request) identity.Peer
	Log  *slog.Logger     // nil: slog.Default()
	Now  func() time.Time // nil: time.Now
	// DebugFrames logs every received and sent frame, with its kind.
	DebugFrames bool

	Limits Limits
}

// Mirror says which changes of a task are posted to the channel that it names.
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

// Limits bound what connections hold. Zero means the default given with each field;
// every refusal names the field's config key.
type Limits struct {
	wsconn.Limits // of the transport

	Requests   int // ag2.limits.requests: 1,024 of one connection waiting for their turn
	Openings   int // ag2.limits.openings: 256 channels being opened by one connection
	Identities int // ag2.limits.identities: 10,000 on one connection
	Foreign    int // ag2.limits.foreign: 1,000 channels of other dialects that one connection gets, or in which one identity is asked
}

func (c Config) withDefaults() Config {
	c.MirrorTasks = cmp.Or(c.MirrorTasks, MirrorEnds)
	c.ReadWAL = cmp.Or(c.ReadWAL, WALFiltered)
	if c.Operator == nil {
		c.Operator = func(*http.Request) func() bool { return nil }
	}
	if c.Prove == nil {
		c.Prove = func(*http.Request) Prove { return nil }
	}
	if c.AuthFailed == nil {
		c.AuthFailed = func(identity.Peer, string) {}
	}
	if c.Strangers == nil {
		c.Strangers = func(p identity.Peer) bool { return p.Loopback }
	}
	if c.Peer == nil {
		c.Peer = peerOf
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	l := &c.Limits
	l.FrameBytes = cmp.Or(l.FrameBytes, wire.MaxFrame)
	l.Requests = cmp.Or(l.Requests, 1024)
	l.Openings = cmp.Or(l.Openings, 256)
	l.Identities = cmp.Or(l.Identities, 10_000)
	l.Foreign = cmp.Or(l.Foreign, 1000)
	return c
}

// peerOf reads the remote address. A peer without a network address, over a
// Unix socket or within the process, counts as this machine too.
func peerOf(r *http.Request) identity.Peer {
	p := identity.Peer{Address: r.RemoteAddr}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	p.Loopback = err != nil || ip != nil && ip.IsLoopback()
	return p
}
