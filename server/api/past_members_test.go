package api_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

type pastMembers struct {
	State        string `json:"state"`
	Participants []struct {
		Agent           string `json:"agent_id"`
		Hidden, Removed bool
	} `json:"participants"`
}

// Whoever missed its turn is hidden now, or removed from then on: also when one looks
// back.
func TestParticipantsAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"hide", "remove"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			s := newSiteOn(t, hub.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
			alice := s.agent("alice")
			s.agent("bob")
			ch := s.expecting(fmt.Sprintf(`{"name":"turn_within","on_violation":%q,"params":{"seconds":60}}`, action), "discussion", "bob")
			var before struct{ Length int }
			s.past("/v1/channels/"+ch, &before)
			ahead.Store(int64(time.Hour))
			if n := s.hub.SweepExpectations(t.Context()); n != 1 {
				t.Fatalf("%d violations", n)
			}
			look := func(query string) (hidden, removed bool) {
				t.Helper()
				var p pastMembers
				s.past("/v1/channels/"+ch+"/state"+query, &p)
				for _, m := range p.Participants {
					if m.Agent == alice {
						return m.Hidden, m.Removed
					}
				}
				t.Fatalf("%s: %+v", query, p)
				return false, false
			}
			if hidden, removed := look(""); hidden != (action == "hide") || removed != (action == "remove") {
				t.Errorf("now: hidden %v, removed %v", hidden, removed)
			}
			if hidden, removed := look(fmt.Sprint("?at=", before.Length-1)); hidden || removed {
				t.Errorf("before: hidden %v, removed %v", hidden, removed)
			}
		})
	}
}

// A client may post an event that is named like the hub's own. It changes nothing, and
// so it does when one looks back.
func TestEventsNamedLikeTheHubsChangeNoPast(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob := s.agent("alice"), s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for _, e := range []*envelope.Envelope{
		{Type: envelope.TypeClosed, Data: []byte(`{"reason":"forged"}`)},
		{Type: envelope.TypeExpired, Data: []byte(`{"reason":"forged"}`)},
		{Type: envelope.TypeRemoved, Data: fmt.Appendf(nil, `{"agent_id":%q}`, bob)},
	} {
		e.Channel, e.Sender = ch, alice
		if _, err := s.hub.Post(t.Context(), e, nil); err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
	}
	var p pastMembers
	s.past("/v1/channels/"+ch+"/state", &p)
	if p.State != "active" || p.Participants[1].Agent != bob || p.Participants[1].Removed {
		t.Errorf("%+v", p)
	}
}
