package client_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// An opening names agents: its participants, and those in its graph and
// supervisors.
func TestAnOpeningNamesPeople(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.attach(r.dial(client.Options{}), "alice"), r.attach(r.dial(client.Options{}), "bob")
	acked := make(chan error, 1)
	go func() {
		invite := r.receive(bob, envelope.TypeInvite)
		_, err := bob.Post(t.Context(), &envelope.Envelope{Channel: invite.Envelope.Channel, Type: envelope.TypeInviteAck})
		acked <- err
	}()
	m, err := alice.OpenChannel(t.Context(), agent.Opening{Type: "workflow", Participants: []string{"bob"}, Knobs: []byte(
		`{"graph":{"initial_speaker":"bob","transitions":[{"when":{"name":"always"},"then":{"name":"agent","args":{"agent_id":"alice"}}}]},"supervisors":["alice"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
	if !m.Has(bob.ID()) || !strings.Contains(string(m.Knobs), `"initial_speaker":"`+bob.ID()+`"`) || strings.Count(string(m.Knobs), alice.ID()) != 2 {
		t.Errorf("the channel is of %v, with %s", m.IDs(), m.Knobs)
	}
	_, err = alice.OpenChannel(t.Context(), agent.Opening{Type: "conversation", Participants: []string{"nobody"}})
	if fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("somebody who is not there: %v", err)
	}
}
