// Package hub is the core: it registers identities, opens channels, admits envelopes,
// folds them through the channel's adapter, makes them durable and delivers them. It is
// the only writer of the journal, and it never handles a dialect's bytes.
//
// Runnable examples: example_test.go; in a program of one's own, docs/go.md.
package hub

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/content"
	"github.com/parley-hub/parley/hub/internal/document"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/feed"
	"github.com/parley-hub/parley/hub/internal/imported"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/listcost"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/hub/internal/taskstore"
	"github.com/parley-hub/parley/hub/internal/upgrade"
	"github.com/parley-hub/parley/hub/tracing"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/journal"
)

// Hub serves one journal. All methods are safe for concurrent use.
type Hub struct {
	tenant     schema.Tenant
	journal    journal.Engine
	opts       Options
	log        *slog.Logger
	now        func() time.Time
	adaptersMu sync.RWMutex
	adapters   map[channel.Key]channel.Adapter
	shared     *channel.Interner
	plans      plans
	works      works
	census     census
	taskCensus taskCensus
	spans      *tracing.Spans // nil: none are recorded
	minter     *envelope.Minter

	judge      atomic.Pointer[Arbiter]
	registry   registry.Registry
	ledger     *ledger.Ledger
	documents  *document.Store
	contents   *content.Store
	tasks      *taskstore.Store
	unfinished unfinished
	profiles   profile.Cache
	channels   channels
	openings   openings
	acks       ackWaits
	delivery   delivery
	hooks      hooks
	sweepers   *loop.Group
	opened     expect.Instant // when it was
	stats      stats
	warnings   logsample.Limiter
	subs       subscriptions
	recent     *feed.Source
	snapshots  snapshots
	requests   requestWaits
	imported   imported.Lists
	saver      foldSaver
	homes      homes
	lists      *listcost.Gate
	board      board
	reads      *turns.Gate
	outsiders  sync.Map // finders of identities, by prefix of their names

	background context.Context // of goroutines that outlive the call that starts them
	stop       context.CancelFunc
	done       sync.WaitGroup
	once       sync.Once
	closed     chan struct{}
}

// Open starts a hub on a journal. The caller closes the journal. It reads the
// identities, but no channel: those are folded when first touched.
func Open(ctx context.Context, j journal.Engine, o Options) (*Hub, error) {
	o = o.withDefaults()
	if len(o.Tenant) > journal.MaxNamePart {
		return nil, fault.New(fault.Invalid, "the tenant's name has %d bytes; at most %d are accepted", len(o.Tenant), journal.MaxNamePart)
	}
	h := &Hub{
		tenant:   schema.Tenant(o.Tenant),
		journal:  j,
		opts:     o,
		log:      o.Log,
		now:      o.Now,
		adapters: make(map[channel.Key]channel.Adapter, len(o.Adapters)),
		shared:   channel.NewInterner(0),
		closed:   make(chan struct{}),
	}
	h.opened = expect.InstantOf(h.now())
	for _, a := range o.Adapters {
		manifest := a.Manifest()
		h.adapters[manifest.Key()] = a
	}
	h.judge.Store(&o.Arbiter)
	h.profiles.Bytes = o.Limits.ProfileCache
	h.lists = listcost.New(o.Limits.Lists, h.now)
	h.reads = turns.New(o.Limits.Reads)
	h.hooks.init(o.Listeners, h.log)
	h.works.init()
	if h.spans = tracing.New(o.Tracing, o.Limits.LoadedChannels); h.spans != nil {
		h.hooks.tracing = traceListener{spans: h.spans}
	}
	h.channels.init(h.tenant, o.Limits.LoadedChannels)
	h.delivery.init(o.Limits.InFlight)
	if err := h.openMinter(ctx); err != nil {
		return nil, err
	}
	h.background, h.stop = context.WithCancel(context.Background())
	h.openSubjects()
	if err := upgrade.Run(ctx, h.ledger); err != nil {
		return nil, err
	}
	if err := h.loadRegistry(ctx); err != nil {
		return nil, err
	}
	h.dropAllAbandoned(ctx)
	h.SweepDrops(ctx)
	h.startSweepers(h.background)
	h.done.Go(h.deliverAll)
	h.saver.wake = make(chan struct{}, 1)
	h.done.Go(func() { h.saveAll(h.background) })
	return h, nil
}

