package hpd

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/wsconn"
)

// Config configures the API. The zero value of each field but Hub is a usable
// default.
type Config struct {
	Hub Hub
	// Prefix is the path of the API; empty: /hpd.
	Prefix string
	// Registry knows the event types; nil: the built-in ones. The hub's branch
	// adapter must have the same table.
	Registry *wire.Registry
	// Producers answer inputs in this process, by the agent ids of routes.
	Producers map[string]Producer
	// Hosted returns the producer of an agent definition that runs in this process.
	// If Hosted or its result is nil, the definition's runs have no producer.
	Hosted func(definition wire.StoredAgent) Producer
	// DefaultAgent takes the inputs for unknown agents; if it is empty, such inputs
	// are refused.
	DefaultAgent string
	// User is the name of the human that operators act as; empty: user.
	User string
	// Who returns the caller of a request; nil: every caller is an operator.
	Who func(*http.Request) Who
	// Stands reports whether the caller of a stream may still read it; nil:
	// always.
	Stands func(*http.Request) bool
	// RecursiveDelete lets clients delete a branch with its forks.
	RecursiveDelete bool
	// ChildrenStatus is the status of a deletion that HasChildren refuses; 0: 400.
	ChildrenStatus int
	// InterruptGrace is how long an interrupted producer has to end its run;
	// 0: 10 s.
	InterruptGrace time.Duration
	// ProducerGrace is how long a remote producer may be away; 0: 60 s.
	ProducerGrace time.Duration
	// InviteTimeout is how long an agent that reads in another dialect has to take
	// its first run on a branch; 0: 25 s.
	InviteTimeout time.Duration
	Log           *slog.Logger     // nil: slog.Default()
	Now           func() time.Time // nil: time.Now

	// Answers is the budget of responses that are being made or read, shared by all
	// dialects; nil: a budget of its own.
	Answers *answers.Budget
	Limits  Limits
}

// Limits bound what clients can make the dialect hold. Zero means the default given
// with each field; every refusal names the field's config key.
type Limits struct {
	Sessions    int           // hpd.limits.sessions: 10,000 in one answer
	Streams     int           // hpd.limits.streams: 10,000 at once
	Behind      int           // hpd.limits.behind: 1,024 events that a reader may fall behind
	BehindBytes int           // hpd.limits.behind_bytes: 8 MiB of them
	Runs        int           // hpd.limits.runs: 10,000 in one answer
	Work        int           // hpd.limits.work: 1,024 frames that wait for a remote producer
	Keys        int           // hpd.limits.keys: 4,096 idempotency keys of a run that are remembered
	Recent      int           // hpd.limits.recent: 8,192 events and turns whose live-only fields are remembered
	Remembered  int           // hpd.limits.remembered: 100,000 sessions, producers or ends that are remembered as seen
	Requests    int           // hpd.limits.requests: 1,000 requests of a branch that are listed or looked through
	Event       int           // limits.event: 1 MiB of one event
	Record      int           // limits.record: 16 KiB of what is said about a session or branch
	Content     int64         // limits.content: 64 MiB of one upload
	Upload      time.Duration // hpd.limits.upload: 10 min for one
	Write       time.Duration // limits.follower_write: 10 s to take what is written
	KeepAlive   time.Duration // limits.keep_alive: 10 s of silence until a comment is sent
	Socket      wsconn.Limits // hpd.limits.*
}

// KeepAlive is the longest silence of a stream. Readers expect a comment at least
// every 15 s, which includes the time to write and deliver it.
const KeepAlive = 10 * time.Second

// Role is what a caller may do.
type Role uint8

// Roles.
const (
	Nobody   Role = iota
	Agent         // acts for one identity, and sees its sessions
	Reader        // sees everything, changes nothing
	Operator      // may do everything
)

// Who identifies the caller of a request.
type Who struct {
	Role  Role
	Agent string // the identity's name, for role Agent
	Key   string // the id of the key that was shown, for the audit; empty: none was
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, "/hpd")
	if c.Registry == nil {
		c.Registry = wire.NewRegistry(nil)
	}
	c.User = cmp.Or(c.User, "user")
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
	c.ChildrenStatus = cmp.Or(c.ChildrenStatus, http.StatusBadRequest)
	c.InterruptGrace = cmp.Or(c.InterruptGrace, 10*time.Second)
	c.ProducerGrace = cmp.Or(c.ProducerGrace, time.Minute)
	c.InviteTimeout = cmp.Or(c.InviteTimeout, 25*time.Second)
	l := &c.Limits
	l.Sessions = cmp.Or(l.Sessions, 10_000)
	l.Streams = cmp.Or(l.Streams, 10_000)
	l.Behind = cmp.Or(l.Behind, 1024)
	l.BehindBytes = cmp.Or(l.BehindBytes, 8<<20)
	l.Runs = cmp.Or(l.Runs, 10_000)
	l.Work = cmp.Or(l.Work, 1024)
	l.Keys = cmp.Or(l.Keys, 4096)
	l.Recent = cmp.Or(l.Recent, 8192)
	l.Remembered = cmp.Or(l.Remembered, 100_000)
	l.Requests = cmp.Or(l.Requests, 1000)
	l.Event = cmp.Or(l.Event, wire.DefaultEventBytes)
	l.Record = cmp.Or(l.Record, 16<<10)
	l.Content = cmp.Or(l.Content, 64<<20)
	l.Upload = cmp.Or(l.Upload, 10*time.Minute)
	l.Write = cmp.Or(l.Write, 10*time.Second)
	l.KeepAlive = cmp.Or(l.KeepAlive, KeepAlive)
	l.Socket.FrameBytes = cmp.Or(l.Socket.FrameBytes, 2<<20)
	return c
}
