package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// Parameters that are not well formed are refused, not left out in silence.
func TestMalformedParameters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for _, path := range []string{
		"/v1/channels", "/v1/channels/" + ch, "/v1/channels/" + ch + "/events", "/v1/channels/" + ch + "/messages", "/v1/events", "/v1/events?follow",
		"/v1/agents", "/v1/agents/alice", "/v1/tasks", "/v1/audit", "/v1/health", "/v1/openapi.json",
	} {
		for _, query := range []string{"label=%zz", "label=team=red;after=x", "%"} {
			s.refused(path, query, "the parameters of the address are not well formed: ")
		}
	}
}

// Labels that are asked for must all be there; no channel has two of one key.
func TestSeveralLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	for _, labels := range []string{`{"a":"1","b":"1"}`, `{"a":"2"}`} {
		s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"conversation","participants":["bob"],"labels":`+labels+`}`)
	}
	for query, want := range map[string]int{
		"label=a=1": 1, "label=a=2": 1, "label=a=1&label=b=1": 1, "label=a=1&label=a=1": 1,
		"label=a=1&label=a=2": 0, "label=a=2&label=a=1": 0, "label=a=2&label=b=1": 0, "agent=alice&label=a=1&label=a=2": 0,
	} {
		if _, page := s.ask(operator, "GET", "/v1/channels?"+query, ""); len(page["channels"].([]any)) != want {
			t.Errorf("channels with %s: %v", query, page)
		}
		if strings.Contains(query, "agent") {
			continue
		}
		if _, page := s.ask(operator, "GET", "/v1/events?"+query, ""); len(page["events"].([]any)) != 3*want {
			t.Errorf("events with %s: %v", query, page)
		}
	}
}

// Whose turn it is stands only in refusals that come of turns.
func TestOnlyRefusalsOfTurnsNameOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("eve")
	ch := s.open("discussion", "alice", "eve")
	at := "/v1/channels/" + ch + "/events"
	for _, key := range []string{"k", "discussion expects "} {
		if status, p := s.ask(operator, "POST", at, fmt.Sprintf(`{"sender":"alice","text":"one","idempotency_key":%q}`, key)); status != http.StatusCreated {
			t.Fatalf("%d %v", status, p)
		}
		status, p := s.ask(operator, "POST", at, fmt.Sprintf(`{"sender":"alice","text":"two","idempotency_key":%q}`, key))
		if want := fmt.Sprintf("idempotency key '%s' was used before with other content; choose a new one", key); status != http.StatusConflict || p["detail"] != want {
			t.Errorf("%d %v, want %s", status, p, want)
		}
		status, p = s.ask(operator, "POST", at, `{"sender":"alice","text":"again"}`)
		if details, _ := p["details"].(map[string]any); p["reason"] != "out_of_turn" || details["expected"] != "eve" {
			t.Errorf("no reason that code could decide by: %v", p)
		}
		if status != http.StatusConflict || p["detail"] != "discussion expects 'eve' to speak, not 'alice'; it is the turn of 'eve'" {
			t.Errorf("out of turn: %d %v", status, p)
		}
		s.say(operator, ch, "eve", "my turn")
	}
	s.ask(operator, "POST", "/v1/channels/"+ch+"/close", "")
	if status, p := s.say(operator, ch, "eve", "late"); status != http.StatusConflict || strings.Contains(p["detail"].(string), "turn of") {
		t.Errorf("in a closed channel: %d %v", status, p)
	}
}

// What an agent that is gone has left is found by its id, but not by the name
// that it had; an agent's own key still sees only what concerns it.
func TestWhatTheRemovedLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob := s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	if err := s.hub.ObserveTask(t.Context(), task.Task{ID: "scan", Owner: bob, Channel: ch}, nil, hub.MirrorOff); err != nil {
		t.Fatal(err)
	}
	s.say(operator, ch, "bob", "farewell")
	if status, p := s.ask(operator, "DELETE", "/v1/agents/bob", ""); status != http.StatusNoContent {
		t.Fatalf("%d %v", status, p)
	}
	for path, want := range map[string]string{
		"/v1/channels?agent=": ch, "/v1/tasks?owner=": "scan", "/v1/events?as=": "farewell", "/v1/channels/" + ch + "/events?as=": "farewell",
		"/v1/channels/" + ch + "/views/full_transcript?as=": `"assistant"`, "/v1/channels/" + ch + "/messages?as=": `"assistant"`, "/v1/audit?agent=": "agent_unregistered",
	} {
		for _, as := range []string{operator, "reader"} {
			resp := s.do(as, "GET", path+bob, "")
			if raw := string(readAll(t, resp)); resp.StatusCode != http.StatusOK || !strings.Contains(raw, want) {
				t.Errorf("%s %s: %s %s, want %s", as, path, resp.Status, raw, want)
			}
		}
		for _, name := range []string{"bob", strings.ToUpper(bob), bob[1:], bob + "0"} {
			status, p := s.ask(operator, "GET", path+name, "")
			if want := "agent '" + name + "' not found: nobody is registered under that name or id"; status != http.StatusNotFound || p["detail"] != want {
				t.Errorf("%s%s: %d %v, want %s", path, name, status, p, want)
			}
		}
		if status, p := s.ask("agent:alice", "GET", path+bob, ""); status != http.StatusForbidden && !strings.HasPrefix(path, "/v1/tasks") {
			t.Errorf("alice asks for %s: %d %v", path, status, p)
		}
	}
}

// A gap tells where to start again in a field of its own.
func TestGapsTellWhereToStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	for _, path := range []string{"/v1/channels/" + ch + "/events", "/v1/events"} {
		_, page := s.ask(operator, "GET", path, "")
		status, p := s.ask(operator, "GET", path+"?after=9.9.9", "")
		if status != http.StatusGone || p["code"] != "gap" || p["position"] != page["next"] {
			t.Errorf("%s: %d %v, want %v", path, status, p, page["next"])
		}
		status, rest := s.ask(operator, "GET", fmt.Sprintf("%s?after=%v", path, p["position"]), "")
		if status != http.StatusOK || len(rest["events"].([]any)) != 0 || rest["more"] != false {
			t.Errorf("%s, started again: %d %v", path, status, rest)
		}
	}
	if _, p := s.ask(operator, "GET", "/v1/channels/none", ""); p["position"] != nil || p["reason"] != "no_channel" {
		t.Errorf("what is no gap has a place, or no reason: %v", p)
	}
}

// What is missing, null or empty is taken as the document says.
func TestMissingAndNull(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	for body, want := range map[string]string{
		`{"creator":"alice","participants":["bob"]}`:                                       "400 type is missing: name the kind of channel, such as conversation",
		`{"creator":"alice","type":"conversation"}`:                                        "400 participants is missing: list who takes part besides the creator, by name or id",
		`{"creator":"alice","type":"gossip","participants":["bob"]}`:                       `404 no adapter is loaded for "gossip" version 1; there are`,
		`{"creator":"alice","type":"conversation","participants":["carol"]}`:               "404 agent 'carol' not found: nobody is registered under that name or id",
		`{"creator":"alice","type":"conversation","participants":["bob"],"knobs":[]}`:      "400 knobs is not a JSON object",
		`{"creator":"alice","type":"conversation","participants":["bob"],"knobs":null}`:    "201 ",
		`{"creator":"alice","type":"conversation","participants":["bob"],"ttl":null}`:      "201 ",
		`{"creator":"alice","type":"conversation","participants":["bob"],"labels":null}`:   "201 ",
		`{"creator":"alice","type":"conversation","participants":["bob"],"version":null}`:  "201 ",
		`{"creator":"alice","type":"conversation","participants":["bob"],"intent":null }`:  "201 ",
		`{"creator":"alice","type":"conversation","participants":["bob"],"knobs": {} }   `: "201 ",
	} {
		status, p := s.ask(operator, "POST", "/v1/channels", body)
		detail, _ := p["detail"].(string)
		if got := fmt.Sprint(status, " ", detail); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	ch := s.open("conversation", "alice", "bob")
	for body, want := range map[string]int{
		`{"sender":"alice","text":"x","event_data":null}`: 201, `{"sender":"alice","event_type":"my.own","event_data":null}`: 201,
		`{"sender":"alice","event_type":"my.own","event_data":[]}`: 400,
	} {
		if status, p := s.ask(operator, "POST", "/v1/channels/"+ch+"/events", body); status != want {
			t.Errorf("%s: %d %v", body, status, p)
		}
	}
	// A body that is announced, and then empty.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+"/v1/channels/"+ch+"/close", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("As", operator)
	req.Body, req.ContentLength, req.TransferEncoding = http.MaxBytesReader(nil, http.NoBody, 1), -1, []string{"chunked"}
	resp, err := s.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if raw := readAll(t, resp); resp.StatusCode != http.StatusOK {
		t.Errorf("an empty chunked body: %s %s", resp.Status, raw)
	}
	if status, p := s.ask(operator, "POST", "/v1/channels/"+ch+"/close", `[]`); status != http.StatusBadRequest {
		t.Errorf("a list: %d %v", status, p)
	}
}

// Refusals name people, whatever the adapter knows them by, and say which field
// is missing.
func TestRefusalsNamePeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"alice", "bob", "hana"} {
		s.agent(name)
	}
	ch := s.open("conversation", "alice", "bob")
	_, p := s.say(operator, ch, "hana", "hello")
	if detail := fmt.Sprint(p["detail"]); !strings.Contains(detail, "'hana' is not a participant") || p["code"] != "access_denied" {
		t.Errorf("somebody else speaks: %v", p)
	}
	_, p = s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"consulting","participants":["bob","hana"]}`)
	if detail := fmt.Sprint(p["detail"]); !strings.Contains(detail, "exactly one respondent besides the initiator; 3 participants were given") {
		t.Errorf("too many take part: %v", p)
	}
	for field, asked := range map[string]struct{ path, body string }{
		"creator": {"/v1/channels", `{"type":"conversation","participants":["bob"]}`},
		"sender":  {"/v1/channels/" + ch + "/events", `{"text":"hi"}`},
	} {
		status, p := s.ask(operator, "POST", asked.path, asked.body)
		if want := "in the field " + field + " (--as NAME of a command)"; status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(p["detail"]), want) {
			t.Errorf("%s is missing: %d %v", field, status, p)
		}
	}
}