// Close stops admitting, waits until everything ordered is answered, and leaves no
// goroutine behind. After Options.CloseWithin it abandons an adapter or listener that does
// not return: what was acknowledged is durable already. A second call waits for the first.
func (h *Hub) Close() {
	h.once.Do(func() {
		go func() { defer close(h.closed); h.shut() }()
	})
	late := time.NewTimer(h.opts.CloseWithin)
	defer late.Stop()
	select {
	case <-h.closed:
	case <-late.C:
		h.log.Error("the hub did not close in time; an adapter or a listener does not return", "waited", h.opts.CloseWithin)
	}
}

func (h *Hub) shut() {
	h.stop()
	h.delivery.close()
	h.sweepers.Close()
	h.done.Wait()
	h.registry.UnbindAll()
	h.spans.Close(h.now())
	h.openings.finishAll(errClosed)
	for _, ch := range h.channels.list() {
		h.refuseWaiting(ch, errClosed)
	}
}

// openSubjects makes the parts of the hub that only need to write.
func (h *Hub) openSubjects() {
	limits := &h.opts.Limits
	h.ledger = &ledger.Ledger{
		Journal: h.journal, Tenant: h.tenant, Now: h.now, Minter: h.minter, Log: h.log,
		RecordBytes: limits.RecordBytes, Isolate: h.hooks.isolated,
	}
	for _, sink := range h.opts.AuditSinks {
		h.ledger.AddSink(sink)
	}
	h.documents = &document.Store{Ledger: h.ledger, Bytes: limits.DocumentBytes, Count: limits.Documents}
	h.recent = &feed.Source{
		Journal: h.journal, Background: h.background, Bytes: limits.RecentEvents, Delivered: h.awaitDelivery,
	}
	h.tasks = &taskstore.Store{Ledger: h.ledger, ChannelGone: func(ctx context.Context, id string) (bool, error) {
		_, err := h.Channel(ctx, id)
		return Deleted(err), fault.IgnoreNotFound(err)
	}}
	h.contents = &content.Store{
		Ledger: h.ledger, Homes: contentHomes{h}, Background: h.background,
		Limits: content.Limits{Content: limits.Content, Home: limits.ContentHome, Hub: limits.ContentHub},
	}
}

// openMinter reads the floor under which no id is minted again. It is reserved
// ahead of the ids, so opening scans nothing.
func (h *Hub) openMinter(ctx context.Context) error {
	key := h.tenant.MinterFloor()
	value, err := h.journal.Value(ctx, key)
	if err != nil {
		return err
	}
	floor := schema.DecodeUint(value.Ordered.Data)
	h.minter = envelope.NewMinter(floor, h.opts.ReserveIDs, func(floor uint64) error {
		return h.raiseFloor(context.Background(), key, floor)
	})
	return nil
}

// raiseFloor stores that ids up to floor may have been minted. It is compared and
// set, and never lowered: another process may have raised it further.
func (h *Hub) raiseFloor(ctx context.Context, key journal.ValueKey, floor uint64) error {
	for {
		value, err := h.journal.Value(ctx, key)
		if err != nil {
			return unavailable(err)
		}
		err = h.commit(ctx, journal.Batch{Values: []journal.ValueWrite{{
			Key: key, Data: schema.EncodeUint(max(floor, schema.DecodeUint(value.Ordered.Data))),
			Expect: journal.Exactly(value.Ordered.Version),
		}}})
		if !isConflict(err) {
			return err
		}
	}
}

// commit appends a batch that nothing was computed from, and waits until it is
// durable.
func (h *Hub) commit(ctx context.Context, batch journal.Batch) error {
	return h.ledger.Commit(ctx, batch)
}

// unavailable gives the journal's errors a code of the catalogue.
func unavailable(err error) error { return ledger.Unavailable(err) }

func isConflict(err error) bool { return ledger.IsConflict(err) }

// boundRecord refuses a record that would make lists too long to send.
func (h *Hub) boundRecord(what string, size int) error { return h.ledger.BoundRecord(what, size) }

// errBroke is a panic of an adapter or an arbiter, which may be the application's.
// The batch that was being built is dropped; other channels are not affected.
var errBroke = errors.New("an adapter or arbiter panicked")

// rescue turns a panic into an error. Callers defer it.
func (h *Hub) rescue(err *error) {
	if r := recover(); r != nil {
		*err = fault.Wrap(fault.Internal, errBroke, "%v: %v", errBroke, r)
		h.log.Error(errBroke.Error(), "panic", r, "stack", string(debug.Stack()))
	}
}

// guarded calls do and turns a panic into an error.
func (h *Hub) guarded(do func() error) (err error) {
	defer h.rescue(&err)
	return do()
}
