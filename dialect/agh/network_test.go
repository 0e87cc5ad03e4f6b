package agh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

// air is a broker in memory: messages are passed to the subscribers.
type air struct {
	mu      sync.Mutex
	down    bool
	next    int
	subs    map[int]sub
	log     []sentOn
	changed func(error)
}

type sub struct {
	subject string
	queue   chan []byte
}

type sentOn struct {
	subject string
	data    []byte
}

func newAir() *air { return &air{subs: map[int]sub{}} }

func (a *air) Subscribe(subject string, handle func([]byte)) (func(), error) {
	s := sub{subject, make(chan []byte, 10_000)}
	a.mu.Lock()
	a.next++
	id := a.next
	a.subs[id] = s
	a.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for data := range s.queue {
			handle(data)
		}
	}()
	return func() {
		a.mu.Lock()
		delete(a.subs, id)
		a.mu.Unlock()
		close(s.queue)
		<-done
	}, nil
}

func (a *air) Flush(context.Context) error { return nil }

func (a *air) Publish(subject string, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return errors.New("no connection")
	}
	a.log = append(a.log, sentOn{subject, data})
	for _, s := range a.subs {
		if s.subject == subject {
			s.queue <- slices.Clone(data)
		}
	}
	return nil
}

func (a *air) Watch(changed func(error)) {
	a.mu.Lock()
	down := a.down
	a.changed = changed
	a.mu.Unlock()
	if down {
		changed(errors.New("not connected yet"))
	}
}
func (a *air) Address() (string, int) { return "127.0.0.1", 4222 }
func (a *air) Close() error           { return nil }

func (a *air) set(down bool) {
	a.mu.Lock()
	a.down = down
	a.mu.Unlock()
	if down {
		a.changed(errors.New("lost"))
	} else {
		a.changed(nil)
	}
}

// published lists the messages of a kind that hosted peers published.
func (a *air) published(kind string) []obj {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []obj{}
	for _, m := range a.log {
		var e obj
		if json.Unmarshal(m.data, &e) == nil && e["kind"] == kind && !strings.HasPrefix(fmt.Sprint(e["from"]), "far") {
			e["subject"] = m.subject
			all = append(all, e)
		}
	}
	return all
}

func (a *air) subjects() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []string{}
	for _, s := range a.subs {
		all = append(all, s.subject)
	}
	slices.Sort(all)
	return all
}

// far is a peer of another runtime.
type far struct {
	r  *rig
	a  *air
	id string
}

// envelope returns an envelope of the peer: a directed say with other members where
// given.
func (f *far) envelope(members obj) obj {
	e := obj{
		"protocol": "agh-network/v0", "id": wire.NewID(), "workspace_id": "ws_harbor", "kind": "say", "channel": "dock", "surface": "thread",
		"thread_id": "thread_tide", "from": f.id, "to": "tug.s02", "ts": time.Now().Unix(), "body": obj{"text": "hello"}, "proof": nil,
	}
	for k, v := range members {
		e[k] = v
		if v == nil && k != "to" {
			delete(e, k)
		}
	}
	return e
}

// send publishes an envelope at its subject, and waits until it has been handled.
func (f *far) send(members obj) string {
	f.r.Helper()
	e := f.envelope(members)
	data, err := json.Marshal(e)
	f.r.NoError(err)
	subject := "agh.network.v0.ws_harbor.dock.broadcast"
	if to, _ := e["to"].(string); to != "" && e["kind"] != "greet" {
		token, err := wire.RouteToken(to)
		f.r.NoError(err)
		subject = "agh.network.v0.ws_harbor.dock.peer." + token
	}
	f.on(subject, data)
	return fmt.Sprint(e["id"])
}

func (f *far) on(subject string, data []byte) {
	f.r.NoError(f.a.Publish(subject, data))
	synctest.Wait()
}

