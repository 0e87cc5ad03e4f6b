package hub

import (
	"cmp"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/identity"
)

// Options configures a hub. All zero values have usable defaults.
type Options struct {
	// Tenant is part of the name of everything that is stored; empty: main.
	Tenant string
	// Adapters govern channels; without any, no channel can be opened.
	Adapters []channel.Adapter
	// Auth proves identities; nil accepts the scheme none only.
	Auth *identity.AuthRegistry
	// Arbiter decides who may do what; nil enforces each identity's rule.
	Arbiter Arbiter
	// Listeners are called with what happened, in this order, after the audit.
	Listeners []Listener
	// AuditSinks receive every audit record besides the journal.
	AuditSinks []AuditSink
	// Evaluators and Handlers are added to the built-in ones or replace them; a nil one
	// disables a name.
	Evaluators map[string]Evaluator
	Handlers   map[string]Handler
	// Remotes forward to identities of other hubs, by their auth scheme.
	Remotes map[string]Remote
	// Tracing records spans; nil records none and leaves trace ids alone.
	Tracing trace.TracerProvider
	// SpanLog, if given, is only asked for how much it has written.
	SpanLog interface{ Written() int64 }
	Log     *slog.Logger     // nil: slog.Default()
	Now     func() time.Time // nil: time.Now

	// TrustClients lets any registered identity post to any channel, as AG2's hub does;
	// only the adapter checks it.
	TrustClients bool

	InviteAckTimeout time.Duration // 0: 25 s, just under a client's own patience
	// TTLSweep and ExpectationSweep are the intervals of the sweeps; 0 is 30 s and 10 s,
	// negative is never: then Sweep is called by hand.
	TTLSweep         time.Duration
	ExpectationSweep time.Duration
	// IgnoreExpectations enforces no expectation, neither of a manifest nor of a
	// channel's knob, which is still checked when a channel is opened.
	IgnoreExpectations bool
	// RestartGrace is how long agents that became overdue while no hub ran have to
	// reconnect and answer, unless their expectation waits less; 0: 1 min, negative: none.
	RestartGrace time.Duration
	// HoldFor is how long a supervisor's envelope waits for the round in progress; 0: 30 s.
	HoldFor time.Duration
	// IdempotencyWindow is how long a key is remembered; 0: 24 h.
	IdempotencyWindow time.Duration
	// MaxHops is how often something may cross between dialects; 0: 8.
	MaxHops int
	// ReserveIDs is how far ahead ids are reserved; 0: a minute.
	ReserveIDs time.Duration
	// SnapshotAfter is how many records a channel's logs have when a snapshot of
	// its fold is first written, so that it is loaded without reading all of them;
	// 0: 4,096, negative: never.
	SnapshotAfter int
	// CloseWithin is how long Close waits for adapters and listeners that do not
	// return; 0: 10 s.
	CloseWithin time.Duration
	// EvictAfter is how long a channel stays folded untouched; 0: 10 min.
	EvictAfter time.Duration

	Limits Limits
}

// Limits bound what a hub holds. The default of each is in its comment.
type Limits struct {
	Agents         int   // 100,000 registered identities
	Participants   int   // 1,000 in one channel
	EventBytes     int   // 1 MiB of one payload
	RecordBytes    int   // 16 KiB of a passport, of a channel's labels, of a reason: lists show many
	ProfileBytes   int   // 64 KiB of an identity's skill, resume and rule together
	ProfileCache   int   // 16 MiB of resumes and skills kept in memory
	InFlight       int   // 65,536 posts ordered but not yet answered
	LoadedChannels int   // 200,000 folded at once; the longest untouched go first
	Endpoints      int   // 16 at which one identity reads
	Transient      int   // 100,000 identities that are not stored
	Replay         int   // 4,096 live deliveries kept while a reader is replayed to
	RecentEvents   int   // 16 MiB of recent events, kept while somebody follows all channels
	Held           int   // 16 supervisors' words waiting in one channel
	Inbox          int   // 4,096 unanswered envelopes of one identity; its rule may say less
	Deadlines      int   // 64 set by the adapter of one channel
	OpenRequests   int   // 64 not ended, in one channel
	AskedRequests  int   // 1,000 not ended, of one asker
	OpenTasks      int   // 256 not ended, in one channel
	OpenTasksOwner int   // 64 of them of one owner
	RuleGlobs      int   // 4,096 in one list of a rule
	Lists          int   // 32 MiB of lists in a second, a quarter of it for one reader
	Reads          int   // 64 MiB of logs read in a second, a quarter of it for one reader
	DocumentBytes  int   // 64 KiB of one document
	Documents      int   // 100,000 of one kind
	Content        int64 // 64 MiB of one content
	ContentHome    int64 // 1 GiB of a home's content
	ContentHub     int64 // 10 GiB of all content
}

