package agh

import (
	"slices"
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

func TestDirectRoom(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane, derrick := h.join("crane", "crane.s01"), h.join("derrick", "derrick.s04")
		tug := h.peer("tug.s02")
		h.sees(tug.ID, true)
		const room = "direct_84746c510d5845aa9078a8ca2f0f04a2"
		if peer.DirectID(workspace, channel, crane.id, tug.ID) != room {
			h.Fatal("the derivation is wrong")
		}
		direct := func(members peer.Envelope) peer.Envelope {
			return say(h.T, tug, peer.Envelope{"surface": "direct", "direct_id": room, "thread_id": nil, "to": crane.id}.With(members))
		}

		first := direct(nil)
		crane.takes(first.Text("id"))
		reply := crane.send(200, obj{"surface": "direct", "direct_id": "direct_00000000000000000000000000000000", "to": tug.ID})
		if heard := hear(h.T, tug, "the reply", withID(reply)); heard.Text("direct_id") != room || heard.Text("subject") != "agh.network.v0.ws_harbor.dock.peer."+peer.RouteToken(tug.ID) {
			h.Errorf("got %v", heard)
		}

		h.Log("another room's id is dropped without a word, and binds no work")
		wrong := tug.Fill(first.With(peer.Envelope{"id": "wrong-room", "direct_id": peer.DirectID(workspace, channel, derrick.id, tug.ID), "work_id": "work_9"}))
		if err := tug.Raw(peer.Subject(wrong), wrong.Canonical()); err != nil {
			h.Fatal(err)
		}
		without := direct(peer.Envelope{"to": nil})
		crane.takes(without.Text("id"))

		h.Log("work in the room, to its end")
		opened := direct(peer.Envelope{"work_id": "work_9"})
		crane.takes(opened.Text("id"))
		done := crane.send(200, obj{"kind": "trace", "surface": "direct", "to": tug.ID, "work_id": "work_9", "body": obj{"state": "completed"}})
		hear(h.T, tug, "the end", withID(done))
		if h.work("work_9") != "completed" || tug.Work("work_9") != "completed" {
			h.Errorf("it ended as %s and %s", h.work("work_9"), tug.Work("work_9"))
		}

		want := []string{first.Text("id"), reply, without.Text("id"), opened.Text("id"), done}
		got := h.messages("directs/" + room)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			h.Errorf("the room has %v; want %v", got, want)
		}
		if tug.Heard(answerTo(wrong.Text("id"))) != nil || len(derrick.inbox()) != 0 {
			h.Error("the wrong room was answered or shown")
		}
		if _, answer := h.try("GET", "channels/"+channel, nil); answer["channel"].(obj)["message_count"] != nil {
			h.Errorf("a direct room counts as public: %v", answer)
		}
	})
}
