package hpd_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

func (r *away) ask(channelID, name string, edit func(*hub.Request)) hub.Request {
	r.t.Helper()
	q := hub.Asking{Request: hub.Request{
		Kind: request.Approval, Channel: channelID, AskedBy: r.ids[name], Title: "May the crane be used?", Body: "It is windy.", AgentsMayAnswer: true,
		Action:  &request.Action{Name: "lift", Arguments: []byte(`{"tons":3}`)},
		Choices: []request.Choice{{ID: "approve_once"}, {ID: "deny", Label: "No"}},
	}}
	if edit != nil {
		edit(&q.Request)
	}
	asked, err := r.hub.Ask(r.t.Context(), q, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return asked
}

// A request of another dialect's channel is shown as a permission, or a question,
// and its answer is stored in the hub.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	c := &spec.T{T: t}
	ch := r.open("conversation", "", "ada", "bob")
	agent := "/agents/any/sessions/" + ch + "/branches/main"
	watching := r.stream("bob", ch, "")

	asked := r.ask(ch, "ada", nil)
	seen := watching.until("PERMISSION_REQUEST")
	c.Equal(types(seen), []string{"AGENT_REQUEST_STARTED", "PERMISSION_REQUEST"})
	c.Equal(seen[0]["requestId"], any(asked.ID))
	c.Equal(seen[0]["requestEventType"], any("PERMISSION_REQUEST"))
	c.Equal(seen[0]["expectedResponseEventType"], any("PERMISSION_RESPONSE"))
	shown := seen[1]
	c.Equal(shown["permissionId"], any(asked.ID))
	c.Equal(shown["sourceName"], any("ada"))
	c.Equal(shown["functionName"], any("lift"))
	c.Equal(shown["description"], any("It is windy."))
	c.Equal(shown["arguments"], any(object{"tons": 3.0}))

	open := r.as("bob", "GET", agent+"/requests", nil).list()
	c.Equal(len(open), 1)
	c.Equal(open[0]["request"].(object)["permissionId"], any(asked.ID))
	c.Equal(r.as("cyd", "GET", agent+"/requests", nil).status, http.StatusNotFound)

	yes := object{"type": "PERMISSION_RESPONSE", "permissionId": asked.ID, "sourceName": "ada", "approved": true, "choice": "allow_always"}
	respond := func(who string, body object) (int, any) {
		a := r.as(who, "POST", agent+"/responses", body)
		if a.status == http.StatusConflict {
			return a.status, a.object()["result"].(object)["status"]
		}
		return a.status, a.object()["status"]
	}
	for _, no := range []struct {
		who    string
		body   object
		status string
	}{
		{"bob", object{"type": "PERMISSION_RESPONSE", "permissionId": "unknown", "sourceName": "x", "approved": true}, "notFound"},
		{"bob", object{"type": "CLARIFICATION_RESPONSE", "requestId": asked.ID, "sourceName": "x", "question": "", "answer": "yes"}, "responseTypeMismatch"},
		{"ada", yes, "targetMismatch"}, // an identity cannot answer its own request
	} {
		status, result := respond(no.who, no.body)
		c.Equal(status, http.StatusConflict)
		c.Equal(result, any(no.status))
	}
	c.Equal(r.as("reader", "POST", agent+"/responses", yes).status, http.StatusForbidden)
	status, result := respond("bob", yes)
	c.Equal(status, http.StatusOK)
	c.Equal(result, any("accepted"))
	resolved := watching.until("AGENT_REQUEST_RESOLVED")
	c.Equal(resolved[len(resolved)-1]["responseEventType"], any("PERMISSION_RESPONSE"))
	status, result = respond("bob", yes)
	c.Equal(status, http.StatusConflict)
	c.Equal(result, any("alreadyResolved"))
	answered, err := r.hub.Request(t.Context(), asked.ID)
	c.NoError(err)
	c.Equal(answered.Answer.Choice, "approve_once") // the choice by which that dialect offers approval
	c.Equal(answered.Answer.By.Agent, r.ids["bob"])

	// With other choices it is a question; an answer that is none of them is
	// refused.
	asked = r.ask(ch, "ada", func(q *hub.Request) {
		q.Kind, q.Action, q.Choices = request.Clarification, nil, []request.Choice{{ID: "n", Label: "North pier"}, {ID: "s", Label: "South pier"}}
	})
	question := watching.until("CLARIFICATION_REQUEST")
	c.Equal(question[len(question)-1]["question"], any("May the crane be used?\nIt is windy."))
	c.Equal(question[len(question)-1]["options"], any([]any{"North pier", "South pier"}))
	say := func(text string) object {
		return object{"type": "CLARIFICATION_RESPONSE", "requestId": asked.ID, "sourceName": "ada", "question": "", "answer": text}
	}
	_, result = respond("operator", say("East pier"))
	c.Equal(result, any("responseTypeMismatch"))
	status, _ = respond("operator", say("south PIER"))
	c.Equal(status, http.StatusOK)
	answered, err = r.hub.Request(t.Context(), asked.ID)
	c.NoError(err)
	c.Equal(answered.Answer.Choice, "s")

	// A request to another identity is not shown.
	hidden := r.ask(ch, "ada", func(q *hub.Request) { q.For = r.ids["ada"] })
	c.Equal(len(r.as("bob", "GET", agent+"/requests", nil).list()), 0)
	c.Equal(len(r.as("operator", "GET", agent+"/requests", nil).list()), 1)
	yes["permissionId"] = hidden.ID
	_, result = respond("bob", yes)
	c.Equal(result, any("notFound"))
	agent = "/agents/any/sessions/" + r.open("conversation", "", "ada", "bob") + "/branches/main"
	_, result = respond("operator", yes)
	c.Equal(result, any("notFound")) // it is in another channel
}

