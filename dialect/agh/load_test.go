package agh_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

// figure returns one metric of the runtime that has no labels.
func (r *rig) figure(name string) float64 {
	r.Helper()
	registry := prometheus.NewPedanticRegistry()
	r.NoError(registry.Register(r.server))
	families, err := registry.Gather()
	r.NoError(err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	r.Fatalf("there is no figure %s", name)
	return 0
}

// subjectTo returns the subject of a peer; an empty peer is everyone.
func subjectTo(peer string) string {
	if peer == "" {
		return "agh.network.v0.ws_harbor.dock.broadcast"
	}
	token, err := wire.RouteToken(peer)
	if err != nil {
		panic(err)
	}
	return "agh.network.v0.ws_harbor.dock.peer." + token
}

// post publishes an envelope without waiting; the air does not keep it.
func (f *far) post(e obj) {
	f.r.Helper()
	to, _ := e["to"].(string)
	f.r.NoError(f.a.Publish(subjectTo(to), must(json.Marshal(e))))
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	f.a.log = nil
}

func TestFloods(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#119: a peer that sends too much starves nobody, and what is dropped is counted", agh.Config{Limits: agh.Limits{SenderRate: 50}},
		func(r *rig, a *air, crane, tug *host, f *far) {
			honest := &far{r, a, "far.honest"}
			var heard []string
			for range 10 {
				for range 100 {
					f.post(f.envelope(obj{"to": crane.peer}))
				}
				heard = append(heard, honest.send(nil))
			}
			r.Equal(tug.inbox(), heard)
			r.Equal(len(crane.inbox()), 50)
			r.Equal(r.figure("network_dropped_total"), 950.0)
			pass(time.Second)
			for range 100 {
				f.post(f.envelope(obj{"to": crane.peer}))
			}
			synctest.Wait()
			r.Equal(r.figure("network_dropped_total"), 1000.0)
			r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 110)
		})
	over(t, "agh-network#119: a subscription has a budget of its own, before anything is read", agh.Config{Limits: agh.Limits{SubscriptionRate: 100}},
		func(r *rig, a *air, crane, tug *host, f *far) {
			for range 5000 {
				r.NoError(a.Publish(subjectTo(crane.peer), []byte(strings.Repeat("[", 1000))))
			}
			synctest.Wait()
			r.Equal(r.figure("network_dropped_total"), 4900.0)
			id := f.send(nil) // to tug, at its own subject
			r.Equal(tug.inbox(), []string{id})
			r.True(len(r.audited("rejected")) <= 11, "a flood fills the audit")
		})
	over(t, "agh-network#119: names that are made up are forgotten again", agh.Config{Limits: agh.Limits{Remotes: 10}},
		func(r *rig, a *air, _, tug *host, _ *far) {
			var sent []string
			for i := range 40 {
				sent = append(sent, (&far{r, a, fmt.Sprintf("far.s%02d", i)}).send(nil))
			}
			r.Equal(tug.inbox(), sent)
			home, err := r.hub.Home(context.Background(), "agh", "ws_harbor")
			r.NoError(err)
			id, err := r.hub.Named(context.Background(), home.ID, thread.Type, "dock/thread_tide")
			r.NoError(err)
			known := 0
			for e, err := range r.hub.Log(context.Background(), id, 1, 100) {
				r.NoError(err)
				if r.hub.Transient(e.Sender) {
					known++
				}
			}
			r.Equal(known, 10)
			first := &far{r, a, "far.s00"}
			first.greet(nil)
			tug.say("you again", obj{"to": first.id})
			r.Equal(tug.inbox(), sent)
			again := first.send(nil)
			r.True(slices.Contains(tug.inbox(), again), "who was forgotten cannot speak")
		})
}

func TestLargeCards(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#119: cards have a bound together, and one that is too large takes nobody's place", agh.Config{Limits: agh.Limits{Remotes: 10}},
		func(r *rig, a *air, _, _ *host, f *far) {
			names := func() []string { return each(list(r.get("/peers"), "peers"), "peer_id")[2:] }
			f.greet(nil)
			(&far{r, a, "far.large"}).greet(obj{"display_name": strings.Repeat("x", 100_000)})
			r.Equal(names(), []string{f.id})
			f.greet(obj{"display_name": strings.Repeat("x", 100_000)})
			r.Equal(r.figure("network_dropped_total"), 2.0)
			for i := range 20 {
				(&far{r, a, fmt.Sprintf("far.p%02d", i)}).greet(nil)
			}
			r.Equal(len(names()), 10)
			r.Equal(r.figure("network_dropped_total"), 13.0)
			pass(2 * time.Minute)
			(&far{r, a, "far.late"}).greet(nil)
			r.Equal(names(), []string{"far.late"})
		})
}

