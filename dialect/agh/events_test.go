package agh_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/agh"
)

// hearing collects events as NAME WORK-STATE, and panics on all of them if
// broken is set.
type hearing struct {
	mu     sync.Mutex
	events []agh.Event
	broken bool
}

func (h *hearing) tell(e agh.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	if h.broken {
		panic("a hook that fails")
	}
}

// take returns the events since the last call.
func (h *hearing) take() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	names := []string{}
	for _, e := range h.events {
		names = append(names, strings.TrimSpace(strings.TrimPrefix(e.Name, "network.")+" "+e.WorkState))
	}
	h.events = nil
	return names
}

func TestEvents(t *testing.T) {
	t.Parallel()
	heard := &hearing{}
	over(t, "agh-network#131: events come after the commit, in order, not for duplicates, and a hook that fails is harmless", agh.Config{OnEvent: heard.tell}, func(r *rig, a *air, crane, tug *host, f *far) {
		r.Equal(heard.take(), []string{"peer.joined", "peer.joined"})
		heard.mu.Lock()
		heard.broken = true
		heard.mu.Unlock()
		opened := []string{"thread.opened submitted", "message.persisted submitted", "work.opened submitted"}
		id := crane.say("do it", obj{"to": "tug.s02", "work_id": "work_1", "id": "m-1"})
		r.Equal(heard.take(), opened)
		r.Equal(r.get("/channels/dock/threads/thread_tide")["thread"].(obj)["root_message_id"], any(id))
		crane.say("do it", obj{"to": "tug.s02", "work_id": "work_1", "id": "m-1"})
		r.Equal(heard.take(), []string{})
		crane.say("more", nil)
		r.Equal(heard.take(), []string{"message.persisted"})
		tug.trace(http.StatusOK, "crane.s01", "working", nil)
		r.Equal(heard.take(), []string{"message.persisted working", "work.transitioned working"})
		tug.trace(http.StatusOK, "crane.s01", "working", nil)
		r.Equal(heard.take(), []string{"message.persisted working"})
		tug.trace(http.StatusOK, "crane.s01", "completed", nil)
		r.Equal(heard.take(), []string{"message.persisted completed", "work.transitioned completed", "work.closed completed"})
		tug.trace(http.StatusConflict, "crane.s01", "failed", nil)
		r.Equal(heard.take(), []string{})
		remote := f.send(obj{"thread_id": "thread_far", "work_id": "work_2", "trace_id": "tr-1"})
		heard.mu.Lock()
		e := heard.events[1]
		heard.mu.Unlock()
		r.Equal(heard.take(), opened)
		r.Equal([]any{e.Workspace, e.Channel, e.Thread, e.Message, e.Kind, e.Direction, e.Work, e.From, e.To, e.Trace}, []any{
			"ws_harbor", "dock", "thread_far", remote, e.Kind, "received", "work_2", "far.s9", "tug.s02", "tr-1",
		})
		f.send(obj{"id": remote, "thread_id": "thread_far", "work_id": "work_2"})
		r.Equal(heard.take(), []string{"message.persisted submitted"}) // the receipt with that state
		crane.say("psst", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"})
		r.Equal(heard.take(), []string{"direct_room.opened", "message.persisted"})
		r.ask(http.StatusOK, "POST", "/channels/dock/directs/resolve", obj{"session_id": crane.session, "peer_id": "tug.s02"})
		r.Equal(heard.take(), []string{})
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/tug.s02", nil)
		r.Equal(heard.take(), []string{"peer.left"})
		r.restart()
		r.Equal(heard.take(), []string{})
	})
}

// figures returns the metrics by name, with their labels and values.
func (r *rig) figures() map[string][]string {
	r.Helper()
	registry := prometheus.NewRegistry()
	r.NoError(registry.Register(r.server))
	families, err := registry.Gather()
	r.NoError(err)
	found := map[string][]string{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			line := ""
			for _, label := range m.GetLabel() {
				line += label.GetName() + "=" + label.GetValue() + " "
			}
			found[family.GetName()] = append(found[family.GetName()], fmt.Sprint(line, m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#132: labels are words and names of channels, never ids", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		crane.say("do it", obj{"to": "tug.s02", "work_id": "work_secret", "id": "id-secret", "thread_id": "thread_secret"})
		tug.trace(http.StatusOK, "crane.s01", "working", obj{"work_id": "work_secret", "thread_id": "thread_secret"})
		crane.say("psst", obj{"surface": "direct", "thread_id": nil, "to": "tug.s02", "work_id": "work_other"})
		crane.trace(http.StatusOK, "tug.s02", "canceled", obj{"surface": "direct", "thread_id": nil, "work_id": "work_other"})
		r.ask(http.StatusOK, "POST", "/channels/dock/directs/resolve", obj{"session_id": crane.session, "peer_id": "tug.s02"})
		f.send(obj{"kind": "odd-secret", "surface": "odd-secret"})
		f.send(obj{"channel": "secret"})
		f.on("agh.network.v0.ws_harbor.dock.broadcast", []byte(`{"workspace_id":"secret","channel":"secret","kind":"secret"}`))
		synctest.Wait()
		got := r.figures()
		for name, lines := range got {
			for _, line := range lines {
				r.True(!strings.Contains(line, "secret") && !strings.Contains(line, "direct_") && !strings.Contains(line, "s01"), "%s %s", name, line)
			}
		}
		r.Equal(got["network_conversation_messages_total"], []string{"channel=dock surface=direct 2", "channel=dock surface=thread 2"})
		r.Equal(got["network_threads_open_total"], []string{"channel=dock 1"})
		r.Equal(got["network_direct_rooms_open_total"], []string{"channel=dock 1"})
		r.Equal(got["network_work_open_total"], []string{"channel=dock surface=direct 1", "channel=dock surface=thread 1"})
		r.Equal(got["network_work_transitions_total"], []string{"channel=dock state=canceled surface=direct 1", "channel=dock state=working surface=thread 1"})
		r.Equal(got["network_open_work_items"], []string{"channel=dock surface=direct 0", "channel=dock surface=thread 1"})
		r.Equal(got["network_direct_resolve_total"], []string{"channel=dock result=existing 1"})
		r.Equal(got["network_delivery_queue_depth"], []string{"channel=dock surface=direct 2", "channel=dock surface=thread 2"})
		lines := strings.Join(got["network_messages_total"], "\n")
		r.Contains(lines, "channel=dock direction=sent kind=say result=published surface=thread 1", "channel=dock direction=sent kind=say result=persisted surface=thread 1")
		r.Contains(lines, "channel=dock direction=received kind=say result=accepted surface=thread 1", "channel=unknown direction=unknown kind=unknown result=rejected surface= 1")
		status := r.get("/agh/network/status")["network"].(obj)
		want := obj{
			"open_threads": 1.0, "open_direct_rooms": 1.0, "open_work_items": 1.0, "conversation_messages": 4.0, "work_transitions": 2.0,
			"direct_resolves": 1.0, "effective_default_source": "config", "queued_messages": 4.0, "queued_sessions": 2.0, "local_peers": 2.0, "channels": 1.0,
		}
		for name := range want {
			r.Equal(status[name], want[name])
		}
		r.restart()
		status = r.get("/agh/network/status")["network"].(obj)
		r.Equal([]any{status["open_threads"], status["open_direct_rooms"], status["open_work_items"], status["conversation_messages"]}, []any{1.0, 1.0, 1.0, 4.0})
	})
}