func (f *far) greet(members obj) {
	card := obj{"peer_id": f.id, "display_name": "Far", "profiles_supported": []string{"agh-network/v0"}, "capabilities": []string{}, "artifacts_supported": []string{}, "trust_modes_supported": []string{}}
	for k, v := range members {
		card[k] = v
	}
	f.send(obj{"kind": "greet", "to": nil, "surface": nil, "thread_id": nil, "body": obj{"peer_card": card}})
}

// over runs fn with a broker, crane and tug hosted in dock, and far.s9 elsewhere.
func over(t *testing.T, statement string, cfg agh.Config, fn func(r *rig, a *air, crane, tug *host, f *far)) {
	t.Helper()
	names, about, _ := strings.Cut(statement, ": ")
	for ids := range slices.Chunk(strings.Fields(names), 2) { // a check names at most two
		overOne(t, strings.Join(ids, " ")+": "+about, cfg, fn)
	}
}

func overOne(t *testing.T, statement string, cfg agh.Config, fn func(r *rig, a *air, crane, tug *host, f *far)) {
	t.Helper()
	a := newAir()
	cfg.Broker = a
	holds(t, strings.TrimSuffix(statement, ": "), cfg, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		synctest.Wait()
		fn(r, a, crane, tug, &far{r, a, "far.s9"})
	})
}

