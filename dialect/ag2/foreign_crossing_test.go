package ag2_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// crossings is a hub with a conversation of AG2's and a thread of AGH's, in which bob
// and the peer tug take part, and a branch of HPD's that bob answers in.
type crossings struct {
	*dialects
	p                     *peer
	branch                *branchOf
	branchID, run         string
	bob, tug, session     string
	bridged               string // the peer tug in the conversation
	conversation, tideID  string
	askedInConversation   string // the envelope that the next one is caused by
	toldFirst             any    // its id, as the peer tug received it
	firstInThread, tideM0 string // the ids of the thread's first message: the hub's and AGH's
}

const (
	traceID     = "5f0c9b1e7a2d4c3388e1d0b6a9f4c217"
	traceparent = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func newCrossings(t *testing.T) *crossings {
	c := &crossings{dialects: newDialects(t, options{}, hpd.Config{Who: asNamed})}
	c.p = c.dial()
	c.bob = c.p.register("bob")
	c.session = c.join("tug", "tug.s01")
	c.join("bob", "bob.s01")
	c.tug, _ = c.rig.hub.FindAgent("tug")
	o, err := c.rig.hub.WithIDs(hub.Opening{Creator: "bob", Type: "conversation", Participants: []string{"agh/ws_harbor/tug.s01"}, RequiredAcks: new(int)})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := c.rig.hub.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.conversation, c.bridged = opened.ID, opened.Participants[1].Agent
	c.askedInConversation = c.p.say(c.conversation, c.bob, "first")
	c.toldFirst = c.told("first")["id"] // so the peer has accepted its invitation
	c.tell(c.session, "first", object{"id": "m-0"})
	list, _, err := c.rig.hub.Channels(t.Context(), hub.ListOptions{Type: thread.Type})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	c.tideID, c.tideM0 = list[0].ID, "m-0"
	c.firstInThread = c.last(c.tideID).ID
	c.branch = c.dialects.branch("bob")
	c.run = c.branch.input("first")
	list, _, err = c.rig.hub.Channels(t.Context(), hub.ListOptions{Type: "branch"})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	c.branchID = list[0].ID
	c.p.post(c.branchID, c.bob, "ag2.channel.invite.ack", object{"channel_id": c.branchID})
	until(t, "the agent is asked in the branch", func() bool { return len(c.p.pending(c.bob)) == 1 })
	return c
}

// roomID returns the channel of the room dock.
func (c *crossings) roomID() string {
	list, _, err := c.rig.hub.Channels(c.t.Context(), hub.ListOptions{Type: room.Type})
	if err != nil || len(list) != 1 {
		c.t.Fatalf("%v, %v", list, err)
	}
	return list[0].ID
}

// send posts a text over /v1.
func (c *crossings) send(id, text string, more object) {
	body := object{"sender": "bob", "text": text}
	maps.Copy(body, more)
	c.ask(c.v1, http.StatusCreated, "POST", "/v1/channels/"+id+"/events", body)
}

// overV1 returns the last message of a channel over /v1, with its metadata.
func (c *crossings) overV1(id string) object {
	list := c.ask(c.v1, http.StatusOK, "GET", "/v1/channels/"+id+"/messages", nil)["messages"].([]any)
	last := list[len(list)-1].(object)
	got := last["metadata"].(object)
	got["text"] = last["content"]
	delete(got, "event_type")
	return got
}

// overBranch returns the last message of the branch over HPD.
func (c *crossings) overBranch() (last object) {
	w := httptest.NewRecorder()
	c.hpd.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hpd/sessions/"+c.branch.session+"/branches/main/events", nil))
	var list []object
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		c.t.Fatalf("%s: %v", w.Body, err)
	}
	authors := map[any]any{}
	for _, e := range list {
		switch e["type"] {
		case "MESSAGE_STARTED":
			authors[e["messageId"]] = e["authorName"]
		case "TEXT_MESSAGE_START":
			last = object{"role": e["role"], "author": authors[e["messageId"]]}
		case "TEXT_DELTA":
			last["text"] = e["text"]
		}
	}
	return last
}

// answer lets bob answer the branch's run over AG2, which ends the run.
func (c *crossings) answer(text string) {
	c.p.say(c.branchID, c.bob, text)
	c.branch.ended(c.run)
}