func (o Options) withDefaults() Options {
	o.Tenant = cmp.Or(o.Tenant, "main")
	if o.Auth == nil {
		o.Auth = identity.NewAuthRegistry()
	}
	if o.Arbiter == nil {
		o.Arbiter = Rules{}
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	o.InviteAckTimeout = cmp.Or(o.InviteAckTimeout, 25*time.Second)
	o.TTLSweep = cmp.Or(o.TTLSweep, 30*time.Second)
	o.ExpectationSweep = cmp.Or(o.ExpectationSweep, 10*time.Second)
	o.RestartGrace = cmp.Or(o.RestartGrace, time.Minute)
	o.HoldFor = cmp.Or(o.HoldFor, 30*time.Second)
	o.IdempotencyWindow = cmp.Or(o.IdempotencyWindow, 24*time.Hour)
	o.MaxHops = cmp.Or(o.MaxHops, 8)
	o.ReserveIDs = cmp.Or(o.ReserveIDs, time.Minute)
	o.SnapshotAfter = cmp.Or(o.SnapshotAfter, 4_096)
	o.EvictAfter = cmp.Or(o.EvictAfter, 10*time.Minute)
	o.CloseWithin = cmp.Or(o.CloseWithin, 10*time.Second)
	l := &o.Limits
	l.Agents = cmp.Or(l.Agents, 100_000)
	l.Participants = cmp.Or(l.Participants, 1_000)
	l.EventBytes = cmp.Or(l.EventBytes, 1<<20)
	l.RecordBytes = cmp.Or(l.RecordBytes, 16<<10)
	l.DocumentBytes = cmp.Or(l.DocumentBytes, 64<<10)
	l.Documents = cmp.Or(l.Documents, 100_000)
	l.Content = cmp.Or(l.Content, 64<<20)
	l.ContentHome = cmp.Or(l.ContentHome, 1<<30)
	l.ContentHub = cmp.Or(l.ContentHub, 10<<30)
	l.ProfileBytes = cmp.Or(l.ProfileBytes, 64<<10)
	l.ProfileCache = cmp.Or(l.ProfileCache, 16<<20)
	l.InFlight = cmp.Or(l.InFlight, 65_536)
	l.LoadedChannels = cmp.Or(l.LoadedChannels, 200_000)
	l.Endpoints = cmp.Or(l.Endpoints, 16)
	l.Transient = cmp.Or(l.Transient, 100_000)
	l.Replay = cmp.Or(l.Replay, 4_096)
	l.RecentEvents = cmp.Or(l.RecentEvents, 16<<20)
	l.Held = cmp.Or(l.Held, 16)
	l.Inbox = cmp.Or(l.Inbox, 4_096)
	l.Deadlines = cmp.Or(l.Deadlines, 64)
	l.OpenRequests = cmp.Or(l.OpenRequests, 64)
	l.AskedRequests = cmp.Or(l.AskedRequests, 1_000)
	l.OpenTasks = cmp.Or(l.OpenTasks, 256)
	l.OpenTasksOwner = cmp.Or(l.OpenTasksOwner, 64)
	l.RuleGlobs = cmp.Or(l.RuleGlobs, identity.MaxGlobs)
	l.Lists = cmp.Or(l.Lists, 32<<20)
	l.Reads = cmp.Or(l.Reads, 64<<20)
	return o
}
