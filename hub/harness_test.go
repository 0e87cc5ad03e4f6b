package hub_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/mem"
)

// How a test with a hub in it reads:
//
//	holds(t, "ag2-hub#93: the sweep expires it", hub.Options{}, func(t *spec.T, r *rig) {
//		a, b := r.agent("alice"), r.agent("bob")
//		ch := r.open("conversation", a, b)
//		r.say(a, ch, "hello")
//		r.pass(3 * time.Hour)
//		t.Equal(r.channel(ch).State, channel.Expired)
//	})
//
// Time is the bubble's: pass moves it on, and everything that is due happens.

// holds runs fn against a hub on an empty store, as a check of a statement.
func holds(t *testing.T, statement string, o hub.Options, fn func(t *spec.T, r *rig)) {
	t.Helper()
	spec.Check(t, statement, func(t *spec.T) {
		t.Parallel()
		outer := t.T
		synctest.Test(outer, func(inner *testing.T) {
			t.T = inner // comparisons belong to the bubble's test
			defer func() { t.T = outer }()
			fn(t, newRig(inner, o))
		})
	})
}

// runs does the same as holds, without a statement.
func runs(t *testing.T, name string, o hub.Options, fn func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { fn(t, newRig(t, o)) })
	})
}

// stored runs fn in memory and on disk, where time is real.
func stored(t *testing.T, name string, o hub.Options, fn func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Run("mem", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { fn(t, newRig(t, o)) })
		})
		t.Run("disk", func(t *testing.T) {
			t.Parallel()
			fn(t, newRigOn(t, o, 1, t.TempDir()))
		})
	})
}

// byHand is a hub whose sweepers run only when a test calls them.
var byHand = hub.Options{TTLSweep: -1, ExpectationSweep: -1}

// rig is a hub on a store in memory, with what a test needs to drive it. Its
// methods end the test at the first error.
type rig struct {
	*hub.Hub
	ear    *ear // records everything, across restarts
	store  *mem.Store
	engine *mem.Engine
	shards int
	dir    string         // of a store on disk, in which case engine is nil
	stored journal.Engine // the engine that the hub was opened on

	t      testing.TB
	opts   hub.Options
	agents []*agent
}

func newRig(t testing.TB, o hub.Options) *rig {
	t.Helper()
	return newRigOn(t, o, shards, "")
}

