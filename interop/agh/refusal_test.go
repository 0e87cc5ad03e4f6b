package agh

import (
	"testing"
	"time"

	"github.com/parley-hub/parley/interop/agh/peer"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane := h.join("crane", "crane.s01")
		tug, pilot := h.peer("tug.s02"), h.peer("pilot.s03")
		h.sees(tug.ID, true)
		directed := func(members peer.Envelope) peer.Envelope {
			return say(h.T, tug, peer.Envelope{"to": crane.id, "trace_id": "t-1"}.With(members))
		}
		expect := func(offender peer.Envelope, status, reason string) {
			h.Helper()
			r := hear(h.T, tug, status+"/"+reason, answerTo(offender.Text("id")))
			if r.Body("status") != status || r.Body("reason_code") != reason || r.Text("from") != crane.id || r.Text("to") != tug.ID ||
				r.Text("reply_to") != offender.Text("id") || r.Text("causation_id") != offender.Text("id") ||
				r.Text("work_id") != offender.Text("work_id") || r.Text("thread_id") != offender.Text("thread_id") || r.Text("trace_id") != "t-1" ||
				r.Text("protocol") != "agh-network/v0" || r.Text("id") == "" {
				h.Errorf("got %v", r)
			}
		}

		h.Log("a duplicate")
		opened := directed(peer.Envelope{"work_id": "work_1"})
		crane.takes(opened.Text("id"))
		directed(peer.Envelope{"work_id": "work_1", "id": opened.Text("id")})
		expect(opened, "duplicate", "duplicate")

		h.Log("an expired one, which may be sent again in time")
		now := time.Now().Unix()
		expired := directed(peer.Envelope{"work_id": "work_2", "expires_at": now - 1})
		expect(expired, "expired", "expired")
		old := directed(peer.Envelope{"work_id": "work_2", "ts": now - 400})
		expect(old, "expired", "expired")
		h.ask(404, "GET", "work/work_2", nil)
		directed(peer.Envelope{"work_id": "work_2", "id": expired.Text("id")})
		crane.takes(expired.Text("id"))

		h.Log("the wrong container")
		elsewhere := directed(peer.Envelope{"work_id": "work_1", "thread_id": "thread_other"})
		expect(elsewhere, "rejected", "work_container_mismatch")
		h.ask(404, "GET", "channels/dock/threads/thread_other", nil)

		h.Log("what is malformed ends the work on both sides")
		malformed := directed(peer.Envelope{"work_id": "work_2", "body": obj{"text": " "}})
		expect(malformed, "rejected", "malformed")
		eventually(h.T, "the work has failed", func() bool { return h.work("work_2") == "failed" && tug.Work("work_2") == "failed" })

		h.Log("closed work; its opener again is a duplicate")
		closed := directed(peer.Envelope{"work_id": "work_2"})
		expect(closed, "rejected", "work_closed")

		h.Log("who has no part in the work changes nothing, and is not answered")
		before := h.work("work_1")
		if _, err := pilot.Send(trace("canceled", peer.Envelope{"to": crane.id, "work_id": "work_1"})); err != nil {
			h.Fatal(err)
		}
		say(h.T, pilot, peer.Envelope{"to": crane.id, "work_id": "work_1"})
		h.Log("nor is who addresses nobody of the hub, or says something of no work again")
		say(h.T, tug, peer.Envelope{"to": "nobody.s99", "work_id": "work_5"})
		plain := say(h.T, tug, nil)
		say(h.T, tug, peer.Envelope{"id": plain.Text("id")})
		crane.takes(plain.Text("id"))
		h.Log("nor what is no message at all")
		for _, text := range []string{"", "null", "[]", "{", `{"protocol":"agh-network/v0"}`, "\xff\xfe"} {
			if err := tug.Raw("agh.network.v0.ws_harbor.dock.broadcast", []byte(text)); err != nil {
				h.Fatal(err)
			}
		}
		legacy := directed(peer.Envelope{"work_id": "work_1", "interaction_id": "i-1"})
		kind := directed(peer.Envelope{"work_id": "work_1", "kind": "direct"})

		barrier := directed(peer.Envelope{"work_id": "work_1"})
		crane.takes(barrier.Text("id"))
		if h.work("work_1") != before {
			h.Errorf("a stranger made it %s", h.work("work_1"))
		}
		if got := tug.Heard(func(e peer.Envelope) bool { return e.Text("kind") == "receipt" }); len(got) != 6 {
			h.Errorf("got %d receipts: %v", len(got), got)
		}
		for _, e := range []peer.Envelope{legacy, kind} {
			if tug.Heard(answerTo(e.Text("id"))) != nil {
				h.Errorf("answered %v", e)
			}
		}
		if got := pilot.Heard(func(e peer.Envelope) bool { return e.Text("to") == pilot.ID }); len(got) != 0 {
			h.Errorf("pilot was answered: %v", got)
		}
		if got := crane.inbox(); len(got) != 0 {
			h.Errorf("crane was told %v", got)
		}
	})
}
