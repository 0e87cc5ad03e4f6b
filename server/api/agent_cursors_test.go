package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/parley-hub/parley/envelope"
)

// Every reader of an identity has a cursor of its own in each channel.
func TestCursorsOfReaders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob := s.agent("alice"), s.agent("bob")
	first, second := s.open("conversation", "alice", "bob"), s.open("conversation", "alice", "bob")
	sent, err := s.hub.Post(t.Context(), &envelope.Envelope{Channel: first, Sender: alice, Type: envelope.TypeText, Data: []byte(`{"text":"hello"}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.hub.Ack(t.Context(), bob, first, sent); err != nil {
		t.Fatal(err)
	}
	if err := s.hub.AckReader(t.Context(), bob, "desk", first, sent); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`[{"channel_id":%q,"readers":[{"envelope_id":null,"reader":""}]},`+
		`{"channel_id":%q,"readers":[{"envelope_id":%q,"reader":""},{"envelope_id":%q,"reader":"desk"}]}]`, second, first, sent, sent)
	_, page := s.ask(operator, "GET", "/v1/agents/bob/cursors", "")
	if got, _ := json.Marshal(page["channels"]); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, page = s.ask("agent:bob", "GET", "/v1/agents/bob/cursors?limit=1", "")
	_, rest := s.ask("agent:bob", "GET", fmt.Sprintf("/v1/agents/bob/cursors?after=%s", page["next"]), "")
	if list, _ := rest["channels"].([]any); len(list) != 1 {
		t.Errorf("the second page has %v", rest)
	}
	_, back := s.ask("agent:bob", "GET", fmt.Sprintf("/v1/agents/bob/cursors?limit=1&before=%s", rest["prev"]), "")
	if got, want := fmt.Sprint(back["channels"]), fmt.Sprint(page["channels"]); got != want || back["prev"] != "" {
		t.Errorf("back from the second page: %v", back)
	}
	_, page = s.ask(operator, "GET", "/v1/agents/bob/cursors?channel="+first, "")
	want = fmt.Sprintf(`[{"channel_id":%q,"readers":[{"envelope_id":%q,"reader":""},{"envelope_id":%q,"reader":"desk"}]}]`, first, sent, sent)
	if got, _ := json.Marshal(page["channels"]); string(got) != want {
		t.Errorf("of one channel: got  %s\nwant %s", got, want)
	}
	if status, _ := s.ask(operator, "GET", "/v1/agents/bob/cursors?channel=nothing", ""); status != http.StatusNotFound {
		t.Errorf("of a channel that is none: %d", status)
	}
	if status, _ := s.ask("agent:alice", "GET", "/v1/agents/bob/cursors", ""); status != http.StatusForbidden {
		t.Errorf("another agent is answered %d", status)
	}
}
