package agh

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
)

// Role says what the sender of a request may do.
type Role int

// Roles. An agent acts for itself only.
const (
	Nobody Role = iota
	Agent
	Reader
	Operator
)

// Who identifies the sender of a request.
type Who struct {
	Role  Role
	Agent string // the agent's name, for role Agent
	Key   string // the id of the key that was shown; empty: none was
}

// Config configures the runtime. Zero values are the defaults.
type Config struct {
	Hub Hub
	// Who identifies the sender of a request; nil: everyone is operator.
	Who func(*http.Request) Who
	// Stands reports whether a request's caller still has access; a request that
	// waited checks it again. Nil: always.
	Stands func(*http.Request) bool
	Log    *slog.Logger
	Now    func() time.Time

	// Disabled serves only the status.
	Disabled       bool
	GreetInterval  time.Duration // 30 s
	ReplayAge      time.Duration // 300 s
	QueueDepth     int           // 100
	DefaultChannel string        // "default"
	Strict         bool          // as the seed's JSON schema says
	LenientWorkIDs bool          // work ids as AGH's runtime accepts them
	SecretScan     Scan
	// V1 also speaks agh-network/v1, on its own subjects.
	V1 bool
	// Key returns the key of a handle that is hosted here; nil: there are none.
	Key func(handle string) (*wire.Key, error)

	// BridgeAccept says when a peer has accepted an invitation to a channel of another
	// dialect; empty: bridge.AcceptPresent.
	BridgeAccept bridge.Accept
	// MaxHops is how often a message may have crossed between dialects; 0: 8.
	MaxHops int

	// Broker connects to other runtimes; nil: hosted peers work among themselves.
	Broker Broker
	// OnEvent is called after an event is durable; it must return soon.
	OnEvent func(Event)

	// Answers bounds the answers of all dialects that are being made or sent; nil: a
	// budget for this dialect alone.
	Answers *answers.Budget
	Limits  Limits
}

// Limits bound what the runtime holds. The default of each is in its comment.
type Limits struct {
	Body             int64 // 4 MiB of one request
	Remotes          int   // 10,000 remote peers of one channel, and as many adopted ones in all
	Outbox           int   // 10,000 messages waiting for the broker
	SubscriptionRate int   // 5,000 messages a second of one subscription
	SenderRate       int   // 1,000 messages a second of one remote peer
	Streams          int   // 1,000 live streams at once
	AuditRejects     int   // 10 rejections a second of one remote peer

	Write     time.Duration // 10 s until a reader must have taken a write
	KeepAlive time.Duration // a comment is sent after 15 s of silence
}

// Times of live streams.
const (
	defaultWrite     = 10 * time.Second
	defaultKeepAlive = 15 * time.Second
)

// Scan says which envelopes are searched for secrets.
type Scan string

// Policies of the scan. The zero value is ScanOutbound.
const (
	ScanOff      Scan = "off"
	ScanOutbound Scan = "outbound"
	ScanBoth     Scan = "both"
)

// ParseScan reads a policy.
func ParseScan(s string) (Scan, error) {
	switch Scan(s) {
	case "":
		return ScanOutbound, nil
	case ScanOff, ScanOutbound, ScanBoth:
		return Scan(s), nil
	}
	return "", fault.New(fault.Invalid, "agh.secret_scan is off, outbound or both, not %q", s)
}

func (c Config) withDefaults() Config {
	if c.Who == nil {
		c.Who = func(*http.Request) Who { return Who{Role: Operator} }
	}
	if c.Stands == nil {
		c.Stands = func(*http.Request) bool { return true }
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Answers == nil {
		c.Answers = answers.New(0)
	}
	if c.GreetInterval <= 0 {
		c.GreetInterval = 30 * time.Second
	}
	if c.ReplayAge <= 0 {
		c.ReplayAge = wire.DefaultReplayAge
	}
	if c.QueueDepth <= 0 {
		c.QueueDepth = 100
	}
	c.DefaultChannel = cmp.Or(c.DefaultChannel, wire.DefaultChannel)
	c.SecretScan = cmp.Or(c.SecretScan, ScanOutbound)
	if c.MaxHops <= 0 {
		c.MaxHops = 8
	}
	if c.Limits.Body <= 0 {
		c.Limits.Body = 4 << 20
	}
	for _, d := range []struct {
		value *int
		is    int
	}{
		{&c.Limits.Remotes, 10_000}, {&c.Limits.Outbox, 10_000}, {&c.Limits.SubscriptionRate, 5000}, {&c.Limits.SenderRate, 1000}, {&c.Limits.AuditRejects, 10}, {&c.Limits.Streams, 1000},
	} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
	if c.Limits.Write <= 0 {
		c.Limits.Write = defaultWrite
	}
	if c.Limits.KeepAlive <= 0 {
		c.Limits.KeepAlive = defaultKeepAlive
	}
	return c
}

// validation returns the options for checking envelopes at this time; outgoing ones
// are also searched for secrets unless that is off.
func (c *Config) validation(outgoing bool) wire.Options {
	o := wire.Options{
		Now: c.Now().Unix(), ReplayAge: c.ReplayAge, Strict: c.Strict, Storable: true, LenientWorkIDs: c.LenientWorkIDs,
		Handles: true, V1: c.V1,
	}
	if c.SecretScan == ScanBoth || outgoing && c.SecretScan == ScanOutbound {
		o.Secrets = wire.NewSecretScan()
	}
	return o
}
