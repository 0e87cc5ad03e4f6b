package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// What is shown live reaches those who follow and nobody later; only members show
// something, for themselves.
func TestShowingLive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"alice", "bob", "carol"} {
		s.agent(name)
	}
	ch := s.open("discussion", "alice", "bob")
	f := s.follow(operator, "/v1/channels/"+ch+"/events?follow")
	show := func(as, body string) int {
		status, _ := s.ask(as, "POST", "/v1/channels/"+ch+"/live", body)
		return status
	}
	for as, body := range map[string]string{
		"agent:carol": `{"sender":"carol","event_data":{"text":"x"}}`,
		"agent:bob":   `{"sender":"alice","event_data":{"text":"x"}}`,
		"reader":      `{"sender":"alice","event_data":{"text":"x"}}`,
		operator:      `{"sender":"alice","event_type":"ag2.channel.closed","event_data":{}}`,
	} {
		if status := show(as, body); status < 400 || status >= 500 {
			t.Errorf("%s showed it: %d", as, status)
		}
	}
	if status := show("agent:bob", `{"sender":"bob","event_data":{"at":0,"text":"he"},"causation_id":"x"}`); status != http.StatusNoContent {
		t.Fatalf("got %d", status)
	}
	for {
		got := f.next()
		if got.name != "live" {
			continue
		}
		if !strings.Contains(got.data, `"event_type":"parley.msg.delta"`) || !strings.Contains(got.data, `"text":"he"`) {
			t.Errorf("got %+v", got)
		}
		break
	}
	if status, page := s.ask(operator, "GET", "/v1/channels/"+ch+"/events", ""); status != http.StatusOK || strings.Contains(strings.Join(typesOf(page), " "), "delta") {
		t.Errorf("it is stored: %v", page)
	}
}

func typesOf(page map[string]any) (types []string) {
	for _, e := range page["events"].([]any) {
		types = append(types, e.(map[string]any)["event_type"].(string))
	}
	return types
}
