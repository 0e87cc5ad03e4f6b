package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages are those a participant may see, and only its own key, or one that
// sees all, may look through its eyes.
func TestMessagesAreWhatTheParticipantSees(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, bob := s.agent("alice"), s.agent("bob")
	s.agent("carol")
	s.agent("eve")
	_, ch := s.ask(operator, "POST", "/v1/channels", `{"creator":"alice","type":"discussion","participants":["bob","carol"]}`)
	at := "/v1/channels/" + ch["channel_id"].(string)
	for _, body := range []string{
		`{"sender":"alice","text":"to all"}`,
		`{"sender":"bob","text":"to alice","audience":["alice"]}`,
	} {
		if status, answer := s.ask(operator, "POST", at+"/events", body); status != http.StatusCreated {
			t.Fatalf("%s: %d %v", body, status, answer)
		}
	}
	shown := func(as, who string) []string {
		t.Helper()
		path := at + "/messages"
		if who != "" {
			path += "?as=" + who
		}
		status, answer := s.ask(as, "GET", path, "")
		if status != http.StatusOK {
			return []string{fmt.Sprint(status, " ", answer["detail"])}
		}
		list := []string{answer["as"].(string)}
		for _, item := range answer["messages"].([]any) {
			m := item.(map[string]any)
			metadata := m["metadata"].(map[string]any)
			list = append(list, fmt.Sprint(m["schema"], " ", m["type"], " ", m["role"], " ", metadata["name"], ": ", m["content"]))
		}
		return list
	}
	const text = "agents-api.message text "
	asAlice := []string{alice, text + "assistant alice: to all", text + "user bob: to alice"}
	for _, c := range []struct {
		as, who string
		want    []string
	}{
		{operator, "", asAlice}, // who opened the channel
		{operator, "alice", asAlice},
		{operator, "bob", []string{bob, text + "user alice: to all", text + "assistant bob: to alice"}},
		{operator, "carol", []string{"", text + "user alice: to all"}},
		{"agent:alice", "", asAlice},
		{"agent:carol", "carol", []string{"", text + "user alice: to all"}},
	} {
		got := shown(c.as, c.who)
		if c.want[0] == "" {
			got[0] = "" // carol's id
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s as %q: %s", c.as, c.who, diff)
		}
	}
	for who, want := range map[string]string{
		operator + " eve":    "403 'eve' takes no part in channel",
		"agent:carol bob":    "403 ",
		operator + " nobody": "404 ",
	} {
		as, name, _ := strings.Cut(who, " ")
		if got := shown(as, name); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: got %q, want %q", who, got, want)
		}
	}
	if status, _ := s.ask(operator, "GET", "/v1/channels/none/messages", ""); status != http.StatusNotFound {
		t.Errorf("an unknown channel: %d", status)
	}
}
