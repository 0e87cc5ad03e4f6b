package agh_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

// The statements of the seed about a runtime, not about one envelope.
func TestSeedDelivery(t *testing.T) {
	t.Parallel()
	over(t, "seed-001#19: the same id of one sender is a duplicate", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"work_id": "work_1"})
		pass(299 * time.Second)
		f.send(obj{"id": id, "work_id": "work_1", "body": obj{"text": "changed"}})
		f.send(obj{"id": id, "kind": "trace", "work_id": "work_1", "body": obj{"state": "failed"}})
		r.Equal(tug.inbox(), []string{id})
		r.Equal(r.work("work_1"), "submitted")
	})
	over(t, "seed-001#20: the same id of two senders is two messages", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"id": "same"})
		(&far{r, a, "far2.s1"}).send(obj{"id": "same"})
		r.Equal(tug.inbox(), []string{"same", "same"})
		rows := list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")
		r.Equal(each(rows, "key"), []string{"far.s9/same", "far2.s1/same"})
		tug.done("far2.s1/same")
		r.Equal(each(tug.waiting(), "from"), []string{"far.s9"})
	})
	over(t, "seed-001#41: from is the session's own", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		crane.send(http.StatusBadRequest, obj{"from": "tug.s02"})
		crane.send(http.StatusBadRequest, obj{"peer_from": "tug.s02"})
		crane.say("mine", nil)
		synctest.Wait()
		r.Equal(each(a.published("say"), "from"), []string{"crane.s01"})
		r.Equal(each(tug.waiting(), "from"), []string{"crane.s01"})
	})
	over(t, "seed-001#43: to directs a message to a subject and an inbox", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		buoy := r.join("dock", "buoy", "buoy.s03")
		id := crane.say("you", obj{"to": "tug.s02"})
		synctest.Wait()
		r.Equal(each(a.published("say"), "subject"), []string{"agh.network.v0.ws_harbor.dock.peer.f517bf6ab72761a29c2494efbfaffc06"})
		r.Equal([][]string{tug.inbox(), buoy.inbox()}, [][]string{{id}, {}})
	})
	over(t, "seed-001#61: ts is the clock at the time of sending, in seconds", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		pass(90 * time.Second)
		now := float64(time.Now().Unix())
		crane.say("now", nil)
		synctest.Wait()
		r.Equal(a.published("say")[0]["ts"], any(now))
		greets := a.published("greet")
		r.Equal(greets[len(greets)-1]["ts"], any(now))
	})
	over(t, "seed-001#92: what is for a peer elsewhere changes no work", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"work_id": "work_1"})
		trace := obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "completed"}}
		for k, v := range map[string]string{"to": "elsewhere.s1", "channel": "yard", "workspace_id": "ws_other", "thread_id": "thread_other"} {
			members := obj{k: v}
			for name, value := range trace {
				members[name] = value
			}
			f.send(members)
			f.on("agh.network.v0.ws_harbor.dock.broadcast", must(json.Marshal(f.envelope(members))))
			r.Equal(r.work("work_1"), "submitted")
		}
		f.send(trace)
		r.Equal(r.work("work_1"), "completed")
	})
	over(t, "seed-001#94: an envelope is delivered or answered, never both", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		good := f.send(obj{"work_id": "work_1"})
		f.send(obj{"id": good, "work_id": "work_1"})
		for _, members := range []obj{
			{"ts": 1}, {"body": obj{}}, {"thread_id": "thread_other"}, {"kind": "trace", "body": obj{"state": "canceled"}}, {},
		} {
			all := obj{"work_id": "work_1"}
			for k, v := range members {
				all[k] = v
			}
			f.send(all)
		}
		waiting := tug.inbox()
		for _, e := range a.published("receipt") {
			if id := e["body"].(obj)["for_id"]; id != good { // a copy of it was answered
				r.True(!slices.Contains(waiting, id.(string)), "%v was delivered and answered", id)
			}
		}
		r.Equal(len(waiting), 1) // the second trace and say found the work failed
		r.Equal(len(a.published("receipt")), 5)
	})
	over(t, "seed-001#108: a channel scopes who is there", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		yard := r.join("yard", "weaver", "weaver.s04")
		synctest.Wait()
		f.greet(nil)
		r.Equal(each(list(r.get("/peers?channel=yard"), "peers"), "peer_id"), []string{"weaver.s04"})
		r.Equal(slices.Sorted(slices.Values(each(f.whois(nil, nil), "from"))), []string{"crane.s01", "tug.s02"})
		before := len(a.published("whois"))
		yard.send(http.StatusOK, obj{"kind": "whois", "surface": nil, "thread_id": nil, "body": obj{"type": "request"}})
		r.Equal(yard.inbox(), []string{})
		r.Equal(each(a.published("whois")[before:], "subject"), []string{"agh.network.v0.ws_harbor.yard.broadcast"})
	})
	holds(t, "seed-001#114: without a kind a say is sent", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		sent := crane.send(http.StatusOK, obj{"kind": nil})["message"].(obj)
		r.Equal(sent["kind"], any("say"))
		r.Equal(tug.waiting()[0]["kind"], any("say"))
	})
	over(t, "seed-001#140: a caller sets when a message expires", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		until := float64(time.Now().Unix() + 60)
		crane.say("soon", obj{"expires_at": until})
		synctest.Wait()
		r.Equal(a.published("say")[0]["expires_at"], any(until))
		crane.send(http.StatusBadRequest, obj{"expires_at": "soon"})
	})
	over(t, "seed-001#141: the smallest envelope is delivered", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := f.send(obj{"to": nil, "proof": nil})
		small := f.envelope(obj{"proof": nil})
		delete(small, "to")
		r.Equal(len(small), 10)
		f.on("agh.network.v0.ws_harbor.dock.broadcast", must(json.Marshal(small)))
		r.Equal(tug.inbox(), []string{id, small["id"].(string)})
	})
}

