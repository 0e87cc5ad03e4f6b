package agh_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/journal/mem"
)

// hubs runs fn with two hubs on one broker: crane hosted by north, tug by south,
// each present for the other.
func hubs(t *testing.T, statement string, fn func(crane, tug *host)) {
	t.Helper()
	a := newAir()
	holds(t, statement, agh.Config{Broker: a}, func(north *rig) {
		south := &rig{T: &spec.T{T: north.T.T}, cfg: agh.Config{Broker: a}, store: mem.NewStore()}
		south.start()
		defer south.stop()
		crane, tug := north.join("dock", "crane", "crane.s01"), south.join("dock", "tug", "tug.s02")
		pass(30 * time.Second) // the one that came first greets again
		fn(crane, tug)
	})
}

// at returns the state of a piece of work at one hub.
func (h *host) at(id string) string {
	h.r.Helper()
	w := h.r.serve("operator", "GET", "/work/"+id, nil)
	if w.Code != http.StatusOK {
		return "unknown"
	}
	return h.r.work(id)
}

func TestTwoHubs(t *testing.T) {
	t.Parallel()
	hubs(t, "agh-network#63: peers of two hubs see and address each other", func(crane, tug *host) {
		for _, h := range []*host{crane, tug} {
			h.r.Equal(len(list(h.r.get("/peers?channel=dock"), "peers")), 2)
		}
		id := crane.say("to tug", obj{"to": "tug.s02", "work_id": "work_1"})
		all := tug.say("to all", nil)
		synctest.Wait() // messages of two subjects have no common order
		room := tug.say("between us", obj{"surface": "direct", "thread_id": nil, "to": "crane.s01"})
		synctest.Wait()
		tug.r.Equal(tug.inbox(), []string{id})
		crane.r.Equal(crane.inbox(), []string{all, room})
		for _, h := range []*host{crane, tug} {
			h.r.Equal(each(list(h.r.get("/channels/dock/threads/thread_tide/messages"), "messages"), "message_id"), sorted(id, all))
			h.r.Equal(len(list(h.r.get("/channels/dock/directs"), "directs")), 1)
		}
	})
	// Whatever valid and invalid messages the two exchange, their hubs agree about
	// the work.
	for seed := range uint64(20) {
		hubs(t, fmt.Sprintf("agh-network#88: both sides end with the same state, exchange %d", seed), func(crane, tug *host) {
			random := rand.New(rand.NewPCG(seed, 15)) //nolint:gosec // repeatable, and no secret
			peers := []*host{crane, tug}
			works := []string{"work_1", "work_2"}
			ids := []string{}
			for range 40 {
				who := random.IntN(2)
				from, to := peers[who], peers[1-who]
				members := obj{"to": to.peer, "work_id": works[random.IntN(len(works))], "thread_id": []string{"thread_one", "thread_two"}[random.IntN(8)/7]}
				switch random.IntN(6) {
				case 0, 1:
					members["body"] = obj{"text": "go on"}
				case 2, 3:
					members["kind"] = "trace"
					members["body"] = obj{"state": []string{"working", "needs_input", "completed", "failed", "canceled", "working", "needs_input"}[random.IntN(7)]}
				case 4:
					members["kind"] = "receipt"
					status := []string{"accepted", "canceled", "rejected", "duplicate"}[random.IntN(4)]
					body := obj{"for_id": "x", "status": status}
					if status == "rejected" || status == "duplicate" {
						body["reason_code"] = "busy"
					}
					members["body"] = body
				default:
					if len(ids) > 0 {
						members["id"] = ids[random.IntN(len(ids))]
					}
					members["body"] = obj{"text": "once more"}
				}
				if members["id"] == nil {
					ids = append(ids, fmt.Sprint("m-", len(ids)))
					members["id"] = ids[len(ids)-1]
				}
				w := from.r.serve("operator", "POST", "/send", with(obj{"session_id": from.session, "channel": "dock", "surface": "thread"}, members))
				from.r.True(w.Code == http.StatusOK || w.Code == http.StatusConflict, "%d %s", w.Code, w.Body)
				if random.IntN(8) == 0 {
					works = append(works, fmt.Sprint("work_", len(works)+1))
				}
				pass(time.Second)
			}
			seen := map[string]bool{}
			for _, id := range works {
				crane.r.Equal(crane.at(id), tug.at(id))
				seen[crane.at(id)] = true
			}
			crane.r.True(len(seen) > 1, "nothing happened: %v", seen)
		})
	}
}

func sorted(ids ...string) []string {
	if ids[0] > ids[1] { // of one second
		ids[0], ids[1] = ids[1], ids[0]
	}
	return ids
}

// with returns an object with members added or replaced.
func with(o, members obj) obj {
	for k, v := range members {
		o[k] = v
	}
	return o
}
