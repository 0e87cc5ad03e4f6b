package agh

import (
	"slices"
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

// trace is what both sides send about work in a thread.
func trace(state string, more peer.Envelope) peer.Envelope {
	return peer.Envelope{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "body": obj{"state": state}}.With(more)
}

func TestThreadWork(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane, derrick := h.join("crane", "crane.s01"), h.join("derrick", "derrick.s04")
		tug, pilot := h.peer("tug.s02"), h.peer("pilot.s03")
		h.sees(tug.ID, true)
		h.sees(pilot.ID, true)

		h.Log("what is said to all reaches all, hosted or not")
		to := obj{"surface": "thread", "thread_id": "thread_tide"}
		notice := say(h.T, tug, peer.Envelope{"body": obj{"text": "Berth 4 is free.", "intent": "notice"}, "ext": obj{"harbor.shift": "night"}})
		crane.takes(notice.Text("id"))
		derrick.takes(notice.Text("id"))
		hear(h.T, pilot, "the notice", withID(notice.Text("id")))
		said := crane.send(200, to)
		derrick.takes(said)
		heard := hear(h.T, tug, "what crane said", withID(said))
		if heard.Text("subject") != "agh.network.v0.ws_harbor.dock.broadcast" || heard.Text("thread_id") != "thread_tide" {
			h.Errorf("got %v", heard)
		}

		h.Log("work that a remote peer opens")
		opened := say(h.T, tug, peer.Envelope{"to": crane.id, "work_id": "work_1", "trace_id": "t-1"})
		crane.takes(opened.Text("id"))
		about := func(members obj) obj {
			all := obj{"surface": "thread", "thread_id": "thread_tide", "work_id": "work_1", "to": tug.ID}
			for name, value := range members {
				all[name] = value
			}
			return all
		}
		accepted := crane.send(200, about(obj{"kind": "receipt", "reply_to": opened.Text("id"), "body": obj{"for_id": opened.Text("id"), "status": "accepted"}}))
		if r := hear(h.T, tug, "the receipt", withID(accepted)); r.Text("subject") != "agh.network.v0.ws_harbor.dock.peer."+peer.RouteToken(tug.ID) {
			h.Errorf("got %v", r)
		}
		if h.work("work_1") != "submitted" || tug.Work("work_1") != "submitted" {
			h.Errorf("accepted made it %s and %s", h.work("work_1"), tug.Work("work_1"))
		}
		for _, state := range []string{"working", "needs_input"} {
			id := crane.send(200, about(obj{"kind": "trace", "body": obj{"state": state}}))
			hear(h.T, tug, state, withID(id))
			if h.work("work_1") != state || tug.Work("work_1") != state {
				h.Errorf("%s made it %s and %s", state, h.work("work_1"), tug.Work("work_1"))
			}
		}
		more := say(h.T, tug, peer.Envelope{"to": crane.id, "work_id": "work_1"})
		crane.takes(more.Text("id"))
		if h.work("work_1") != "working" || tug.Work("work_1") != "working" {
			h.Errorf("an answer made it %s and %s", h.work("work_1"), tug.Work("work_1"))
		}
		done := crane.send(200, about(obj{"kind": "trace", "body": obj{"state": "completed", "result": obj{"berth": 4}}}))
		hear(h.T, tug, "the end", withID(done))
		if h.work("work_1") != "completed" || tug.Work("work_1") != "completed" {
			h.Errorf("it ended as %s and %s", h.work("work_1"), tug.Work("work_1"))
		}

		h.Log("work that a hosted peer opens")
		opening := crane.send(200, obj{"surface": "thread", "thread_id": "thread_tide", "work_id": "work_2", "to": tug.ID})
		hear(h.T, tug, "the opening", withID(opening))
		if _, err := tug.Send(trace("working", peer.Envelope{"to": crane.id, "work_id": "work_2"})); err != nil {
			h.Fatal(err)
		}
		crane.take()
		failed, err := tug.Send(trace("failed", peer.Envelope{"to": crane.id, "work_id": "work_2"}))
		if err != nil {
			h.Fatal(err)
		}
		crane.takes(failed.Text("id"))
		if h.work("work_2") != "failed" || tug.Work("work_2") != "failed" {
			h.Errorf("it ended as %s and %s", h.work("work_2"), tug.Work("work_2"))
		}

		h.Log("work between two that are not the hub's leaves no trace there")
		say(h.T, pilot, peer.Envelope{"to": tug.ID, "work_id": "work_3"})
		hear(h.T, tug, "pilot's work", func(e peer.Envelope) bool { return e.Text("work_id") == "work_3" })
		h.ask(404, "GET", "work/work_3", nil)

		h.Log("the thread has all of it, once, and derrick was told only what was for all")
		if ids := h.messages("threads/thread_tide"); !slices.Contains(ids, notice.Text("id")) || !slices.Contains(ids, done) || len(ids) != 11 {
			h.Errorf("got %d: %v", len(ids), ids)
		}
		if got := derrick.inbox(); len(got) != 0 {
			h.Errorf("derrick got %v", got)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane, tug := h.join("crane", "crane.s01"), h.peer("tug.s02")
		h.sees(tug.ID, true)
		opened := say(h.T, tug, peer.Envelope{"to": crane.id, "work_id": "work_1"})
		crane.takes(opened.Text("id"))
		canceled, err := tug.Send(peer.Envelope{
			"kind": "receipt", "surface": "thread", "thread_id": "thread_tide", "to": crane.id, "work_id": "work_1",
			"body": obj{"for_id": opened.Text("id"), "status": "canceled"},
		})
		if err != nil {
			h.Fatal(err)
		}
		crane.takes(canceled.Text("id"))
		if h.work("work_1") != "canceled" || tug.Work("work_1") != "canceled" {
			h.Errorf("it is %s and %s", h.work("work_1"), tug.Work("work_1"))
		}
		shown := h.ask(200, "GET", "work/work_1", nil)["work"].(obj)
		if shown["terminal_at"] == nil || shown["opened_by_peer_id"] != tug.ID || shown["target_peer_id"] != crane.id {
			h.Errorf("got %v", shown)
		}

		h.Log("the first end counts: the worker cannot finish it any more")
		crane.send(409, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": tug.ID, "work_id": "work_1", "body": obj{"state": "completed"}})
		if _, err := tug.Send(trace("working", peer.Envelope{"to": crane.id, "work_id": "work_1"})); err != nil {
			h.Fatal(err)
		}
		late := say(h.T, tug, peer.Envelope{"to": crane.id, "work_id": "work_1"})
		receipt := hear(h.T, tug, "that it is closed", answerTo(late.Text("id")))
		if receipt.Body("status") != "rejected" || receipt.Body("reason_code") != "work_closed" || h.work("work_1") != "canceled" {
			h.Errorf("got %v; it is %s", receipt, h.work("work_1"))
		}
		if got := tug.Heard(func(e peer.Envelope) bool { return e.Text("kind") == "receipt" }); len(got) != 1 {
			h.Errorf("got the receipts %v", got)
		}
	})
}
