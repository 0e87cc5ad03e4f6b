package ag2_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/envelope"
)

// A text over /v1 is posted in a thread under AGH's rules; what these rules do not
// allow is refused with the reason, and stores nothing.
func TestV1SaysInAThread(t *testing.T) {
	t.Parallel()
	c := newCrossings(t)
	c.p.register("eve")
	length := func() (n int) {
		for _, err := range c.rig.hub.Log(t.Context(), c.tideID, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	before := length()
	for _, row := range []struct {
		name   string
		body   object
		status int
		want   string
	}{
		{"somebody who is no peer", object{"sender": "eve", "text": "x"}, http.StatusForbidden, "'eve' takes no part"},
		{"an audience that leaves somebody out", object{"sender": "bob", "text": "x", "audience": []string{"bob"}}, http.StatusConflict, "leave out the audience"},
		{"an end of its time", object{"sender": "bob", "text": "x", "ttl_seconds": 60}, http.StatusConflict, "leave out ttl_seconds"},
		{"a kind of AGH's own", object{"sender": "bob", "event_type": "agh.receipt", "event_data": object{"status": "accepted"}}, http.StatusConflict, ""},
		{"a say that names another peer", object{"sender": "bob", "event_type": "agh.say", "event_data": object{"text": "x"}}, http.StatusConflict, ""},
		{"no text", object{"sender": "bob", "text": ""}, http.StatusBadRequest, "text"},
	} {
		got := c.ask(c.v1, row.status, "POST", "/v1/channels/"+c.tideID+"/events", row.body)
		if detail, _ := got["detail"].(string); !strings.Contains(detail, row.want) {
			t.Errorf("%s is refused with %q, which has no %q", row.name, detail, row.want)
		}
	}
	if after := length(); after != before {
		t.Errorf("%d refusals stored %d envelopes", 6, after-before)
	}
	sent := func() any {
		return c.ask(c.v1, http.StatusCreated, "POST", "/v1/channels/"+c.tideID+"/events",
			object{"sender": "bob", "text": "once", "idempotency_key": "k", "audience": []string{"bob", "tug"}})["envelope_id"]
	}
	first := sent()
	if second := sent(); first != second || first != any(c.last(c.tideID).ID) || length() != before+1 {
		t.Errorf("sent as %v and as %v; the log has %d more", first, second, length()-before)
	}
	e := c.last(c.tideID)
	if diff := cmp.Diff(envelope.Origin{Dialect: "v1", Hops: 1}, e.Origin); diff != "" || e.Type != "agh.say" {
		t.Errorf("stored as %s, %s", e.Type, diff)
	}
	if got := c.ask(c.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+c.session, nil)["messages"].([]any); len(got) == 0 ||
		got[len(got)-1].(object)["body"].(object)["text"] != "once" {
		t.Errorf("the peer tug is told %v", got)
	}
	// A channel of AGH itself accepts no texts.
	c.ask(c.v1, http.StatusConflict, "POST", "/v1/channels/"+c.roomID()+"/events", object{"sender": "bob", "text": "x"})
}

// bundleOf returns the lines of a bundle of a channel's home, without its first and
// last line and those that begin a channel.
func (c *crossings) bundleOf(channelID string) (whole string, held []string) {
	w := c.as(c.v1, "", "GET", "/v1/channels/"+channelID+"/export?form=bundle&home=true", "")
	if w.Code != http.StatusOK {
		c.t.Fatalf("%d %s", w.Code, w.Body)
	}
	whole = w.Body.String()
	lines := strings.Split(strings.TrimSpace(whole), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		if !strings.HasPrefix(line, `{"channel":`) {
			held = append(held, line)
		}
	}
	return whole, held
}

// A workspace of AGH is imported completely: its room, threads and direct rooms
// with their work, as ended channels that read like the originals, and that AGH
// does not treat as its own.
func TestImportOfAWorkspace(t *testing.T) {
	t.Parallel()
	c := newCrossings(t)
	c.tell(c.session, "bob?", object{"to": "bob.s01", "work_id": "work_1"})
	c.tell(c.session, "", object{"kind": "trace", "to": "bob.s01", "work_id": "work_1", "body": object{"state": "canceled"}})
	whole, held := c.bundleOf(c.tideID)
	before := c.ask(c.agh, http.StatusOK, "GET", harbor+"/channels/dock/threads", nil)
	w := c.as(c.v1, "", "POST", "/v1/import", whole)
	var body struct {
		Channels []struct {
			ID string `json:"channel_id"`
		} `json:"channels"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	copies := map[string]string{} // by type
	for _, one := range body.Channels {
		m, err := c.rig.hub.Channel(t.Context(), one.ID)
		if err != nil || !m.State.Terminal() {
			t.Fatalf("%v, %v", m, err)
		}
		copies[m.Manifest.Type] = one.ID
	}
	if len(body.Channels) != 3 || copies[room.Type] == "" || copies[thread.Type] == "" || copies[direct.Type] == "" {
		t.Fatalf("imported are %v", copies)
	}
	if _, again := c.bundleOf(copies[thread.Type]); !slices.Equal(held, again) {
		t.Error(cmp.Diff(held, again))
	}
	read := func(id string) object { return c.ask(c.v1, http.StatusOK, "GET", "/v1/channels/"+id+"/messages", nil) }
	if diff := cmp.Diff(read(c.tideID), read(copies[thread.Type])); diff != "" {
		t.Errorf("the copy reads otherwise: %s", diff)
	}
	if diff := cmp.Diff(before, c.ask(c.agh, http.StatusOK, "GET", harbor+"/channels/dock/threads", nil)); diff != "" {
		t.Errorf("AGH lists the copy: %s", diff)
	}
	c.tell(c.session, "after the import", nil)
	if got := c.overAGH("after the import"); got["peer_from"] != "tug.s01" {
		t.Errorf("the original goes on as %v", got)
	}
}
