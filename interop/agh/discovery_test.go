package agh

import (
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

func TestDiscovery(t *testing.T) {
	t.Parallel()
	overBoth(t, func(h *hub) {
		crane := h.join("crane", "crane.s01")
		tug, pilot := h.peer("tug.s02"), h.peer("pilot.s03")

		h.Log("both sides greet, and see each other")
		greeting := hear(h.T, tug, "crane's greeting", func(e peer.Envelope) bool { return e.Text("kind") == "greet" && e.Text("from") == crane.id })
		if to, ok := greeting["to"]; !ok || to != nil {
			h.Errorf("greet has to %v", to)
		}
		if proof, ok := greeting["proof"]; !ok || proof != nil {
			h.Errorf("greet has proof %v", proof)
		}
		card := greeting["body"].(obj)["peer_card"].(obj)
		for _, list := range []string{"profiles_supported", "capabilities", "artifacts_supported", "trust_modes_supported"} {
			if _, ok := card[list].([]any); !ok {
				h.Errorf("the card's %s is %v", list, card[list])
			}
		}
		if card["peer_id"] != crane.id || greeting.Text("subject") != "agh.network.v0.ws_harbor.dock.broadcast" {
			h.Errorf("got %v", greeting)
		}
		h.sees(tug.ID, true)
		h.sees(pilot.ID, true)
		shown := h.ask(200, "GET", "peers/"+tug.ID, nil)["peer"].(obj)
		if shown["presence_state"] != "active" || shown["peer_card"].(obj)["capabilities"].([]any)[0].(obj)["summary"] != "Tow one hull." {
			h.Errorf("got %v", shown)
		}

		h.Log("questions who is there: directed, to all, and one that matches nobody")
		for _, members := range []peer.Envelope{{"to": crane.id, "body": obj{"type": "request", "query": "no such"}}, {"body": obj{"type": "request"}}, {"body": obj{"type": "request", "query": "crane"}}} {
			asked, err := tug.Send(peer.Envelope{"kind": "whois"}.With(members))
			if err != nil {
				h.Fatal(err)
			}
			answer := hear(h.T, tug, "an answer", func(e peer.Envelope) bool {
				return e.Text("reply_to") == asked.Text("id") && e.Text("from") == crane.id
			})
			if answer.Body("type") != "response" || answer.Text("to") != tug.ID || answer.Text("subject") != peer.Subject(answer) || answer["surface"] != nil {
				h.Errorf("got %v", answer)
			}
		}
		silent, err := tug.Send(peer.Envelope{"kind": "whois", "body": obj{"type": "request", "query": "no such"}})
		if err != nil {
			h.Fatal(err)
		}
		asked := crane.send(200, obj{"kind": "whois", "to": tug.ID, "body": obj{"type": "request"}})
		if answer := crane.take(); answer.Text("reply_to") != asked || answer.Text("from") != tug.ID {
			h.Errorf("crane got %v", answer)
		}
		if got := tug.Heard(func(e peer.Envelope) bool {
			return e.Text("reply_to") == silent.Text("id") && e.Text("from") == crane.id
		}); got != nil {
			h.Errorf("answered a query that does not match: %v", got)
		}

		h.Log("whoever is silent is gone, and cannot be addressed")
		pilot.Leave()
		h.sees(pilot.ID, false)
		crane.send(404, obj{"surface": "thread", "thread_id": "thread_tide", "to": pilot.ID})
	})
}