func TestSeedRooms(t *testing.T) {
	t.Parallel()
	over(t, "seed-001#75 seed-001#82: the audit sees direct rooms, and nothing calls them secret", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		id := crane.say("psst, plainly", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		synctest.Wait()
		tug.done(id)
		for _, direction := range []string{"sent", "received", "delivered"} {
			r.Contains(strings.Join(r.audited(direction), "\n"), `"message_id":"`+id+`"`, `"direct_id":"direct_84746c510d5845aa9078a8ca2f0f04a2"`)
		}
		a.mu.Lock()
		last := string(a.log[len(a.log)-1].data)
		a.mu.Unlock()
		r.Contains(last, "psst, plainly")
		const room = "/channels/dock/directs/direct_84746c510d5845aa9078a8ca2f0f04a2"
		for _, path := range []string{"/channels/dock/directs", room, room + "/messages", "/agh/openapi.json"} {
			text := strings.ToLower(r.serve("operator", "GET", path, nil).Body.String())
			for _, claim := range []string{"encrypt", "confidential", "secret", "secure"} {
				r.True(!strings.Contains(text, claim), "%s says %s", path, claim)
			}
		}
	})
	holds(t, "seed-001#80 seed-001#81: a pair has one room, whoever opens it and however often", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		found := make([]string, 8)
		var all sync.WaitGroup
		for i := range found {
			all.Go(func() {
				body := obj{"session_id": crane.session, "peer_id": "tug.s02"}
				if i%2 == 1 {
					body = obj{"session_id": tug.session, "peer_id": "crane.s01"}
				}
				var answer struct {
					Direct struct {
						ID string `json:"direct_id"`
					}
				}
				w := r.serve("operator", "POST", "/channels/dock/directs/resolve", body)
				if json.Unmarshal(w.Body.Bytes(), &answer) == nil && w.Code == http.StatusOK {
					found[i] = answer.Direct.ID
				}
			})
		}
		all.Wait()
		r.Equal(found, slices.Repeat([]string{"direct_84746c510d5845aa9078a8ca2f0f04a2"}, 8))
		crane.say("x", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		tug.say("y", obj{"surface": "direct", "thread_id": nil, "to": "crane.s01"})
		r.Equal(len(list(r.get("/channels/dock/directs"), "directs")), 1)
		r.Equal(tug.waiting()[0]["direct_id"], crane.waiting()[0]["direct_id"])
	})
	over(t, "seed-001#23: workspaces share no peers, messages, rooms, work or subjects", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		const other = "/agh/workspaces/ws_other/network"
		twin := map[string]string{}
		for _, name := range []string{"crane", "tug"} {
			answer := r.ask(http.StatusCreated, "POST", other+"/channels/dock/peers", obj{"agent": name, "peer_id": map[string]string{"crane": "crane.s01", "tug": "tug.s02"}[name]})
			twin[name] = answer["session_id"].(string)
		}
		synctest.Wait()
		for _, subject := range a.subjects() {
			r.True(strings.HasPrefix(subject, "agh.network.v0.ws_harbor.") || strings.HasPrefix(subject, "agh.network.v0.ws_other."), "%s", subject)
		}
		r.Equal(len(a.subjects()), 6)
		f.greet(nil)
		r.Equal(len(list(r.get(other+"/peers"), "peers")), 2)
		crane.say("do", obj{"to": "tug.s02", "work_id": "work_1", "id": "m"})
		crane.say("psst", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		tug.trace(http.StatusOK, "crane.s01", "completed", nil)
		r.ask(http.StatusNotFound, "GET", other+"/work/work_1", nil)
		for _, path := range []string{"threads", "directs"} {
			r.Equal(r.get(other + "/channels/dock/" + path)[path], any([]any{}))
		}
		body := obj{"session_id": twin["crane"], "channel": "dock", "surface": "thread", "thread_id": "thread_tide", "to": "tug.s02", "work_id": "work_1", "id": "m", "body": obj{"text": "there"}}
		r.ask(http.StatusOK, "POST", other+"/send", body)
		r.Equal(r.get(other + "/work/work_1")["work"].(obj)["state"], any("submitted"))
		r.Equal(r.work("work_1"), "completed")
		r.Equal(len(list(r.get(other+"/inbox?session_id="+twin["tug"]), "messages")), 1)
		r.Equal(len(tug.inbox()), 2)
	})
}

