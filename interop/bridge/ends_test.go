package bridge

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

const (
	workspace = "ws_harbor"
	room      = "dock"
	tugName   = "agh/" + workspace + "/tug.s01"
)

// TestRealEnds has four ends in one workflow: each speaks in its turn, a
// person approves something, and the hub is killed twice. What each of them is
// sent meanwhile, and reads at the end, is the same as the log.
func TestRealEnds(t *testing.T) {
	h := newHub(t, "driver", "maria")
	operator, driverToken, mariaToken := h.token, h.keys["driver"], h.keys["maria"]
	driverID := idOf(h.ask(driverToken, "POST", "/v1/agents", obj{"name": "driver"}))
	mariaID := idOf(h.ask(mariaToken, "POST", "/v1/agents", obj{"name": "maria", "kind": "human"}))

	planner := startEnd(t, variable(t, "AG2_PYTHON"), "ag2_end.py", "ws://"+h.address, "planner")
	plannerID := planner.do("register", nil)["agent_id"].(string)
	driver := startEnd(t, "node", "hpd_end.mjs", "http://"+h.address+"/hpd", driverToken)

	// A hosted peer in the room lets the hub see the peer.
	h.ask(operator, "POST", "/agh/workspaces/"+workspace+"/network/channels/"+room+"/peers", obj{"agent": "planner"})
	tug, err := peer.Join(peer.Options{URL: "nats://" + h.nats, Token: natsToken, Workspace: workspace, Channel: room, ID: "tug.s01"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tug.Leave)
	tugID := planner.do("find", obj{"name": tugName})["id"].(string)

	// Everybody joins: the peer by its presence, the others by an ack.
	opened := make(chan obj, 1)
	go func() {
		opened <- planner.try("open", obj{"ids": []string{plannerID, tugID, driverID, mariaID}, "names": []string{tugName, "driver", "maria"}})
	}()
	var channel string
	eventually(t, "driver and maria are invited", func() bool {
		list := h.ask(operator, "GET", "/v1/channels?agent=maria&state=pending", nil)["channels"].([]any)
		if len(list) == 0 {
			return false
		}
		channel = list[0].(obj)["channel_id"].(string)
		return true
	})
	for token, name := range map[string]string{driverToken: "driver", mariaToken: "maria"} {
		h.ask(token, "POST", "/v1/channels/"+channel+"/events", obj{"sender": name, "event_type": "ag2.channel.invite.ack", "event_data": obj{"channel_id": channel}})
	}
	if answer := <-opened; answer["error"] != nil {
		t.Fatal(answer["error"])
	}

	// They follow the channel, and reconnect by themselves when the hub
	// restarts.
	person := h.follow(mariaToken, channel)
	driver.do("watch", obj{"channel": channel})
	planner.do("say", obj{"channel": channel, "text": "Moor the hull at berth 4."})
	ours := told(channel)
	asked := hear(t, tug, "its turn", func(e peer.Envelope) bool { return ours(e) && e.Body("text") == "Moor the hull at berth 4." })

	// The first crash: after the peer was asked and before it answered.
	h.restart()
	planner.do("attach", nil)
	about := peer.Envelope{"surface": "direct", "direct_id": asked["direct_id"], "to": asked["from"], "work_id": asked["work_id"]}
	answered := func(e peer.Envelope) {
		sent, err := tug.Send(about.With(e))
		if err != nil {
			t.Fatal(err)
		}
		// NATS keeps nothing for a hub that is away: the peer repeats its
		// message until it counts.
		eventually(t, "the peer is heard", func() bool {
			for _, one := range logOf(h, operator, channel) {
				if one.Text == e.Body("text") {
					return true
				}
			}
			_ = tug.Publish(peer.Subject(sent), sent)
			return false
		})
	}
	answered(peer.Envelope{"kind": "say", "body": obj{"text": "Towing it there."}})
	if _, err := tug.Send(about.With(peer.Envelope{"kind": "trace", "body": obj{"state": "completed", "message": "towed"}})); err != nil {
		t.Fatal(err)
	}

	driver.do("say", obj{"channel": channel, "text": "Berth 4 is logged."})

	// The second crash: while a person is asked to approve.
	request := h.ask(operator, "POST", "/v1/channels/"+channel+"/requests", obj{
		"kind": "approval", "asked_by": "planner", "for": "maria", "title": "Make fast at berth 4?",
		"choices": []obj{{"id": "approve", "label": "Approve"}, {"id": "deny", "label": "Deny"}},
	})
	id := requestID(t, request)
	h.restart()
	planner.do("attach", nil)
	if state := h.ask(mariaToken, "GET", "/v1/requests/"+id, nil); !strings.Contains(fmt.Sprint(state), "open") {
		t.Fatalf("after a crash the request is %v", state)
	}
	h.ask(mariaToken, "POST", "/v1/requests/"+id+"/answer", obj{"choice": "approve", "as": "maria"})
	h.ask(mariaToken, "POST", "/v1/channels/"+channel+"/events", obj{"sender": "maria", "text": "Approved: make fast."})
	eventually(t, "the workflow has ended", func() bool {
		m := h.ask(operator, "GET", "/v1/channels/"+channel, nil)
		return strings.Contains(fmt.Sprint(m), "moored")
	})

	want := []said{
		{"planner", "Moor the hull at berth 4."}, {tugName, "Towing it there."}, {"driver", "Berth 4 is logged."}, {"maria", "Approved: make fast."},
	}
	hear(t, tug, "the end of it", func(e peer.Envelope) bool { return ours(e) && e.Body("text") == "Approved: make fast." })
	// What each was sent live, over both crashes: once, and in order.
	for who, end := range map[string]struct {
		watched func() []said
		want    []said
	}{
		"AG2's client": {func() []said { return planner.watched(channel) }, want[1:]}, // it is not told what it says itself
		"HPD's driver": {func() []said { return driver.watched(channel) }, want},
		"the person":   {func() []said { return person.watched(mariaToken) }, want},
	} {
		eventually(t, who+" was told the last word", func() bool {
			told := end.watched()
			return len(told) > 0 && told[len(told)-1] == want[len(want)-1]
		})
		if told := end.watched(); !reflect.DeepEqual(told, end.want) {
			t.Errorf("%s was told %v; want %v", who, told, end.want)
		}
	}
	for who, saw := range map[string][]said{
		"the log": logOf(h, operator, channel), "AG2's client": planner.said(channel), "HPD's driver": driver.said(channel),
		"the person": logOf(h, mariaToken, channel), "the NATS peer": heardBy(tug, ours),
	} {
		if !reflect.DeepEqual(saw, want) {
			t.Errorf("%s has %v; want %v", who, saw, want)
		}
	}
}

func idOf(agent obj) string { return agent["passport"].(obj)["agent_id"].(string) }

func requestID(t *testing.T, request obj) string {
	t.Helper()
	for _, name := range []string{"request_id", "id"} {
		if id, ok := request[name].(string); ok {
			return id
		}
	}
	t.Fatalf("no request: %v", request)
	return ""
}

// told is what a peer is told of a channel.
func told(channel string) func(peer.Envelope) bool {
	return func(e peer.Envelope) bool {
		ext, _ := e["ext"].(obj)
		of, _ := ext["parley.channel"].(obj)
		return e.Text("kind") == "say" && of["id"] == channel && e.Body("intent") != "invitation"
	}
}

func hear(t *testing.T, p *peer.Peer, what string, fits func(peer.Envelope) bool) peer.Envelope {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := p.Await(ctx, what, fits)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// heardBy is what the peer was told, each message once, with its own text in the place
// where it said it: behind the one that asked.
func heardBy(p *peer.Peer, ours func(peer.Envelope) bool) []said {
	all, seen := []said{}, map[string]bool{}
	for _, e := range p.Heard(ours) {
		if seen[e.Text("id")] {
			continue
		}
		seen[e.Text("id")] = true
		speaker, _ := e["ext"].(obj)["parley.speaker"].(obj)
		all = append(all, said{speaker["name"].(string), e.Body("text")})
		if e.Text("work_id") != "" {
			all = append(all, said{tugName, "Towing it there."})
		}
	}
	return all
}

// logOf are the texts of the channel's log, as somebody sees it over /v1.
func logOf(h *hub, token, channel string) []said {
	h.t.Helper()
	all := []said{}
	names := map[string]string{}
	for _, one := range h.ask(token, "GET", "/v1/channels/"+channel+"/events?limit=500", nil)["events"].([]any) {
		e := one.(obj)
		if inner, ok := e["envelope"].(obj); ok {
			e = inner
		}
		if e["event_type"] != "ag2.msg.text" {
			continue
		}
		id := e["sender_id"].(string)
		if names[id] == "" {
			names[id] = nameOf(h.ask(token, "GET", "/v1/agents/"+id, nil))
		}
		all = append(all, said{names[id], e["event_data"].(obj)["text"].(string)})
	}
	return all
}

func nameOf(agent obj) string { return agent["passport"].(obj)["name"].(string) }
