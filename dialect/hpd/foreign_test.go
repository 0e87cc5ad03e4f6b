package hpd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// away is a rig with channels of other dialects.
type away struct {
	*rig
	ids map[string]string
}

func newAway(t *testing.T) *away {
	t.Helper()
	r := &away{newRig(t, hpd.Config{Who: byHeader}), map[string]string{}}
	for _, name := range []string{"ada", "bob", "cyd"} {
		p, err := r.hub.Register(t.Context(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
		if err != nil {
			t.Fatal(err)
		}
		r.ids[name] = p.ID()
	}
	return r
}

// open opens a channel without waiting for acks.
func (r *away) open(kind, knobs string, names ...string) string {
	r.t.Helper()
	o := hub.Opening{Type: kind, Creator: r.ids[names[0]], RequiredAcks: new(int)}
	if knobs != "" {
		o.Knobs = []byte(knobs)
	}
	for _, name := range names {
		o.Participants = append(o.Participants, r.ids[name])
	}
	opened, err := r.hub.Open(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return opened.ID
}

// text posts an AG2 text, to everyone or to some.
func (r *away) text(channelID, name, text string, to ...string) string {
	r.t.Helper()
	e := &envelope.Envelope{Channel: channelID, Sender: r.ids[name], Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, text)}
	for _, one := range to {
		e.Audience = append(e.Audience, r.ids[one])
	}
	return r.post(e)
}

func (r *away) post(e *envelope.Envelope) string {
	r.t.Helper()
	id, err := r.hub.Post(r.t.Context(), e, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *away) as(who, method, path string, body any) answer {
	r.t.Helper()
	return r.send(method, path, body, map[string]string{"Who": who})
}

func (r *away) stream(who, channelID, after string) *reader {
	r.t.Helper()
	return r.watch(livePathOf(channelID), map[string]string{"Who": who, "Last-Event-ID": after})
}

func livePathOf(channelID string) string {
	return "/agents/any/sessions/" + channelID + "/branches/main/events/live"
}

// spoken returns the texts of events, each with its speaker.
func spoken(events []object) (list []string) {
	author := ""
	for _, e := range events {
		switch e["type"] {
		case "MESSAGE_STARTED":
			author = fmt.Sprint(e["authorName"], "/", e["role"])
		case "TEXT_DELTA":
			list = append(list, fmt.Sprint(author, ": ", e["text"]))
		}
	}
	return list
}

func TestForeignChannelsAreSessions(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	c := &spec.T{T: t}
	ch := r.open("conversation", "", "ada", "bob")
	r.text(ch, "ada", "hello")
	own := r.as("ada", "POST", "/sessions", nil).object()["id"].(string)

	listed := func(who, query string) (ids []string) {
		for _, s := range r.as(who, "GET", "/sessions"+query, nil).list() {
			ids = append(ids, s["id"].(string))
		}
		return ids
	}
	c.Equal(listed("ada", ""), []string{own})
	c.Equal(listed("ada", "?foreign=true&sortBy=createdAt&sortDirection=asc"), []string{ch, own})
	c.Equal(len(listed("cyd", "?foreign=true")), 0)
	c.Equal(len(listed("operator", "?foreign=true")), 2)
	c.Equal(r.as("ada", "GET", "/sessions?foreign=perhaps", nil).status, http.StatusBadRequest)

	session := r.as("bob", "GET", "/sessions/"+ch, nil)
	c.Equal(session.status, http.StatusOK)
	c.Equal(session.object()["metadata"].(object)["parley.type"], any("conversation"))
	c.Equal(r.as("cyd", "GET", "/sessions/"+ch, nil).status, http.StatusNotFound)
	branches := r.as("bob", "GET", "/sessions/"+ch+"/branches", nil).list()
	c.Equal(len(branches), 1)
	c.Equal(branches[0]["id"], any("main"))
	c.Equal(r.as("bob", "GET", "/sessions/"+ch+"/branches/other", nil).status, http.StatusNotFound)
	c.Equal(r.as("bob", "GET", "/sessions/"+strings.Repeat("0", 32), nil).status, http.StatusNotFound)

	// Operations that only HPD's own sessions support are refused, and the error
	// says what is possible.
	agent := "/agents/any/sessions/" + ch + "/branches/main"
	for _, call := range [][2]string{
		{"DELETE", "/sessions/" + ch},
		{"PATCH", "/sessions/" + ch},
		{"PATCH", "/sessions/" + ch + "/branches/main"},
		{"POST", agent + "/fork"},
		{"POST", agent + "/interrupt"},
		{"GET", "/sessions/" + ch + "/content"},
	} {
		got := r.as("ada", call[0], call[1], object{"fromMessageId": "m"})
		if got.status != http.StatusConflict || !strings.Contains(string(got.raw), "POST …/inputs") {
			t.Errorf("%v: %d %s", call, got.status, got.raw)
		}
	}
	c.Equal(r.as("ada", "DELETE", "/sessions/"+ch+"/branches/main", nil).status, http.StatusBadRequest)
	c.Equal(r.as("ada", "GET", "/sessions/"+ch, nil).status, http.StatusOK)
}

// One envelope becomes several events: whichever of them a reader had last, the
// rest is neither lost nor repeated.
func TestForeignEventsResume(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	ch := r.open("workflow", `{"graph":{"initial_speaker":"`+r.ids["ada"]+`","default_target":{"name":"round_robin"}}}`, "ada", "bob")
	first := r.text(ch, "ada", "one")
	r.post(&envelope.Envelope{
		Channel: ch, Sender: r.ids["bob"], Type: envelope.TypePacket,
		Data: []byte(`{"body":"two","routing":{"kind":"handoff","tool":"t","target":"` + r.ids["ada"] + `","reason":"yours"},"context_updates":{"set":{"k":1}}}`),
	})
	r.post(&envelope.Envelope{Channel: ch, Sender: r.ids["ada"], Type: envelope.TypeTaskStarted, Data: []byte(`{"task_id":"t1","spec":{"title":"Book"}}`)})
	r.text(ch, "ada", "three")
	r.post(&envelope.Envelope{Channel: ch, Sender: r.ids["bob"], Type: "custom.end", Data: []byte(`{}`)})

	history := r.as("reader", "GET", "/sessions/"+ch+"/branches/main/events", nil).list()
	want := []string{"ada/assistant: one", "bob/assistant: two", "ada/assistant: three"}
	if diff := cmp.Diff(want, spoken(history)); diff != "" {
		t.Fatal(diff)
	}
	for _, name := range []string{"WORKFLOW_EDGE_TRAVERSED", "TOOL_CALL_BACKGROUND_TASK_STARTED", "WORKFLOW_DIAGNOSTIC"} {
		if len(only(history, name)) == 0 {
			t.Errorf("no %s in %v", name, types(history))
		}
	}
	one := only(history, "MESSAGE_STARTED")[0]
	seq := uint64(one["sequenceNumber"].(float64))
	if one["eventId"] != first+".1" || seq%1000 != 1 {
		t.Errorf("numbered %v %v", one["eventId"], seq)
	}

	const last = "custom.end"
	stream := func(after string) (frames []frame) {
		w := r.stream("reader", ch, after)
		defer w.close()
		for {
			frames = append(frames, w.frames("WORKFLOW_DIAGNOSTIC")...)
			if frames[len(frames)-1].event["source"] == last {
				return frames
			}
		}
	}
	whole := stream("0")
	events := func(frames []frame) (list []object) {
		for _, f := range frames {
			list = append(list, f.event)
		}
		return list
	}
	if diff := cmp.Diff(history, events(whole)); diff != "" {
		t.Fatalf("the stream differs from the history:\n%s", diff)
	}
	ids := 0
	for i, f := range whole[:len(whole)-1] {
		rest := events(whole[i+1:])
		number := fmt.Sprintf("%.0f", f.event["sequenceNumber"])
		if diff := cmp.Diff(rest, events(stream(number))); diff != "" {
			t.Fatalf("after %s:\n%s", number, diff)
		}
		if diff := cmp.Diff(rest, r.as("reader", "GET", "/sessions/"+ch+"/branches/main/events?after="+number, nil).list()); diff != "" {
			t.Fatalf("the history after %s:\n%s", number, diff)
		}
		next := whole[i+1].event["eventId"].(string)
		lastOfItsOwn := strings.Split(next, ".")[0] != strings.Split(f.event["eventId"].(string), ".")[0]
		if (f.id != "") != lastOfItsOwn {
			t.Errorf("%v has the id %q", f.event["eventId"], f.id)
		}
		if f.id == "" {
			continue
		}
		ids++
		if diff := cmp.Diff(rest, events(stream(f.id))); diff != "" {
			t.Fatalf("after %s:\n%s", f.id, diff)
		}
	}
	if ids == 0 {
		t.Error("no event can be resumed at")
	}
	if got := r.as("reader", "GET", "/sessions/"+ch+"/branches/main/events?limit=3", nil).list(); len(got) != 3 {
		t.Errorf("%d events of 3", len(got))
	}
}

func TestForeignWhispersStayHidden(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	ch := r.open("discussion", "", "ada", "bob", "cyd")
	cyd := r.stream("cyd", ch, "0")
	r.text(ch, "ada", "for all")
	r.text(ch, "bob", "for ada alone", "ada")
	r.text(ch, "cyd", "so what?")
	r.text(ch, "ada", "the end")
	path := "/sessions/" + ch + "/branches/main/events"
	for who, want := range map[string][]string{
		"ada": {"ada/user: for all", "bob/assistant: for ada alone", "cyd/assistant: so what?", "ada/user: the end"},
		"bob": {"ada/assistant: for all", "bob/user: for ada alone", "cyd/assistant: so what?", "ada/assistant: the end"},
		"cyd": {"ada/assistant: for all", "cyd/user: so what?", "ada/assistant: the end"},
	} {
		if diff := cmp.Diff(want, spoken(r.as(who, "GET", path, nil).list())); diff != "" {
			t.Errorf("%s: %s", who, diff)
		}
	}
	var seen []object
	for len(only(seen, "MESSAGE_COMPLETED")) < 3 {
		seen = append(seen, cyd.until("MESSAGE_COMPLETED")...)
	}
	if diff := cmp.Diff([]string{"ada/assistant: for all", "cyd/user: so what?", "ada/assistant: the end"}, spoken(seen)); diff != "" {
		t.Error(diff)
	}
}

func TestForeignInputs(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	c := &spec.T{T: t}
	ch := r.open("discussion", "", "ada", "bob")
	agent := "/agents/any/sessions/" + ch + "/branches/main"
	early := r.as("bob", "POST", agent+"/inputs", object{"text": "me first"})
	c.Equal(early.status, http.StatusConflict)
	c.Equal(early.code(), "OutOfTurn")
	if !strings.Contains(string(early.raw), "it is the turn of 'ada'") {
		t.Errorf("%s", early.raw)
	}
	c.Equal(r.as("cyd", "POST", agent+"/inputs", object{"text": "x"}).status, http.StatusNotFound)
	c.Equal(r.as("reader", "POST", agent+"/inputs", object{"text": "x"}).status, http.StatusForbidden)
	c.Equal(r.as("operator", "POST", agent+"/inputs", object{"text": "x"}).status, http.StatusForbidden)

	// A run is shown from the input to the end of the answer, and not stored.
	watching := r.stream("ada", ch, "")
	body := object{"text": "When is high tide?", "clientInputId": "i-1"}
	posted := r.as("ada", "POST", agent+"/inputs", body)
	c.Equal(posted.status, http.StatusAccepted)
	run := posted.object()["runtimeRunId"].(string)
	c.Equal(r.as("ada", "POST", agent+"/inputs", body).object()["runtimeRunId"], any(run)) // a repeat
	c.Equal(r.as("ada", "GET", agent+"/runs/active", nil).object()["runtimeRunId"], any(run))
	joining := r.stream("bob", ch, "") // in the middle of the run
	r.text(ch, "bob", "At five.")
	seen := watching.until("BRANCH_RUN_COMPLETED")
	c.Equal(types(seen), []string{
		"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED",
		"MESSAGE_STARTED", "TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_COMPLETED",
		"MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED",
	})
	c.Equal(spoken(seen), []string{"bob/assistant: At five."})
	c.Equal(seen[len(seen)-1]["runtimeRunId"], any(run))
	c.Equal(types(joining.until("BRANCH_RUN_COMPLETED")), []string{"MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED"})
	c.Equal(string(r.as("ada", "GET", agent+"/runs/active", nil).raw), "null")
	history := r.as("ada", "GET", "/sessions/"+ch+"/branches/main/events", nil).list()
	c.Equal(len(only(history, "BRANCH_RUN_STARTED", "BRANCH_RUN_COMPLETED")), 0)
	c.Equal(spoken(history), []string{"ada/user: When is high tide?", "bob/assistant: At five."})

	// The log has an AG2 envelope, from the identity of the key.
	for e, err := range r.hub.Log(t.Context(), ch, 0, 0) {
		c.NoError(err)
		if e.ID == run {
			c.Equal(e.Type, envelope.TypeText)
			c.Equal(e.Sender, r.ids["ada"])
			c.Equal(e.Origin.Dialect, "hpd")
		}
	}
	if _, err := r.hub.CloseChannel(t.Context(), ch, "enough"); err != nil {
		t.Fatal(err)
	}
	c.Equal(r.as("ada", "POST", agent+"/inputs", object{"text": "hello?"}).status, http.StatusConflict)
}

// Text that is being written is shown live, and not repeated when it is stored.
func TestForeignDeltas(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	ch := r.open("conversation", "", "ada", "bob")
	asked := r.text(ch, "ada", "When?")
	watching := r.stream("ada", ch, "")
	delta := func(at int, text string) {
		t.Helper()
		err := r.hub.SendLive(t.Context(), &envelope.Envelope{
			Channel: ch, Sender: r.ids["bob"], Type: envelope.TypeDelta, Data: fmt.Appendf(nil, `{"causation_id":%q,"at":%d,"text":%q}`, asked, at, text),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	delta(0, "At ")
	delta(3, "fi")
	r.post(&envelope.Envelope{Channel: ch, Sender: r.ids["bob"], Type: envelope.TypeText, Causation: asked, Data: []byte(`{"text":"At five."}`)})
	r.text(ch, "bob", "Really.")
	seen := watching.until("TEXT_MESSAGE_END")
	text := ""
	for _, e := range only(seen, "TEXT_DELTA") {
		if e["messageId"] != seen[0]["messageId"] {
			t.Errorf("a piece of another message: %v", e)
		}
		text += e["text"].(string)
	}
	if text != "At five." {
		t.Errorf("%q: %v", text, types(seen))
	}
	if diff := cmp.Diff([]string{"bob/assistant: Really."}, spoken(watching.until("MESSAGE_COMPLETED"))); diff != "" {
		t.Error(diff)
	}
	history := r.as("ada", "GET", "/sessions/"+ch+"/branches/main/events", nil).list()
	if diff := cmp.Diff([]string{"ada/user: When?", "bob/assistant: At five.", "bob/assistant: Really."}, spoken(history)); diff != "" {
		t.Error(diff)
	}
}