// last returns the last envelope of a log.
func (c *crossings) last(id string) (last *envelope.Envelope) {
	for e, err := range c.rig.hub.Log(c.t.Context(), id, 0, 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		last = e
	}
	return last
}

// overAG2 returns the last envelope of a channel that AG2's client reads.
func (c *crossings) overAG2(id string) object {
	var list []object
	c.p.call("read_wal", object{"channel_id": id}, &list)
	return list[len(list)-1]
}

// overHPD returns the last text as bob reads it over HPD.
func (c *crossings) overHPD(id string) (last object) {
	req := httptest.NewRequest(http.MethodGet, "/hpd/sessions/"+id+"/branches/main/events", nil)
	req.Header.Set("X-As", "bob")
	w := httptest.NewRecorder()
	c.hpd.ServeHTTP(w, req)
	var list []object
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		c.t.Fatalf("%s: %v", w.Body, err)
	}
	for _, e := range list {
		if e["type"] == "TEXT_DELTA" {
			last = e
		}
	}
	return last
}

// overAGH returns the message of a text in the thread, as AGH's route shows it.
func (c *crossings) overAGH(text string) object {
	for _, m := range c.ask(c.agh, http.StatusOK, "GET", harbor+"/channels/dock/threads/thread_tide/messages", nil)["messages"].([]any) {
		if m.(object)["text"] == text {
			return m.(object)
		}
	}
	c.t.Fatalf("the thread has no %q", text)
	return nil
}

// told returns the AGH peer's message for a text of a channel.
func (c *crossings) told(text string) (found object) {
	until(c.t, "the peer is told", func() bool {
		for _, one := range c.ask(c.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+c.session, nil)["messages"].([]any) {
			if m := one.(object); m["body"].(object)["text"] == text {
				found = m
			}
		}
		return found != nil
	})
	return found
}

