package hub

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/identity"
)

// Options configures a hub. The zero value of each field is a sensible hub.
type Options struct {
	// Tenant is part of the name of everything that is stored; empty: main.
	Tenant string
	// Adapters govern channels; without any, no channel can be opened.
	Adapters []channel.Adapter
	// Auth proves identities; nil accepts the scheme none only.
	Auth *identity.AuthRegistry
	// Arbiter decides who may do what; nil enforces each identity's rule.
	Arbiter Arbiter
	// Listeners are told what happened, in this order, after the audit.
	Listeners []Listener
	// AuditSinks are told every audit record besides the journal.
	AuditSinks []AuditSink
	// Evaluators and Handlers are added to the built-in ones, or take their
	// place; a nil one switches a name off.
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

	// TrustClients lets any registered identity post to any channel, as AG2's
	// own hub does, and leaves judging it to the adapter.
	TrustClients bool

	InviteAckTimeout time.Duration // 0: 25 s, just under a client's own patience
	// TTLSweep and ExpectationSweep are how often to look for what is due; 0
	// is 30 s and 10 s, negative is never: Sweep then does it by hand.
	TTLSweep         time.Duration
	ExpectationSweep time.Duration
	// IgnoreExpectations enforces no expectation, neither of a manifest nor of a
	// channel's knob, which is still checked when a channel is opened.
	IgnoreExpectations bool
	// RestartGrace is how long whoever became overdue while no hub ran has to
	// come back and answer, or what its expectation waits, if that is less; 0:
	// 1 min, negative is none.
	RestartGrace time.Duration
	// HoldFor is how long a supervisor's word waits for the round in flight;
	// 0: 30 s.
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

// Limits bound what a hub holds. Zero is the default given with each.
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
	setDefault(&o.Tenant, "main")
	if o.Auth == nil {
		o.Auth = identity.NewAuthRegistry()
	}
	if o.Arbiter == nil {
		o.Arbiter = Rules{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	setDefault(&o.InviteAckTimeout, 25*time.Second)
	setDefault(&o.TTLSweep, 30*time.Second)
	setDefault(&o.ExpectationSweep, 10*time.Second)
	setDefault(&o.RestartGrace, time.Minute)
	setDefault(&o.HoldFor, 30*time.Second)
	setDefault(&o.IdempotencyWindow, 24*time.Hour)
	setDefault(&o.MaxHops, 8)
	setDefault(&o.ReserveIDs, time.Minute)
	setDefault(&o.SnapshotAfter, 4_096)
	setDefault(&o.EvictAfter, 10*time.Minute)
	setDefault(&o.CloseWithin, 10*time.Second)
	l := &o.Limits
	setDefault(&l.Agents, 100_000)
	setDefault(&l.Participants, 1_000)
	setDefault(&l.EventBytes, 1<<20)
	setDefault(&l.RecordBytes, 16<<10)
	setDefault(&l.DocumentBytes, 64<<10)
	setDefault(&l.Documents, 100_000)
	setDefault(&l.Content, 64<<20)
	setDefault(&l.ContentHome, 1<<30)
	setDefault(&l.ContentHub, 10<<30)
	setDefault(&l.ProfileBytes, 64<<10)
	setDefault(&l.ProfileCache, 16<<20)
	setDefault(&l.InFlight, 65_536)
	setDefault(&l.LoadedChannels, 200_000)
	setDefault(&l.Endpoints, 16)
	setDefault(&l.Transient, 100_000)
	setDefault(&l.Replay, 4_096)
	setDefault(&l.RecentEvents, 16<<20)
	setDefault(&l.Held, 16)
	setDefault(&l.Inbox, 4_096)
	setDefault(&l.Deadlines, 64)
	setDefault(&l.OpenRequests, 64)
	setDefault(&l.AskedRequests, 1_000)
	setDefault(&l.OpenTasks, 256)
	setDefault(&l.OpenTasksOwner, 64)
	setDefault(&l.RuleGlobs, identity.MaxGlobs)
	setDefault(&l.Lists, 32<<20)
	setDefault(&l.Reads, 64<<20)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