// It is not parallel: it measures the heap of the whole process.
func TestManyGreetings(t *testing.T) { //nolint:paralleltest // see above
	const interval = 3 * time.Minute
	spec.Check(t, "agh-network#119: a thousand peers greet for an hour: nothing is written, and nothing grows", func(t *spec.T) {
		outer := t.T
		synctest.Test(outer, func(inner *testing.T) {
			t.T = inner
			defer func() { t.T = outer }()
			a := newAir()
			r := &rig{T: t, cfg: agh.Config{Broker: a, GreetInterval: interval}, store: mem.NewStore()}
			r.start()
			defer r.stop()
			crane := r.join("dock", "crane", "crane.s01")
			peers := make([]*far, 1000)
			for i := range peers {
				peers[i] = &far{r, a, fmt.Sprintf("far.p%03d", i)}
			}
			round := func() {
				for _, p := range peers {
					p.post(p.envelope(obj{"kind": "greet", "to": nil, "surface": nil, "thread_id": nil, "body": obj{"peer_card": obj{
						"peer_id": p.id, "profiles_supported": []string{}, "capabilities": []string{}, "artifacts_supported": []string{}, "trust_modes_supported": []string{},
					}}}))
				}
				pass(interval)
			}
			round()
			before, err := r.hub.Now(context.Background())
			r.NoError(err)
			heap := heapNow()
			for at := interval; at < time.Hour; at += interval {
				round()
			}
			after, err := r.hub.Now(context.Background())
			r.NoError(err)
			r.Equal(after, before)
			if grown := heapNow() - heap; grown > 8<<20 {
				r.Errorf("the heap grew by %d bytes", grown)
			}
			r.Equal(len(list(r.get("/peers"), "peers")), 1001)
			pass(2 * interval)
			r.Equal(len(list(r.get("/peers"), "peers")), 1)
			r.Equal(crane.inbox(), []string{})
		})
	})
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// costs counts the reads from an engine: calls, and what they return.
type costs struct {
	journal.Engine
	n atomic.Int64
}

func (c *costs) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	page, err := c.Engine.Read(ctx, log, o)
	c.n.Add(1 + int64(len(page.Entries)))
	return page, err
}

func (c *costs) Scan(ctx context.Context, shard int, o journal.ScanOptions) (journal.ScanPage, error) {
	page, err := c.Engine.Scan(ctx, shard, o)
	c.n.Add(1 + int64(len(page.Entries)))
	return page, err
}

func (c *costs) Logs(ctx context.Context, p journal.PartitionName, o journal.LogsOptions) (journal.LogsPage, error) {
	page, err := c.Engine.Logs(ctx, p, o)
	c.n.Add(1 + int64(len(page.Logs)))
	return page, err
}

// of returns the cost of fn.
func (c *costs) of(fn func()) int64 {
	before := c.n.Load()
	fn()
	return c.n.Load() - before
}

func TestCostOfManyThreads(t *testing.T) {
	t.Parallel()
	runs(t, "a page, a thread, work and opening the hub cost the same with few threads and with many", agh.Config{}, func(r *rig) {
		r.stop()
		r.cost = &costs{}
		r.start()
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		last := 0
		fill := func(to int) {
			for ; last < to; last++ {
				if last%100 == 0 {
					pass(time.Second)
				}
				crane.say("hello", obj{"thread_id": fmt.Sprintf("thread_%06d", last), "to": tug.peer, "work_id": fmt.Sprintf("work_%d", last)})
			}
		}
		measure := func() (read []int64) {
			read = append(read, r.cost.of(func() { r.restart() }))
			for _, path := range []string{
				"/channels/dock/threads?limit=50", "/channels/dock/threads?limit=50&after=thread_000042", "/channels/dock/threads/thread_000042",
				"/channels/dock/threads/thread_000042/messages", "/work/work_42",
			} {
				read = append(read, r.cost.of(func() { r.get(path) }))
			}
			return read
		}
		fill(200) // the inboxes, which hold 100, are full
		few := measure()
		fill(scale.N(2000))
		many := measure()
		t.Logf("few %v, many %v", few, many)
		for i := range few {
			r.True(many[i] <= few[i]+few[i]/2+1, "the cost grows with the threads: %v, then %v", few, many)
		}
	})
}

func TestManyThreads(t *testing.T) {
	t.Parallel()
	holds(t, "agh-network#126 agh-network#130: many threads are listed page by page, and a restart changes nothing", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		n := scale.N(600)
		for i := range n {
			in := obj{"thread_id": fmt.Sprintf("thread_%06d", (i*7919)%n)}
			if i%10 == 0 {
				in["to"], in["work_id"] = tug.peer, fmt.Sprintf("work_%d", i)
			}
			crane.say("hello", in)
			if i%100 == 0 {
				pass(time.Second)
				in["kind"], in["to"], in["body"] = "trace", crane.peer, obj{"state": "completed"}
				tug.send(http.StatusOK, in)
			}
		}
		read := func() (all []obj) {
			after := ""
			for {
				page := list(r.get("/channels/dock/threads?limit=70"+after), "threads")
				if all = append(all, page...); len(page) < 70 {
					return all
				}
				after = "&after=" + page[69]["thread_id"].(string)
			}
		}
		before := read()
		r.Equal(len(before), n)
		ids := each(before, "thread_id")
		slices.Sort(ids)
		r.Equal(len(slices.Compact(ids)), n)
		r.True(slices.IsSortedFunc(before, func(a, b obj) int {
			if c := strings.Compare(b["last_activity_at"].(string), a["last_activity_at"].(string)); c != 0 {
				return c
			}
			return strings.Compare(a["thread_id"].(string), b["thread_id"].(string))
		}), "the list is not in order")
		channel, work := r.get("/channels/dock"), r.work("work_0")
		r.restart()
		r.Equal(read(), before)
		r.Equal(r.work("work_0"), work)
		r.Equal(work, "completed")
		after := r.get("/channels/dock")
		for _, name := range []string{"message_count", "kind_counts", "historical_participant_count", "last_activity_at", "last_message_preview"} {
			r.Equal(after["channel"].(obj)[name], channel["channel"].(obj)[name])
		}
	})
}
