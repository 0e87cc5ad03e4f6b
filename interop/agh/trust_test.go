package agh

import (
	"slices"
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

func TestSignedAndForged(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane := h.join("crane", "crane.s01")
		mason := h.joinPeer(peer.Options{Key: peer.NewKey("interop", "mason")})
		other := peer.NewKey("somebody else", "mason")
		tug := h.peer("tug.s02")
		h.sees(mason.ID, true)
		h.sees(tug.ID, true)

		h.Log("what is signed is shown as verified, and is answered at its own subject")
		signed := say(h.T, mason, peer.Envelope{"to": crane.id, "work_id": "work_1", "body": obj{"text": "Signed: <é> & \"quoted\""}})
		crane.takes(signed.Text("id"))
		if got := h.message("threads/thread_tide", signed.Text("id"))["trust"]; got != "verified" {
			h.Errorf("it is %v", got)
		}
		done := crane.send(200, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": mason.ID, "work_id": "work_1", "body": obj{"state": "completed"}})
		if e := hear(h.T, mason, "the end", withID(done)); e.Text("subject") != "agh.network.v0.ws_harbor.dock.peer."+mason.ID[len("mason@"):] {
			h.Errorf("got %v", e)
		}

		h.Log("who is not signed is not verified")
		plain := say(h.T, tug, nil)
		crane.takes(plain.Text("id"))
		if got := h.message("threads/thread_tide", plain.Text("id"))["trust"]; got != "unverified" {
			h.Errorf("it is %v", got)
		}

		h.Log("a handle with a changed text, without its proof, or under another's key is dropped")
		forged := []peer.Envelope{}
		base := peer.Envelope{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "Pay me."}}
		publish := func(e peer.Envelope) {
			h.Helper()
			forged = append(forged, e)
			if err := tug.Publish(peer.Subject(e), e); err != nil {
				h.Fatal(err)
			}
		}
		publish(mason.Fill(base).With(peer.Envelope{"body": obj{"text": "Pay them."}}))
		publish(mason.Fill(base).With(peer.Envelope{"proof": nil}))
		publish(other.Sign(mason.Fill(base)))
		after := say(h.T, tug, nil)
		crane.takes(after.Text("id"))
		ids := h.messages("threads/thread_tide")
		for _, e := range forged {
			if slices.Contains(ids, e.Text("id")) {
				h.Errorf("stored: %v", e)
			}
		}
	})
}

func TestTrustPolicies(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane := h.join("crane", "crane.s01")
		mason := h.joinPeer(peer.Options{Key: peer.NewKey("interop", "mason")})
		tug := h.peer("tug.s02")
		h.sees(mason.ID, true)
		forge := func() peer.Envelope {
			h.Helper()
			e := mason.Fill(peer.Envelope{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "to": crane.id, "work_id": "work_1", "body": obj{"text": "Pay me."}})
			e = e.With(peer.Envelope{"body": obj{"text": "Pay them."}})
			if err := tug.Raw(peer.Subject(e), e.Canonical()); err != nil {
				h.Fatal(err)
			}
			return e
		}

		h.Log("verify: what is forged is refused, what is unsigned is taken")
		h.ask(200, "PUT", "trust", obj{"policy": "verify"})
		forged := []peer.Envelope{forge()}
		plain := say(h.T, tug, nil)
		crane.takes(plain.Text("id"))
		eventually(h.T, "the audit says so", func() bool { return h.rejected("verification_failed") == 1 })

		h.Log("require: what is unsigned is refused too")
		h.ask(200, "PUT", "trust", obj{"policy": "require"})
		forged = append(forged, forge(), say(h.T, tug, nil))
		signed := say(h.T, mason, peer.Envelope{"to": crane.id, "work_id": "work_2"})
		crane.takes(signed.Text("id"))
		ids := h.messages("threads/thread_tide")
		for _, e := range forged {
			if slices.Contains(ids, e.Text("id")) {
				h.Errorf("stored: %v", e)
			}
		}
		h.ask(404, "GET", "work/work_1", nil)
		if got := tug.Heard(func(e peer.Envelope) bool { return e.Text("kind") == "receipt" }); got != nil {
			h.Errorf("a forger was answered: %v", got)
		}

		h.Log("a pinned nickname belongs to one key")
		other := h.joinPeer(peer.Options{Key: peer.NewKey("somebody else", "mason")})
		h.ask(200, "PUT", "trust", obj{"policy": "require", "pins": obj{"mason": mason.KeyID()}})
		stranger := say(h.T, other, nil)
		again := say(h.T, mason, nil)
		crane.takes(again.Text("id"))
		if slices.Contains(h.messages("threads/thread_tide"), stranger.Text("id")) {
			h.Error("a pinned nickname is used under another key")
		}
	})
}

func TestSpoofedSender(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane, derrick := h.join("crane", "crane.s01"), h.join("derrick", "derrick.s04")
		tug := h.peer("tug.s02")
		h.sees(tug.ID, true)
		true1 := crane.send(200, obj{"surface": "thread", "thread_id": "thread_tide"})
		derrick.takes(true1)

		h.Log("nobody speaks for a hosted peer by using its name")
		for _, members := range []peer.Envelope{
			{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "I am crane."}},
			{"kind": "greet", "body": obj{"peer_card": obj{"peer_id": crane.id, "profiles_supported": []any{}, "capabilities": []any{}, "artifacts_supported": []any{}, "trust_modes_supported": []any{}}}},
			{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "to": derrick.id, "work_id": "work_1", "body": obj{"text": "I am crane."}},
		} {
			e := tug.Fill(members).With(peer.Envelope{"from": crane.id})
			if err := tug.Publish(peer.Subject(e), e); err != nil {
				h.Fatal(err)
			}
		}
		h.Log("and what is on a subject that is not its own is dropped")
		astray := tug.Fill(peer.Envelope{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "to": derrick.id, "body": obj{"text": "astray"}})
		if err := tug.Publish("agh.network.v0.ws_harbor.dock.broadcast", astray); err != nil {
			h.Fatal(err)
		}
		after := say(h.T, tug, nil)
		derrick.takes(after.Text("id"))
		h.ask(404, "GET", "work/work_1", nil)
		if ids := h.messages("threads/thread_tide"); !slices.Equal(ids, []string{true1, after.Text("id")}) && !slices.Equal(ids, []string{after.Text("id"), true1}) {
			h.Errorf("the thread has %v", ids)
		}
		eventually(h.T, "the audit says so", func() bool { return h.rejected("spoofed") == 3 && h.rejected("subject_mismatch") == 1 })
	})
}