func (c *crossings) input(id, text string) {
	w := c.as(c.hpd, "bob", "POST", "/hpd/agents/any/sessions/"+id+"/branches/main/inputs", fmt.Sprintf(`{"type":"USER_TEXT_INPUT","text":%q}`, text))
	if w.Code != http.StatusAccepted {
		c.t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// Sender, cause, trace and priority are kept when a text is shown in another
// dialect, as far as that dialect has fields for them; the log keeps the rest.
func TestWhatCrossesWithAText(t *testing.T) {
	t.Parallel()
	c := newCrossings(t)
	chosen := func(causation string) object {
		return object{"causation_id": causation, "trace_id": traceparent, "priority": "urgent"}
	}
	agent := func(id, name string) object {
		return object{"agentName": name, "agentId": id, "agentChain": []any{name}, "depth": 0.0, "isSubAgent": false}
	}
	members := func(from object, names ...string) object {
		some := object{}
		for _, name := range names {
			some[name] = from[name]
		}
		return some
	}
	shown := func(e object, names ...string) object {
		some := members(e, names...)
		some["text"] = e["event_data"].(object)["text"]
		return some
	}
	for _, row := range []struct {
		name string
		say  func(text string)
		got  func(text string) object
		want object
	}{
		{
			"AG2 to HPD: who and trace; causation and priority have no place", func(text string) {
				c.p.post(c.conversation, c.bob, "ag2.msg.text", object{"text": text}, chosen(c.askedInConversation))
			},
			func(string) object { return members(c.overHPD(c.conversation), "text", "metadata", "traceId") },
			object{"metadata": agent(c.bob, "bob"), "traceId": traceID},
		},
		{
			"AG2 to an AGH peer: who, cause and trace", func(text string) {
				c.p.post(c.conversation, c.bob, "ag2.msg.text", object{"text": text}, chosen(c.askedInConversation))
			},
			func(text string) object {
				m := c.told(text)
				return object{"text": text, "speaker": m["ext"].(object)["parley.speaker"], "trace_id": m["trace_id"], "from": m["from"], "cause": m["causation_id"]}
			},
			object{"speaker": object{"id": c.bob, "name": "bob"}, "trace_id": traceparent, "from": "bob.s01", "cause": c.toldFirst},
		},
		{
			"AG2 to an AGH thread: who, cause and trace", func(text string) {
				c.tell(c.session, "and?", object{"id": "m-7", "to": "bob.s01"})
				c.p.post(c.tideID, c.bob, "ag2.msg.text", object{"text": text}, chosen(c.last(c.tideID).ID))
			},
			func(text string) object {
				return members(c.overAGH(text), "text", "peer_from", "causation_id", "trace_id")
			},
			object{"peer_from": "bob.s01", "causation_id": "m-7", "trace_id": traceparent},
		},
		{
			"AG2 to an AGH thread: the log keeps the priority", func(text string) {
				c.p.post(c.tideID, c.bob, "ag2.msg.text", object{"text": text}, object{"trace_id": traceparent, "priority": "urgent"})
			},
			func(text string) object {
				e := c.last(c.tideID)
				return object{"text": text, "priority": e.Priority, "sender": e.Sender, "trace": e.Trace}
			},
			object{"priority": envelope.Urgent, "sender": c.bob, "trace": traceparent},
		},
		{
			"AGH to AG2: who, cause and trace", func(text string) {
				c.tell(c.session, text, object{"causation_id": c.tideM0, "trace_id": traceID})
			},
			func(string) object {
				got := c.overAG2(c.tideID)
				return object{"text": got["event_data"].(object)["text"], "sender": got["sender_id"], "cause": got["causation_id"], "trace": got["trace_id"]}
			},
			object{"sender": c.tug, "cause": c.firstInThread, "trace": traceID},
		},
		{
			"AGH to HPD: who and trace", func(text string) {
				c.tell(c.session, text, object{"causation_id": c.tideM0, "trace_id": traceID})
			},
			func(string) object { return members(c.overHPD(c.tideID), "text", "metadata", "traceId") },
			object{"metadata": agent(c.tug, "tug.s01"), "traceId": traceID},
		},
		{
			"HPD to AG2: who", func(text string) { c.input(c.conversation, text) },
			func(string) object {
				got := c.overAG2(c.conversation)
				return object{"text": got["event_data"].(object)["text"], "sender": got["sender_id"], "type": got["event_type"]}
			},
			object{"sender": c.bob, "type": "ag2.msg.text"},
		},
		{
			"HPD to AGH: who", func(text string) { c.input(c.tideID, text) },
			func(text string) object { return members(c.overAGH(text), "text", "peer_from") },
			object{"peer_from": "bob.s01"},
		},
		{
			"/v1 to AG2: who, cause and priority", func(text string) {
				c.send(c.conversation, text, object{"causation_id": c.askedInConversation, "priority": "urgent"})
			},
			func(string) object { return shown(c.overAG2(c.conversation), "sender_id", "causation_id", "priority") },
			object{"sender_id": c.bob, "causation_id": c.askedInConversation, "priority": "urgent"},
		},
		{
			"/v1 to HPD: who", func(text string) { c.send(c.conversation, text, nil) },
			func(string) object { return members(c.overHPD(c.conversation), "text", "metadata") },
			object{"metadata": agent(c.bob, "bob")},
		},
		{
			"/v1 to an AGH peer: who", func(text string) { c.send(c.conversation, text, nil) },
			func(text string) object {
				return object{"text": text, "speaker": c.told(text)["ext"].(object)["parley.speaker"]}
			},
			object{"speaker": object{"id": c.bob, "name": "bob"}},
		},
		{
			"/v1 to an AGH thread: who and cause, as a say of the thread", func(text string) {
				c.send(c.tideID, text, object{"causation_id": c.firstInThread, "priority": "urgent"})
			},
			func(text string) object {
				return members(c.overAGH(text), "text", "peer_from", "causation_id", "kind", "surface")
			},
			object{"peer_from": "bob.s01", "causation_id": c.tideM0, "kind": "say", "surface": "thread"},
		},
		{
			"/v1 to an AGH thread: the log keeps where it came in, cause and priority", func(text string) {
				c.send(c.tideID, text, object{"causation_id": c.firstInThread, "priority": "urgent"})
			},
			func(text string) object {
				e := c.last(c.tideID)
				return object{"text": text, "origin": e.Origin.Dialect, "hops": e.Origin.Hops, "cause": e.Causation, "priority": e.Priority}
			},
			object{"origin": "v1", "hops": 1, "cause": c.firstInThread, "priority": envelope.Urgent},
		},
		{
			"AGH to /v1: who, cause and trace", func(text string) {
				c.tell(c.session, text, object{"causation_id": c.tideM0, "trace_id": traceID})
			},
			func(string) object { return c.overV1(c.tideID) },
			object{"sender_id": c.tug, "name": "tug", "causation_id": c.firstInThread, "trace_id": traceID},
		},
		{
			"an audience, AG2 to an AGH peer: it is told; the log keeps the audience", func(text string) {
				c.p.post(c.conversation, c.bob, "ag2.msg.text", object{"text": text}, object{"audience": []string{c.bridged}})
			},
			func(text string) object {
				return object{"text": c.told(text)["body"].(object)["text"], "audience": c.last(c.conversation).Audience}
			},
			object{"audience": []string{c.bridged}},
		},
		{
			"an audience, AG2 to HPD: who; the audience has no place", func(text string) {
				c.p.post(c.conversation, c.bob, "ag2.msg.text", object{"text": text}, object{"audience": []string{c.bridged}})
			},
			func(string) object { return members(c.overHPD(c.conversation), "text", "metadata") },
			object{"metadata": agent(c.bob, "bob")},
		},
		{
			"an audience, /v1 to AG2: who and audience", func(text string) {
				c.send(c.conversation, text, object{"audience": []string{c.bridged}})
			},
			func(string) object { return shown(c.overAG2(c.conversation), "sender_id", "audience") },
			object{"sender_id": c.bob, "audience": []any{c.bridged}},
		},
		{
			"an audience, AG2 to /v1: who and audience", func(text string) {
				c.p.post(c.conversation, c.bob, "ag2.msg.text", object{"text": text}, object{"audience": []string{c.bridged}})
			},
			func(string) object { return c.overV1(c.conversation) },
			object{"sender_id": c.bob, "name": "bob", "audience": []any{c.bridged}},
		},
		{
			"an HPD branch to AG2: who", func(text string) { c.answer("first"); c.run = c.branch.input(text) },
			func(string) object { return shown(c.overAG2(c.branchID), "sender_id", "event_type") },
			object{"sender_id": c.last(c.branchID).Sender, "event_type": "ag2.msg.text"},
		},
		{
			"AG2 to an HPD branch that asks it: who, as the assistant", c.answer,
			func(string) object { return c.overBranch() },
			object{"role": "assistant", "author": nil},
		},
		{
			"AG2 to an HPD branch that asks nothing: who, as a user", func(text string) { c.p.say(c.branchID, c.bob, text) },
			func(string) object { return c.overBranch() },
			object{"role": "user", "author": "bob"},
		},
		{
			"/v1 to an HPD branch: who, as a user", func(text string) { c.send(c.branchID, text, nil) },
			func(string) object { return c.overBranch() },
			object{"role": "user", "author": "bob"},
		},
	} {
		row.say(row.name)
		row.want["text"] = row.name
		if diff := cmp.Diff(row.want, row.got(row.name)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}

// An item that a dialect has no type for is shown by a placeholder that names it.
func TestWhatHasNoWordHasAPlaceholder(t *testing.T) {
	t.Parallel()
	c := newCrossings(t)
	c.p.post(c.conversation, c.bob, "app.note", object{"secret": "x"})
	w := c.as(c.hpd, "bob", "GET", "/hpd/sessions/"+c.conversation+"/branches/main/events", "")
	var list []object
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if last := list[len(list)-1]; last["type"] != "WORKFLOW_DIAGNOSTIC" || last["eventId"] != c.last(c.conversation).ID+".1" {
		t.Errorf("over HPD: %v", last)
	}
	buoy := c.join("buoy", "buoy.s03")
	c.ask(c.agh, http.StatusOK, "POST", harbor+"/channels/dock/directs/resolve", object{"session_id": buoy, "peer_id": "bob.s01"})
	rooms, _, err := c.rig.hub.Channels(t.Context(), hub.ListOptions{Type: direct.Type, Newest: true, Limit: 1})
	if err != nil || len(rooms) != 1 {
		t.Fatalf("%v, %v", rooms, err)
	}
	if got := c.overAG2(rooms[0].ID); got["event_type"] != "parley.item.other" || got["event_data"].(object)["type"] != direct.TypeResolve {
		t.Errorf("over AG2: %v", got)
	}
}
