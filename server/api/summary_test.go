package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/task"
)

// reads is an engine that counts what is read of it, and what lists by activity
// cost it.
type reads struct {
	journal.Engine
	scans, logs, values atomic.Int64
	active              atomic.Int64 // entries by activity that were written
}

func (r *reads) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	for _, to := range b.Appends {
		for _, record := range to.Records {
			for _, put := range record.Put {
				if strings.HasPrefix(string(put.Key), "active/") {
					r.active.Add(1)
				}
			}
		}
	}
	return r.Engine.Append(ctx, b)
}

func (r *reads) Scan(ctx context.Context, shard int, o journal.ScanOptions) (journal.ScanPage, error) {
	r.scans.Add(1)
	return r.Engine.Scan(ctx, shard, o)
}

func (r *reads) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	r.logs.Add(1)
	return r.Engine.Read(ctx, log, o)
}

func (r *reads) Value(ctx context.Context, key journal.ValueKey) (journal.ValueState, error) {
	r.values.Add(1)
	return r.Engine.Value(ctx, key)
}

func (r *reads) String() string {
	return fmt.Sprintf("%d scans, %d pages, %d values", r.scans.Load(), r.logs.Load(), r.values.Load())
}

// silent is an endpoint that tells of invitations and acks none.
type silent chan struct{}

func (silent) ID() string { return "silent" }
func (s silent) Deliver(n *hub.Notice) error {
	if n.Envelope.Type == envelope.TypeInvite {
		s <- struct{}{}
	}
	return nil
}
func (s silent) Replay(_ context.Context, n *hub.Notice) error { return s.Deliver(n) }
func (silent) CutOff(error)                                    {}

// What was counted once is kept in counters: a summary reads nothing that is
// stored, whatever has changed since.
func TestASummaryIsNeverAScan(t *testing.T) {
	t.Parallel()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counted := &reads{Engine: engine}
	s := newSiteOf(t, counted, hub.Options{})
	alice := s.agent("alice")
	s.human("hana")
	invited := make(silent)
	dave := s.agent("dave")
	s.hub.Unbind(acker{s.hub}, dave)
	if err := s.hub.Bind(dave, invited); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var opening sync.WaitGroup
	defer func() { cancel(); opening.Wait() }()
	grow := func(n int) {
		for i := range 5 {
			s.tell(s.open("consulting", "alice", "hana"), "alice", "please look")
			opening.Go(func() {
				_, _ = s.hub.Open(ctx, hub.Opening{Creator: alice, Type: "conversation", Participants: []string{dave}}) // nobody acks it
			})
			<-invited
			id := fmt.Sprint("task-", n, "-", i)
			if err := s.hub.ObserveTask(t.Context(), task.Task{ID: id, Owner: alice, State: task.Running, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func() (pending, active, waiting, running int) {
		t.Helper()
		if _, err := s.hub.Changed(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum, err := s.hub.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := s.hub.CountOpenTasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sum.Pending, sum.Active, sum.WaitingForPeople, tasks[task.Running]
	}
	for n := 5; n <= 15; n += 5 {
		grow(n)
		before := counted.String()
		if pending, active, waiting, running := count(); pending != n || active != n || waiting != n || running != n {
			t.Errorf("%d pending, %d active, %d wait for people, %d tasks run; want %d each", pending, active, waiting, running, n)
		}
		if after := counted.String(); n > 5 && after != before {
			t.Errorf("a summary reads: %s before, %s after", before, after)
		}
	}
}

// A channel in which much is said moves in the list by activity once a minute.
func TestActivityCostsOneIndexWriteAMinute(t *testing.T) {
	t.Parallel()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counted := &reads{Engine: engine}
	var seconds atomic.Int64
	began := time.Now().Truncate(time.Minute)
	s := newSiteOf(t, counted, hub.Options{Now: func() time.Time { return began.Add(time.Duration(seconds.Load()) * time.Second) }})
	s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	busy, calm := s.open("conversation", "alice", "bob"), s.open("conversation", "alice", "bob")
	opened := counted.active.Load()
	for range 5 * 60 { // five minutes, a word each second
		seconds.Add(1)
		s.tell(busy, "alice", "x")
	}
	if n := counted.active.Load() - opened; n != 5 {
		t.Errorf("%d index writes for 300 events in 5 minutes", n)
	}
	s.tell(calm, "alice", "x")
	if got, _ := s.ids(operator, "sort=activity&newest"); len(got) != 2 || counted.active.Load()-opened != 6 {
		t.Errorf("%v after %d index writes", got, counted.active.Load()-opened)
	}
	seconds.Add(60)
	s.tell(calm, "alice", "y")
	if got, _ := s.ids(operator, "sort=activity&newest"); len(got) != 2 || got[0] != calm {
		t.Errorf("by activity: %v, want %s first", got, calm)
	}
}