// newRigOn does the same as newRig on a store in memory with a number of shards, or
// on disk.
func newRigOn(t testing.TB, o hub.Options, shards int, dir string) *rig {
	t.Helper()
	if o.Adapters == nil {
		o.Adapters = adapter.All()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t.Logf("with %d shards", shards)
	r := &rig{t: t, ear: &ear{}, store: mem.NewStore(), shards: shards, dir: dir, opts: o}
	r.opts.Listeners = append(slices.Clone(o.Listeners), r.ear)
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.dir != "" {
		r.stored, err = disk.Open(r.dir, disk.Options{})
	} else {
		r.engine, err = mem.Open(mem.Options{Store: r.store, Shards: r.shards})
		r.stored = r.engine
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if r.Hub, err = hub.Open(context.Background(), r.stored, r.opts); err != nil {
		r.t.Fatal(err)
	}
	for _, a := range r.agents {
		// An agent that was unregistered, or lost in a crash, stays unbound.
		_ = r.Bind(a.id, a)
	}
}

func (r *rig) stop() {
	r.t.Helper()
	r.Close()
	for _, a := range r.agents {
		a.busy.Wait()
	}
	_ = r.stored.Close()
}

// restart closes hub and engine, and opens both again on the same store. Extra
// options edit those of the new hub.
func (r *rig) restart(edit ...func(*hub.Options)) {
	r.t.Helper()
	r.stop()
	for _, e := range edit {
		e(&r.opts)
	}
	r.start()
}

// crash restarts after a power loss: unsynced data is lost.
func (r *rig) crash(edit ...func(*hub.Options)) {
	r.t.Helper()
	r.engine.Faults().Crash()
	r.restart(edit...)
}

// hold keeps everything from becoming durable until release.
func (r *rig) hold() (release func()) {
	_, release = r.engine.Faults().HoldSync()
	return release
}

// pass lets time pass, and waits until everything that was due has happened.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	r.settle()
}

// settle waits until nothing more happens without time passing.
func (r *rig) settle() {
	if r.dir == "" {
		synctest.Wait()
	}
}

// open opens a channel and returns its id.
func (r *rig) open(kind string, creator *agent, others ...*agent) string {
	r.t.Helper()
	return r.openWith(kind, nil, creator, others...)
}

// openWith does the same as open, with an edited request.
func (r *rig) openWith(kind string, edit func(*hub.Opening), creator *agent, others ...*agent) string {
	r.t.Helper()
	opened, err := r.tryOpen(kind, edit, creator, others...)
	if err != nil {
		r.t.Fatal(err)
	}
	return opened.ID
}

func (r *rig) tryOpen(kind string, edit func(*hub.Opening), creator *agent, others ...*agent) (hub.Opened, error) {
	o := hub.Opening{Creator: creator.id, Type: kind}
	for _, a := range others {
		o.Participants = append(o.Participants, a.id)
	}
	if edit != nil {
		edit(&o)
	}
	return r.Open(context.Background(), o)
}

// knobs returns an edit for openWith.
func knobs(text string) func(*hub.Opening) {
	return func(o *hub.Opening) { o.Knobs = []byte(text) }
}

// expecting returns knobs with a list of expectations.
func expecting(list string) func(*hub.Opening) { return knobs(`{"expectations":` + list + `}`) }

// say posts a text and returns its id.
func (r *rig) say(a *agent, channelID, text string) string {
	r.t.Helper()
	id, err := r.trySay(a, channelID, text)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) trySay(a *agent, channelID, text string) (string, error) {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return "", err
	}
	return r.Post(context.Background(), &envelope.Envelope{Channel: channelID, Sender: a.id, Type: envelope.TypeText, Data: data}, nil)
}

// post posts an envelope of any type, which edit may change.
func (r *rig) post(a *agent, channelID, eventType, data string, edit ...func(*envelope.Envelope)) string {
	r.t.Helper()
	e := &envelope.Envelope{Channel: channelID, Sender: a.id, Type: eventType, Data: []byte(data)}
	for _, finish := range edit {
		finish(e)
	}
	id, err := r.Post(context.Background(), e, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// end closes a channel.
func (r *rig) end(channelID, reason string) *channel.Metadata {
	r.t.Helper()
	m, err := r.CloseChannel(context.Background(), channelID, reason)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) channel(id string) *channel.Metadata {
	r.t.Helper()
	m, err := r.Channel(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// log reads a channel's whole history.
func (r *rig) log(channelID string) []*envelope.Envelope {
	r.t.Helper()
	var list []*envelope.Envelope
	for e, err := range r.Log(context.Background(), channelID, 0, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// audit reads the audit records of the kinds, or all of them, each without its
// time.
func (r *rig) audit(kinds ...string) []map[string]any {
	r.t.Helper()
	list := []map[string]any{}
	var q hub.AuditQuery
	for {
		page, next, err := r.AuditLog(context.Background(), q)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, line := range page {
			record := map[string]any{}
			if err := json.Unmarshal(line.Data, &record); err != nil {
				r.t.Fatal(err)
			}
			if record["at"] != envelope.FormatTime(line.At) {
				r.t.Fatalf("audit record without its time: %s", line.Data)
			}
			delete(record, "at")
			if len(kinds) == 0 || slices.Contains(kinds, line.Kind) {
				list = append(list, record)
			}
		}
		if q.After = next; next == "" {
			return list
		}
	}
}

// types returns the event types of the history.
func (r *rig) types(channelID string) []string {
	r.t.Helper()
	return types(r.log(channelID))
}

func types(list []*envelope.Envelope) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Type
	}
	return names
}
