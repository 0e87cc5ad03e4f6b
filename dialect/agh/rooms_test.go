package agh_test

import (
	"net/http"
	"testing"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

// A name moves from one runtime to another, or from one agent to another, and keeps
// its direct rooms.
func TestRoomsGoWithTheName(t *testing.T) {
	t.Parallel()
	in := obj{"surface": "direct", "thread_id": nil}
	to := func(peer string) obj { return with(obj{"to": peer}, in) }
	room, err := wire.DirectID("ws_harbor", "dock", "crane.s01", "far.s9")
	if err != nil {
		t.Fatal(err)
	}
	over(t, "agh-network#57: a room is of two names, whoever has them", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		sent := []string{crane.say("to the remote one", to("far.s9"))}
		here := r.join("dock", "far", "far.s9") // it moves to this hub
		sent = append(sent, here.say("from here", to("crane.s01")), crane.say("to the hosted one", to("far.s9")))
		r.Equal(here.inbox(), sent[2:])
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/far.s9", nil) // and leaves
		f.greet(nil)
		sent = append(sent, f.send(with(obj{"to": "crane.s01", "direct_id": room}, in)))
		r.ask(http.StatusNoContent, "DELETE", "/channels/dock/peers/crane.s01", nil)
		again := r.join("dock", "somebody", "crane.s01") // another agent takes the name
		sent = append(sent, again.say("once more", to("far.s9")))
		r.Equal(len(list(r.get("/channels/dock/directs"), "directs")), 1)
		r.Equal(len(list(r.get("/channels/dock/directs/"+room+"/messages"), "messages")), len(sent))
		r.Equal(crane.session == again.session, false)
		tug.send(http.StatusOK, with(obj{"to": "crane.s01", "direct_id": room}, in)) // its own room, not that one
		r.Equal(len(list(r.get("/channels/dock/directs/"+room+"/messages"), "messages")), len(sent))
	})
}
