package agh_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/identity"
)

// TestStrict checks that messages that only the schema allows are delivered, listed
// and found after a restart, and that the id of a thread must still be storable.
func TestStrict(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "to the letter of the schema", agh.Config{Broker: a, Strict: true}, func(r *rig) {
		tug := r.join("dock", "tug", "tug.s02")
		f := &far{r, a, "far.s9"}
		put := func(old, value string, members obj) string {
			e := f.envelope(members)
			f.on("agh.network.v0.ws_harbor.dock.peer.f517bf6ab72761a29c2494efbfaffc06", []byte(strings.Replace(string(must(json.Marshal(e))), old, value, 1)))
			return e["id"].(string)
		}
		now := strconv.FormatInt(time.Now().Unix(), 10)
		ids := []string{put(now, now+".0", nil), put(now, now[:1]+"."+now[1:]+"e"+strconv.Itoa(len(now)-1), nil)}
		put(`"proof":null`, `"proof":null,"reply_to":null`, nil)
		for _, thread := range []string{"a/b", `a\b`, "a\x01b", strings.Repeat("x", 129)} {
			f.send(obj{"thread_id": thread})
		}
		r.Equal(r.reasons(), []string{"malformed", "malformed", "malformed", "malformed", "malformed"})
		for range 2 {
			r.Equal(tug.inbox(), ids)
			r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 2)
			r.Equal(each(list(r.get("/channels/dock/threads"), "threads"), "thread_id"), []string{"thread_tide"})
			r.restart()
		}
	})
}

// TestInboxRules checks that a full queue drops its oldest message; the limit of an
// identity's rule refuses nothing here.
func TestInboxRules(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "senders are not refused", agh.Config{Broker: a, QueueDepth: 5}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		id, ok := r.hub.FindAgent("tug")
		r.True(ok, "tug is registered")
		rule := identity.DefaultRule()
		rule.Limits.Inbox = identity.Inbox{MaxPending: 1, Overflow: "reject"}
		r.NoError(r.hub.SetRule(context.Background(), id, &rule))
		f := &far{r, a, "far.s9"}
		var want []string
		for range 2 {
			want = append(want, crane.say("you", obj{"to": "tug.s02"}), crane.say("all", nil), f.send(nil))
		}
		r.Equal(tug.inbox(), want[1:])
		r.Equal(r.reasons(), []string{"queue_overflow"})
	})
}

// TestNothingEnds checks that rooms, threads, direct rooms and open work stay for
// ever, whatever lifetime of channels the rules of identities set.
func TestNothingEnds(t *testing.T) {
	t.Parallel()
	runs(t, "by itself", agh.Config{}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		direct := obj{"surface": "direct", "thread_id": nil, "to": "tug.s02"}
		for range 3 {
			crane.say("in the thread", obj{"to": "tug.s02", "work_id": "work_1"})
			crane.say("in the room", direct)
			pass(5 * time.Hour) // the default is two hours
			r.restart()
		}
		r.Equal(r.work("work_1"), "submitted")
		r.Equal(len(tug.inbox()), 6)
		r.Equal(list(r.get("/channels/dock/threads"), "threads")[0]["message_count"], any(3.0))
		r.Equal(list(r.get("/channels/dock/directs"), "directs")[0]["message_count"], any(3.0))
	})
}

// TestLastPresence checks that times are compared as times, not as texts.
func TestLastPresence(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "the last one who greeted counts", agh.Config{Broker: a}, func(r *rig) {
		r.join("dock", "tug", "tug.s02")
		(&far{r, a, "far.s9"}).greet(nil) // at a whole second
		pass(500 * time.Millisecond)
		(&far{r, a, "far.s8"}).greet(nil)
		r.Equal(r.get("/channels/dock")["channel"].(obj)["last_presence_at"], any(time.Now().UTC().Format(time.RFC3339Nano)))
	})
}

// TestLastSaid checks that a channel's last message is complete and the same after
// a restart.
func TestLastSaid(t *testing.T) {
	t.Parallel()
	runs(t, "whole, by time and id, over restarts", agh.Config{}, func(r *rig) {
		crane := r.join("dock", "crane", "crane.s01")
		r.join("dock", "tug", "tug.s02")
		last := func() any { return r.get("/channels/dock")["channel"].(obj)["last_message_preview"] }
		check := func(want string) {
			r.Helper()
			r.True(last() == want, "%.40q is not %.40q", last(), want)
			r.restart()
			r.True(last() == want, "after a restart %.40q is not %.40q", last(), want)
		}
		crane.say("late in the alphabet", obj{"id": "m-9", "thread_id": "thread_one"})
		crane.say("early", obj{"id": "m-1", "thread_id": "thread_two"}) // of the same second
		check("late in the alphabet")
		pass(time.Second)
		long := strings.Repeat("é", 5000)
		crane.say(long, obj{"id": "m/2", "thread_id": "thread_one"})
		crane.say("directed", obj{"to": "tug.s02", "id": "m/3", "thread_id": "thread_one"})
		check(long)
		pass(time.Second)
		crane.say(strings.Repeat("x", 4095), nil)
		check(strings.Repeat("x", 4095))
	})
}