func receiptOf(e obj) []any {
	b := e["body"].(obj)
	return []any{b["status"], b["reason_code"], b["for_id"], e["reply_to"], e["causation_id"], e["from"], e["to"], e["work_id"]}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#56: a message to a peer that is not here gets no receipt and is not remembered", agh.Config{}, func(r *rig, a *air, _, tug *host, f *far) {
		id := f.send(obj{"to": "nobody.s1", "work_id": "work_1"})
		f.on("agh.network.v0.ws_harbor.dock.broadcast", must(json.Marshal(f.envelope(obj{"id": id, "to": "nobody.s1", "work_id": "work_1"}))))
		r.Equal(len(a.published("receipt")), 0)
		f.send(obj{"id": id, "work_id": "work_1"}) // not recorded
		r.Equal(tug.inbox(), []string{id})
	})
	over(t, "agh-network#65 agh-network#66 agh-network#71: duplicates are answered once each, and stay known", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id})
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id})
		got := a.published("receipt")
		r.Equal(len(got), 1)
		r.Equal(receiptOf(got[0]), []any{"duplicate", "duplicate", id, id, id, "tug.s02", "far.s9", "work_1"})
		r.Equal(r.work("work_1"), "submitted")
		r.restart()
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id})
		r.Equal(len(a.published("receipt")), 2)
		r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 3)
		r.Equal(len(crane.inbox()), 0)
	})
	over(t, "agh-network#67: a repeated broadcast, or a repeat without work, gets no receipt", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		workless, all := f.send(nil), f.send(obj{"to": nil})
		f.send(obj{"id": workless})
		f.send(obj{"id": all, "to": nil})
		r.Equal(tug.inbox(), []string{workless, all})
		r.Equal(crane.inbox(), []string{all})
		r.Equal(len(a.published("receipt")), 0)
	})
	over(t, "agh-network#68 agh-network#82: a duplicate comes before closed work", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1"})
		f.send(obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "canceled"}})
		r.Equal(r.work("work_1"), "canceled")
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(receiptOf(a.published("receipt")[0])[:2], []any{"duplicate", "duplicate"})
		late := f.send(obj{"work_id": "work_1"})
		r.Equal(receiptOf(a.published("receipt")[1]), []any{"rejected", "work_closed", late, late, late, "tug.s02", "far.s9", "work_1"})
		f.send(obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "failed"}})
		r.Equal(len(a.published("receipt")), 2)
		r.Equal(r.work("work_1"), "canceled")
		r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 2) // receipts for closed work are not stored
	})
	over(t, "agh-network#69 agh-network#89 agh-network#90: what was rejected may be sent again", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1", "ts": time.Now().Unix() - 400, "trace_id": "t-1"})
		got := a.published("receipt")
		r.Equal(receiptOf(got[0]), []any{"expired", "expired", id, id, id, "tug.s02", "far.s9", "work_1"})
		r.Equal([]any{got[0]["trace_id"], got[0]["thread_id"]}, []any{"t-1", "thread_tide"})
		f.send(obj{"id": id, "work_id": "work_1", "body": obj{"text": ""}})
		r.Equal(receiptOf(a.published("receipt")[1])[:2], []any{"rejected", "malformed"})
		r.Equal(list(r.get("/channels/dock/threads"), "threads"), []obj{}) // no thread is opened
		f.send(obj{"id": id, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{id})
		for _, e := range a.published("receipt") {
			delete(e, "subject")
			_, err := wire.Decode(must(json.Marshal(e)), wire.Options{Now: time.Now().Unix()})
			r.NoError(err)
		}
	})
	over(t, "agh-network#88: a rejected receipt on open work fails it on both sides", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		f.send(obj{"work_id": "work_1", "body": obj{"text": ""}})
		r.Equal(receiptOf(a.published("receipt")[0])[:2], []any{"rejected", "malformed"})
		r.Equal(r.work("work_1"), "failed")
		f.send(obj{"work_id": "work_1"})
		r.Equal(receiptOf(a.published("receipt")[1])[:2], []any{"rejected", "work_closed"})
	})
	over(t, "agh-network#84 agh-network#83: a third party never touches the work", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		crane.say("do", obj{"to": "tug.s02", "work_id": "work_1"})
		f.send(obj{"work_id": "work_1", "body": obj{"text": ""}})
		f.send(obj{"work_id": "work_1"})
		f.send(obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "failed"}})
		f.send(obj{"kind": "receipt", "work_id": "work_1", "body": obj{"for_id": "x", "status": "canceled"}})
		r.Equal(r.work("work_1"), "submitted")
		r.Equal(len(tug.inbox()), 1)
		id := f.send(obj{"work_id": "work_1", "thread_id": "thread_other"})
		got := a.published("receipt")
		r.Equal(receiptOf(got[len(got)-1])[:3], []any{"rejected", "work_container_mismatch", id})
		r.Equal(len(list(r.get("/channels/dock/threads"), "threads")), 1)
		r.Equal(r.work("work_1"), "submitted")
	})
	over(t, "agh-network#84: work addressed to somebody else is ignored", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		f.send(obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "needs_input"}})
		f.send(obj{"to": "crane.s01", "work_id": "work_1"})
		f.send(obj{"to": nil, "work_id": "work_1"})
		r.Equal([]any{r.work("work_1"), len(tug.inbox()), len(crane.inbox()), len(a.published("receipt"))}, []any{"needs_input", 2, 0, 0})
		f.send(obj{"work_id": "work_1"})
		r.Equal(r.work("work_1"), "working")
	})
	over(t, "agh-network#85 agh-network#91 agh-network#92: what gets no receipt", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		for _, members := range []obj{
			{"kind": "trace", "work_id": "work_9", "body": obj{"state": "working"}},
			{"kind": "receipt", "work_id": "work_9", "body": obj{"for_id": "x", "status": "accepted"}},
			{"kind": "trace", "work_id": "work_9", "body": obj{"state": "odd"}},
			{"kind": "trace", "work_id": "work_9", "ts": 1, "body": obj{"state": "working"}},
			{"body": obj{}},
			{"to": nil, "work_id": "work_9", "body": obj{}},
			{"interaction_id": "x", "work_id": "work_9"},
			{"kind": "odd", "work_id": "work_9"},
			{"kind": "greet", "body": obj{}},
			{"kind": "whois", "surface": nil, "thread_id": nil, "body": obj{"type": "odd"}},
			{"work_id": "work_1"},
		} {
			f.send(members)
		}
		r.Equal(len(a.published("receipt")), 0)
		r.Equal(len(tug.inbox()), 1)
	})
	over(t, "agh-network#86: an undirected trace is applied, and nobody is told", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		f.send(obj{"kind": "trace", "to": nil, "work_id": "work_1", "body": obj{"state": "needs_input"}})
		r.Equal(r.work("work_1"), "needs_input")
		r.Equal(len(tug.inbox()), 1)
	})
	over(t, "agh-network#8: with agh.lenient_work_ids a peer answers work under the id it was opened with, and opens none so", agh.Config{LenientWorkIDs: true}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		f.send(obj{"work_id": "job.17"})
		r.Equal(r.work("job.17"), "submitted")
		tug.trace(http.StatusOK, f.id, "needs_input", obj{"work_id": "job.17"})
		tug.say("which pier?", obj{"to": f.id, "work_id": "job.17"})
		synctest.Wait()
		r.Equal(each(a.published("trace"), "work_id"), []string{"job.17"})
		r.Equal(each(a.published("say"), "work_id"), []string{"job.17"})
		r.Equal(r.work("job.17"), "working")
		tug.send(http.StatusBadRequest, obj{"to": f.id, "work_id": "job.18"})
		r.ask(http.StatusNotFound, "GET", "/work/job.18", nil)
	})
	over(t, "agh-network#57 agh-network#58 seed-001#133: a message of another room is dropped silently, and binds no work", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		wrong := "direct_" + strings.Repeat("0", 32)
		f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": wrong, "work_id": "work_1"})
		r.Equal(tug.inbox(), []string{})
		r.Equal(len(a.published("receipt")), 0)
		r.ask(http.StatusNotFound, "GET", "/work/work_1", nil)
		right, err := wire.DirectID("ws_harbor", "dock", "far.s9", "tug.s02")
		r.NoError(err)
		id := f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": right, "work_id": "work_1"})
		all := f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": right, "to": nil})
		r.Equal(tug.inbox(), []string{id, all})
		r.Equal(crane.inbox(), []string{})
		d := list(r.get("/channels/dock/directs/"+right+"/messages"), "messages")
		r.Equal(each(d, "direction"), []string{"received", "received"})
	})
	over(t, "agh-network#59 agh-network#118: echoes, spoofed senders and wrong subjects", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := crane.say("mine", nil)
		synctest.Wait()
		r.Equal(crane.inbox(), []string{})
		r.Equal(tug.inbox(), []string{id})
		crane.send(http.StatusBadRequest, obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": "crane.s01", "body": obj{"type": "request"}})
		r.Equal([]int{len(a.published("whois")), len(crane.inbox())}, []int{0, 0})
		forged := far{r, a, "crane.s01"}
		forged.send(obj{"to": nil})
		forged.greet(nil)
		r.Equal(tug.inbox(), []string{id})
		text := strings.Join(r.audited("rejected"), "\n")
		r.Equal(strings.Count(text, `"reason":"spoofed"`), 2)
		f.on("agh.network.v0.ws_harbor.dock.broadcast", must(json.Marshal(f.envelope(nil)))) // directed, but broadcast
		f.on("agh.network.v0.ws_harbor.dock.broadcast", must(json.Marshal(f.envelope(obj{"to": nil, "channel": "yard"}))))
		r.Equal(tug.inbox(), []string{id})
		r.Equal(strings.Count(strings.Join(r.audited("rejected"), "\n"), `"reason":"subject_mismatch"`), 2)
	})
	over(t, "agh-network#119: a flood is bounded, and others are heard", agh.Config{Limits: agh.Limits{SenderRate: 50}}, func(r *rig, a *air, crane, tug *host, f *far) {
		for range 1000 {
			f.on("agh.network.v0.ws_harbor.dock.broadcast", []byte(`{"kind":"flood","from":"far.s9"}`))
			f.on("agh.network.v0.ws_harbor.dock.broadcast", []byte(`{`))
		}
		honest := far{r, a, "far2.s1"}
		id := honest.send(obj{"to": nil})
		r.Equal(tug.inbox(), []string{id})
		r.get("/agh/network/status")
		records := r.audited("rejected")
		r.True(len(records) <= 40, "%d rejections are audited", len(records))
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
