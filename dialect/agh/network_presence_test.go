package agh_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

func TestPresence(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#94 agh-network#115 agh-network#116: subjects, and greetings at once and at an interval", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		r.Equal(a.subjects(), []string{
			"agh.network.v0.ws_harbor.dock.broadcast", "agh.network.v0.ws_harbor.dock.peer.a0d17369c6cd114e1d6aa2b9f8a5b776", "agh.network.v0.ws_harbor.dock.peer.f517bf6ab72761a29c2494efbfaffc06",
		})
		r.Equal(each(a.published("greet"), "from"), []string{"crane.s01", "tug.s02"})
		pass(30 * time.Second)
		pass(30 * time.Second)
		greets := a.published("greet")
		r.Equal(len(greets), 6)
		ids := map[any]bool{}
		for _, g := range greets {
			ids[g["id"]] = true
			r.Equal(g["subject"], any("agh.network.v0.ws_harbor.dock.broadcast"))
		}
		r.Equal(len(ids), 6)
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/crane.s01", nil)
		r.Equal(len(a.subjects()), 2)
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/tug.s02", nil)
		r.Equal(len(a.subjects()), 0)
		pass(time.Minute)
		r.Equal(len(a.published("greet")), 6)
	})
	over(t, "agh-network#96 agh-network#97 agh-network#98: remote peers are seen, and expire", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		var events []string
		r.cfg.OnEvent = func(e agh.Event) {
			if e.Peer == "far.s9" {
				events = append(events, e.Name)
			}
		}
		r.restart()
		state := func() string {
			for _, p := range list(r.get("/peers"), "peers") {
				if p["peer_id"] == "far.s9" {
					return fmt.Sprint(p["presence_state"], " ", p["last_seen_age_seconds"])
				}
			}
			return "gone"
		}
		r.Equal(state(), "gone")
		f.greet(nil)
		f.greet(nil)
		r.Equal(state(), "active 0")
		pass(30 * time.Second)
		r.Equal(state(), "active 30")
		pass(time.Second)
		r.Equal(state(), "inactive 31")
		pass(28 * time.Second)
		r.Equal(state(), "inactive 59")
		crane.say("still here?", obj{"to": "far.s9"})
		pass(time.Second)
		r.Equal(state(), "gone")
		crane.send(http.StatusNotFound, obj{"to": "far.s9"})
		r.Equal(events, []string{"network.peer.joined", "network.peer.left"})
		now := time.Now()
		for age, want := range map[time.Duration]string{-time.Hour: "active", 30 * time.Second: "active", 30*time.Second + 1: "inactive", time.Minute: "inactive", time.Minute + 1: "expired"} {
			r.Equal(agh.PresenceOf(now.Add(-age), now, 30*time.Second), want)
		}
	})
	over(t, "agh-network#99 agh-network#100: what makes a peer present", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		here := func() []string { return each(list(r.get("/peers"), "peers"), "peer_id") }
		(&far{r, a, "tug.s02"}).greet(nil)
		f.send(nil)
		r.Equal(here(), []string{"crane.s01", "tug.s02"})
		card := obj{"peer_id": f.id, "profiles_supported": []string{}, "capabilities": []string{}, "artifacts_supported": []string{}, "trust_modes_supported": []string{}}
		id := f.send(obj{"kind": "whois", "surface": nil, "thread_id": nil, "reply_to": "q", "body": obj{"type": "response", "peer_card": card}})
		r.Equal(here(), []string{"crane.s01", "tug.s02", "far.s9"})
		r.Equal(tug.inbox()[1:], []string{id})
	})
	events := []string{}
	watched := agh.Config{OnEvent: func(e agh.Event) {
		if e.Peer == "far.s9" {
			events = append(events, e.Name)
		}
	}}
	over(t, "agh-network#99: a hosted peer takes the place of a remote one of its name", watched, func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		r.join("dock", "far", "far.s9")
		peers := list(r.get("/peers"), "peers")
		r.Equal(each(peers, "local"), []string{"true", "true", "true"})
		r.Equal(r.get("/peers/far.s9")["peer"].(obj)["local"], any(true))
		r.Equal(events, []string{"network.peer.joined", "network.peer.left", "network.peer.joined"})
	})
	over(t, "agh-network#101 agh-network#102 agh-network#103: questions who is there", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		ask := func(members obj) []string {
			before := len(a.published("whois"))
			all := obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": nil, "body": obj{"type": "request"}}
			for k, v := range members {
				all[k] = v
			}
			id := f.send(all)
			answers := a.published("whois")[before:]
			token, _ := wire.RouteToken("far.s9")
			for _, e := range answers {
				r.Equal([]any{e["reply_to"], e["to"], e["subject"]}, []any{id, "far.s9", "agh.network.v0.ws_harbor.dock.peer." + token})
			}
			return each(answers, "from")
		}
		r.Equal(len(ask(nil)), 2)
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "crane"}}), []string{"crane.s01"})
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "Crane"}}), []string{})
		r.Equal(ask(obj{"body": obj{"type": "request", "query": "none"}, "to": "tug.s02"}), []string{"tug.s02"})
	})
	over(t, "agh-network#95: after a reconnect everyone greets, and directed messages wait for their target", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		a.set(true)
		synctest.Wait()
		r.Equal(r.get("/agh/network/status")["network"].(obj)["status"], "disconnected")
		directed := crane.say("you", obj{"to": "far.s9"})
		all := crane.say("all", nil)
		r.Equal(tug.inbox(), []string{all}) // delivery to hosted peers does not wait
		before := len(a.published("greet"))
		pass(time.Second)
		a.set(false)
		synctest.Wait()
		r.Equal(len(a.published("greet"))-before, 2)
		r.Equal(len(a.published("say")), 0)
		pass(4 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{all})
		f.greet(nil)
		synctest.Wait()
		r.Equal(each(a.published("say"), "id"), []string{all, directed})
		r.Equal(r.get("/agh/network/status")["network"].(obj)["status"], "running")
	})
	over(t, "agh-network#129: what is stored is published once over a restart, and once more after a crash at most", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		first := crane.say("published", nil)
		r.restart()
		synctest.Wait()
		r.Equal(each(a.published("say"), "id"), []string{first})
		pass(2 * time.Second)
		a.set(true)
		kept := crane.say("kept", nil)
		stale := crane.say("stale", obj{"expires_at": time.Now().Unix() + 1})
		r.restart() // the broker has not accepted them
		pass(2 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{first})
		a.mu.Lock()
		a.down = false
		a.mu.Unlock()
		r.restart()
		pass(2 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{first, kept})
		r.Contains(strings.Join(r.audited("rejected"), "\n"), `"message_id":"`+stale+`"`, `"reason":"publish_failed"`)
		r.restart()
		pass(2 * time.Second)
		r.Equal(each(a.published("say"), "id"), []string{first, kept})
	})
	over(t, "agh-network#55: a directed message goes to the peer's subject", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		id := crane.say("you", obj{"to": "far.s9", "work_id": "work_1"})
		synctest.Wait()
		token, _ := wire.RouteToken("far.s9")
		says := a.published("say")
		r.Equal([]any{says[0]["id"], says[0]["subject"]}, []any{id, "agh.network.v0.ws_harbor.dock.peer." + token})
		_, null := says[0]["proof"]
		r.True(null, "proof is left out")
		f.send(obj{"kind": "trace", "to": "crane.s01", "work_id": "work_1", "body": obj{"state": "completed"}})
		r.Equal(r.work("work_1"), "completed")
		r.Equal(len(crane.inbox()), 1)
		crane.send(http.StatusOK, obj{"id": id, "to": "far.s9"})
		synctest.Wait()
		r.Equal(len(a.published("say")), 1)
	})
}
