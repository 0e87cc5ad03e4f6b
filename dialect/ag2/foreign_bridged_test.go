package ag2_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/hub"
)

// What an AGH peer says about a channel is posted in the channel. The channel's
// creator also reads it in their direct room, where it does not ask for an answer:
// a client that answered in both places would talk with the peer forever.
func TestWhatIsSaidInAChannelIsAskedThereOnly(t *testing.T) {
	t.Parallel()
	c := newCrossings(t)
	asked := c.told("first")
	c.tell(c.session, "3 m", object{"surface": "direct", "thread_id": nil, "direct_id": asked["direct_id"], "to": "bob.s01", "work_id": asked["work_id"]})
	until(t, "it is said in the conversation", func() bool { return c.overAG2(c.conversation)["event_data"].(object)["text"] == "3 m" })
	rooms, _, err := c.rig.hub.Channels(t.Context(), hub.ListOptions{Type: direct.Type})
	if err != nil || len(rooms) != 1 {
		t.Fatalf("%v, %v", rooms, err)
	}
	room := rooms[0].ID
	if shown := c.overAG2(room); shown["event_data"].(object)["text"] != "3 m" {
		t.Errorf("the direct room is shown as %v", shown)
	}
	for {
		if n := c.p.notifiedOf("ag2.msg.text"); n.Envelope["channel_id"] == room {
			break
		}
	}
	if c.p.canSend(room, c.bob) {
		t.Error("bob is asked in the direct room too")
	}
	for _, turn := range c.p.pending(c.bob) {
		if turn[:len(room)] == room {
			t.Errorf("bob has a turn there: %s", turn)
		}
	}
	// A text to the creator alone asks for an answer.
	c.tell(c.session, "and you?", object{"surface": "direct", "thread_id": nil, "direct_id": asked["direct_id"], "to": "bob.s01"})
	for {
		if n := c.p.notifiedOf("ag2.msg.text"); n.Envelope["channel_id"] == room {
			break
		}
	}
	if !c.p.canSend(room, c.bob) {
		t.Error("bob may not answer what is said to it alone")
	}
}