// sample returns the seed's thread sample, sent now to the hosted peer that it
// names.
func (f *far) sample() (id string, e obj) {
	f.r.Helper()
	data, err := os.ReadFile("wire/testdata/seed-thread.json")
	f.r.NoError(err)
	f.r.NoError(json.Unmarshal(data, &e))
	now := time.Now().Unix()
	e["ts"], e["expires_at"] = now, now+300
	return e["id"].(string), e
}

func TestSeedSample(t *testing.T) {
	t.Parallel()
	const at = "/agh/workspaces/ws_alpha/network"
	begin := func(r *rig) (worker, other *host) {
		for agent, peer := range map[string]string{"worker": "patch-worker.session-19", "other": "other.s1"} {
			a := r.ask(http.StatusCreated, "POST", at+"/channels/builders/peers", obj{"agent": agent, "peer_id": peer})
			h := &host{r, "builders", a["session_id"].(string), peer}
			if agent == "worker" {
				worker = h
			} else {
				other = h
			}
		}
		synctest.Wait()
		return worker, other
	}
	token, err := wire.RouteToken("patch-worker.session-19")
	if err != nil {
		t.Fatal(err)
	}
	subject := "agh.network.v0.ws_alpha.builders.peer." + token
	const messages = at + "/channels/builders/threads/thread_migration_check_20260416/messages"
	over(t, "seed-001#55 seed-001#57: trace_id and causation_id are carried unchanged", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		crane.say("because", obj{"trace_id": "t-1", "causation_id": "c-1", "reply_to": "r-1"})
		synctest.Wait()
		for _, e := range []obj{a.published("say")[0], tug.waiting()[0]} {
			r.Equal([]any{e["trace_id"], e["causation_id"], e["reply_to"]}, []any{"t-1", "c-1", "r-1"})
		}
		begin(r)
		id, e := f.sample()
		f.on(subject, must(json.Marshal(e)))
		f.on(subject, must(json.Marshal(e))) // answered as a duplicate
		rows := list(r.get(messages+"?kind=say"), "messages")
		r.Equal([]any{rows[0]["message_id"], rows[0]["trace_id"], rows[0]["causation_id"]}, []any{id, e["trace_id"], e["causation_id"]})
		receipt := a.published("receipt")[0]
		r.Equal([]any{receipt["trace_id"], receipt["causation_id"]}, []any{e["trace_id"], id})
		r.Contains(strings.Join(r.audited("received"), "\n"), `"trace_id":"`+e["trace_id"].(string)+`"`)
		channel, err := r.hub.Named(context.Background(), homeOf(r, "ws_alpha"), "thread", "builders/thread_migration_check_20260416")
		r.NoError(err)
		for record, err := range r.hub.Log(context.Background(), channel, 1, 1) {
			r.NoError(err)
			r.Equal(record.Trace, e["trace_id"].(string)) // as other dialects see it
		}
	})
	over(t, "seed-001#111: id tells copies, and causation_id leads to what is stored", agh.Config{}, func(r *rig, a *air, _, _ *host, f *far) {
		worker, _ := begin(r)
		id, e := f.sample()
		_, cause := f.sample()
		cause["id"], cause["to"], cause["causation_id"] = e["causation_id"], "patch-worker.session-19", "x"
		delete(cause, "work_id")
		f.on(subject, must(json.Marshal(cause)))
		f.on(subject, must(json.Marshal(e)))
		f.on(subject, must(json.Marshal(e)))
		r.Equal(len(list(r.get(at+"/inbox?session_id="+worker.session), "messages")), 2)
		channel, err := r.hub.Named(context.Background(), homeOf(r, "ws_alpha"), "thread", "builders/thread_migration_check_20260416")
		r.NoError(err)
		byID, causes := map[string]string{}, map[string]string{}
		for record, err := range r.hub.Log(context.Background(), channel, 1, 2) {
			r.NoError(err)
			byID[record.ID], causes[record.Origin.ID] = record.Origin.ID, record.Causation
		}
		r.Equal(byID[causes[id]], e["causation_id"].(string))
		r.Equal(causes[e["causation_id"].(string)], "") // its own cause is not stored
	})
	spans := tracetest.NewSpanRecorder()
	over(t, "seed-001#110: the message is found under its trace", agh.Config{}, func(r *rig, a *air, _, _ *host, f *far) {
		r.tracing = sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
		r.restart()
		begin(r)
		_, e := f.sample()
		f.on(subject, must(json.Marshal(e)))
		hex := strings.Repeat("0af7", 8)
		e["id"], e["trace_id"] = "another", hex
		f.on(subject, must(json.Marshal(e)))
		var states, traces []string
		for _, s := range spans.Ended() {
			if s.Name() != "network.envelope agh.say" {
				continue
			}
			for _, link := range s.Links() {
				if link.SpanContext.IsRemote() {
					states, traces = append(states, link.SpanContext.TraceState().Get("agh")), append(traces, link.SpanContext.TraceID().String())
				}
			}
		}
		r.Equal(states, []string{"trace_release_20260416", ""})
		r.Equal(traces[1], hex)
	})
}
