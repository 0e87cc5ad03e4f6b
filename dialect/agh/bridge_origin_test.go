package agh_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// crossed returns the ext of a message that was first sent elsewhere.
func crossed(id string) obj {
	return obj{"parley.hops": 2, "parley.origin": obj{"dialect": "ag2", "id": id}}
}

// A message that was first sent elsewhere is accepted once in a conversation, for
// each sender and each piece of work, under whatever ids it arrives.
func TestAnOriginIsTakenOnce(t *testing.T) {
	t.Parallel()
	runTrust(t, "from the network", func(r *rig, a *air, crane, tug *host, f *far) {
		first := f.send(obj{"work_id": "work_1", "ext": crossed("o-1")})
		for range 2 {
			again := f.send(obj{"work_id": "work_1", "ext": crossed("o-1")})
			got := a.published("receipt")
			r.True(len(got) > 0, "it was taken twice")
			r.Equal(receiptOf(got[len(got)-1])[:3], []any{"duplicate", "duplicate", again})
			r.Equal(tug.inbox(), []string{first})
			r.restart()
			synctest.Wait()
		}
		r.Equal(r.reasons(), []string{"duplicate", "duplicate"})
		other := &far{r, a, "far.s8"}
		want := []string{
			first,
			f.send(obj{"work_id": "work_2", "ext": crossed("o-1")}),
			f.send(obj{"ext": crossed("o-1")}),
			f.send(obj{"thread_id": "thread_moon", "ext": crossed("o-1")}),
			f.send(obj{"ext": crossed("o-2")}),
			f.send(obj{"ext": obj{"parley.hops": 2}}),
			f.send(obj{"ext": obj{"parley.hops": 2}}),
			other.send(obj{"ext": crossed("o-1")}),
		}
		f.send(obj{"ext": crossed("o-1")})
		r.Equal(tug.inbox(), want)
		// Work of another conversation stays in that conversation.
		late := f.send(obj{"thread_id": "thread_moon", "work_id": "work_1", "ext": crossed("o-3")})
		got := a.published("receipt")
		r.Equal(receiptOf(got[len(got)-1])[:3], []any{"rejected", "work_container_mismatch", late})
	})
	runTrust(t, "from a peer that is hosted", func(r *rig, a *air, crane, tug *host, f *far) {
		ext := obj{"parley.hops": 1, "parley.origin": obj{"dialect": "ag2", "id": "o-1"}}
		first := crane.say("on", obj{"ext": ext})
		crane.say("on", obj{"ext": ext}) // answered like the first time
		synctest.Wait()
		r.Equal(tug.inbox(), []string{first})
		r.Equal(len(a.published("say")), 1)
	})
}

// An AGH id is unique for each sender: the same id of two peers is two messages.
func TestPeersMayUseTheSameID(t *testing.T) {
	t.Parallel()
	runTrust(t, "in one channel", func(r *rig, a *air, crane, tug *host, f *far) {
		other := &far{r, a, "far.s10"}
		f.greet(nil)
		other.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("discussion", "", farName, "agh/ws_harbor/far.s10")
		r.NoError(<-opened)
		ada.says(id, "both?")
		f.answerAs(own(id)+"6", "I")
		other.answerAs(own(id)+"7_1", "and I")
		r.Equal(r.texts(id), []string{"ada: both?", farName + ": I", "agh/ws_harbor/far.s10: and I"})
	})
}

// answerAs sends a text under work, in the room with the peer that announced the
// work, under the id m-1.
func (f *far) answerAs(workID, text string) {
	f.r.Helper()
	for _, e := range f.a.published("say") {
		if e["to"] == f.id && e["work_id"] == workID {
			f.send(obj{"id": "m-1", "surface": "direct", "thread_id": nil, "direct_id": e["direct_id"], "to": e["from"], "work_id": workID, "body": obj{"text": text}})
			return
		}
	}
	f.r.True(false, "%s was not told of %s", f.id, workID)
}

// A peer does not receive its own texts, nor those that were brought into its
// direct room, whoever posts them in the channel; others do.
func TestNothingIsToldWhereItCameIn(t *testing.T) {
	t.Parallel()
	runTrust(t, "to the peer", func(r *rig, a *air, crane, tug *host, f *far) {
		other := &far{r, a, "far.s10"}
		f.greet(nil)
		other.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		second, opened := ada.open("conversation", "", "agh/ws_harbor/far.s10")
		r.NoError(<-opened)
		asked := f.a.published("say")[0]
		direct, err := wire.DirectID("ws_harbor", "dock", asked["from"].(string), f.id)
		r.NoError(err)
		room := func(ext any) obj {
			return obj{"surface": "direct", "thread_id": nil, "direct_id": direct, "to": asked["from"], "ext": ext}
		}
		f.send(room(crossed("o-1")))
		said := f.send(room(nil))
		for text, origin := range map[string]envelope.Origin{
			"brought": {Dialect: "ag2", ID: "o-1", Hops: 2},
			"said":    {Dialect: wire.Dialect, ID: wire.RecordKey(f.id, said), Hops: 1},
			"new":     {Dialect: "ag2", ID: "o-2", Hops: 2},
		} {
			for _, channelID := range []string{id, second} {
				_, err := r.hub.Say(context.Background(), hub.Saying{
					Channel: channelID, Sender: ada.id, Origin: origin, Message: message.Envelope{Type: message.TypeText, Content: text},
				}, nil).Wait(context.Background())
				r.NoError(err)
				synctest.Wait()
			}
		}
		r.Equal(len(f.told()), 2) // the invitation, and what is new
		r.True(strings.HasPrefix(f.told()[1], "new "), "told %q", f.told())
		r.Equal(len(other.told()), 4)
	})
}