// A graph and its supervisors name people; the channel has their ids.
func TestKnobsNamePeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob := s.agent("alice"), s.agent("bob")
	status, ch := s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"workflow","participants":["bob"],"knobs":{"note":1.50,"supervisors":["alice"],
		"graph":{"initial_speaker":"bob","transitions":[{"when":{"name":"from_speaker","args":{"agent_id":"bob"}},"then":{"name":"agent","args":{"agent_id":"`+alice+`"}}}]}}}`)
	if status != http.StatusCreated || ch["expected_next_speaker"] != bob {
		t.Fatalf("%d %v", status, ch)
	}
	knobs := fmt.Sprint(ch["knobs"])
	if strings.Contains(knobs, "[bob]") || strings.Contains(knobs, "[alice]") || !strings.Contains(knobs, "agent_id:"+bob) || !strings.Contains(knobs, "supervisors:["+alice+"]") {
		t.Errorf("the knobs are %v", knobs)
	}
	if names := fmt.Sprint(ch["names"]); !strings.Contains(names, bob+":bob") {
		t.Errorf("the answer says both: %v", names)
	}
	_, p := s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"workflow","participants":["bob"],"knobs":{"graph":{"initial_speaker":"nobody"}}}`)
	if !strings.Contains(fmt.Sprint(p["detail"]), "initial_speaker 'nobody' is not in participants") {
		t.Errorf("nobody begins: %v", p)
	}
}
