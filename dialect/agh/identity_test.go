package agh_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// TestIdentityElsewhere checks that an identity that reads at an endpoint of
// another dialect continues to read there while it is joined as a peer, and after
// it has left.
func TestIdentityElsewhere(t *testing.T) {
	t.Parallel()
	runs(t, "reads where it read", agh.Config{}, func(r *rig) {
		ctx := context.Background()
		ada, tugs := r.person("ada"), r.person("tug")
		box := hub.NewInbox(0)
		r.NoError(r.hub.Bind(tugs.id, box))
		hears := func(kind string) *envelope.Envelope {
			for {
				n, err := box.Next(ctx)
				r.NoError(err)
				if n.Envelope.Type == kind {
					return n.Envelope
				}
			}
		}
		id, opened := ada.open("conversation", "", "tug")
		_, err := r.hub.Post(ctx, &envelope.Envelope{Channel: id, Sender: tugs.id, Type: envelope.TypeInviteAck, Causation: hears(envelope.TypeInvite).ID, Data: []byte("{}")}, nil)
		r.NoError(err)
		r.NoError(<-opened)
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		said := crane.say("at sea", obj{"to": "tug.s02"})
		r.Equal(tug.inbox(), []string{said})
		r.Equal(hears("agh.say").Key, "crane.s01/"+said)
		first := ada.says(id, "ashore")
		r.Equal(hears(envelope.TypeText).ID, first)
		r.ask(204, "DELETE", "/channels/dock/peers/tug.s02", nil)
		second := ada.says(id, "still ashore")
		r.Equal(hears(envelope.TypeText).ID, second)
	})
}

// TestRemoteIsNobody checks that a remote peer with the name of a registered
// identity posts as a transient identity of its own, which the registry does not
// list. The log has our time for its messages, and its rows the sender's.
func TestRemoteIsNobody(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "a name proves nothing", agh.Config{Broker: a}, func(r *rig) {
		ctx := context.Background()
		mallory := r.person("mallory")
		tug := r.join("dock", "tug", "tug.s02")
		count := func() int {
			list, err := r.hub.Agents(ctx, hub.AgentQuery{Limit: 100})
			r.NoError(err)
			return len(list)
		}
		before := count()
		f := &far{r, a, "mallory"}
		f.greet(nil)
		sent := time.Now().Add(-100 * time.Second).UTC()
		id := f.send(obj{"ts": sent.Unix()})
		r.Equal(tug.inbox(), []string{id})
		synctest.Wait()
		r.Equal(count(), before)
		list, _, err := r.hub.Channels(ctx, hub.ListOptions{Type: "thread"})
		r.NoError(err)
		r.Equal(len(list), 1)
		for e, err := range r.hub.Log(ctx, list[0].ID, 0, 0) {
			r.NoError(err)
			r.False(e.Sender == mallory.id, "the remote peer speaks for %s", r.hub.Name(e.Sender))
			r.Equal(r.hub.Name(e.Sender), "agh/ws_harbor/mallory")
			r.True(e.CreatedAt.Equal(time.Now()), "the log has our time, and not %v", e.CreatedAt)
		}
		row := r.get("/channels/dock/threads/thread_tide/messages")["messages"].([]any)[0].(obj)
		r.Equal(row["timestamp"], any(sent.Format(time.RFC3339)))
	})
}