func TestForeignSocket(t *testing.T) {
	t.Parallel()
	r := newAway(t)
	c := &spec.T{T: t}
	ch := r.open("discussion", "", "ada", "bob")
	dial := func(who string) *socket {
		d := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Who": {who}}}
		conn, _, _, err := d.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd/agents/any/sessions/"+ch+"/branches/main/ws")
		c.NoError(err)
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(wait))
		return &socket{c, conn}
	}
	text := func(text string) object { return object{"type": "USER_TEXT_INPUT", "text": text} }

	ada := dial("ada")
	ada.send(text("When is high tide?"))
	c.Equal(types(ada.until("MESSAGE_TURN_STARTED")), []string{"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED"})
	r.text(ch, "bob", "At five.")
	c.Equal(spoken(ada.until("BRANCH_RUN_COMPLETED")), []string{"bob/assistant: At five."})

	asked := r.ask(ch, "bob", nil)
	ada.until("PERMISSION_REQUEST")
	ada.send(object{"type": "PERMISSION_RESPONSE", "permissionId": "unknown", "sourceName": "x", "approved": true}) // the socket stays
	ada.send(object{"type": "PERMISSION_RESPONSE", "permissionId": asked.ID, "sourceName": "bob", "approved": false, "reason": "too windy"})
	ada.until("AGENT_REQUEST_RESOLVED")
	answered, err := r.hub.Request(t.Context(), asked.ID)
	c.NoError(err)
	c.Equal(answered.Answer.Choice, "deny")
	c.Equal(answered.Answer.Note, "too windy")

	bob := dial("bob")
	bob.send(text("me first"))
	bob.closesWith(1008, "OutOfTurn")
	bob = dial("bob")
	bob.send(object{"type": "INTERRUPTION_REQUEST", "reason": "stop", "source": "User"})
	bob.closesWith(1008, "BranchRunNotActive")
	watching := dial("reader")
	watching.send(text("hello"))
	watching.closesWith(1008, "access_denied")
	if _, err := r.hub.CloseChannel(t.Context(), ch, "enough"); err != nil {
		t.Fatal(err)
	}
	ada.send(text("more"))
	ada.closesWith(1008, "channel_ended")
}
