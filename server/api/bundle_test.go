package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/api"
)

// download reads an answer as text.
func (s *site) download(as, path string) (int, string) {
	resp := s.do(as, "GET", path, "")
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(data)
}

// A bundle has everything, so it is not for those who see a part; what is imported
// of one that is not whole goes again.
func TestBundles(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Import = 64 << 10 })
	for _, name := range []string{"alice", "bob", "carol"} {
		s.agent(name)
	}
	ch := s.open("discussion", "alice", "bob", "carol")
	s.tell(ch, "alice", "hello")
	if status, body := s.ask(operator, "POST", "/v1/channels/"+ch+"/events", `{"sender":"bob","event_type":"app.note","event_data":{"secret":"whisper"},"audience":["alice"]}`); status != http.StatusCreated {
		t.Fatalf("%d %v", status, body)
	}
	path := "/v1/channels/" + ch + "/export?form=bundle"
	status, bundle := s.download(operator, path)
	if status != http.StatusOK || !strings.HasPrefix(bundle, `{"parley_bundle":1,`) || !strings.Contains(bundle, "whisper") {
		t.Fatalf("%d: %s", status, bundle)
	}
	if status, text := s.download("reader", path); status != http.StatusOK || !strings.Contains(text, "whisper") {
		t.Errorf("a reader: %d %s", status, text)
	}
	if status, text := s.download("reader", path+"&home=true"); status != http.StatusForbidden || !strings.Contains(text, "an operator's key") {
		t.Errorf("a home for a reader: %d %s", status, text)
	}
	if status, text := s.download("agent:alice", path); status != http.StatusForbidden || !strings.Contains(text, "operator's or a reader's key") {
		t.Errorf("an agent: %d %s", status, text)
	}
	if status, text := s.download(operator, path+"&home=true"); status != http.StatusBadRequest || !strings.Contains(text, "is in no home") {
		t.Errorf("a home that is none: %d %s", status, text)
	}

	channels := func() int {
		list, _, err := s.hub.Channels(t.Context(), hub.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for _, as := range []string{"reader", "agent:alice", ""} {
		if status, body := s.ask(as, "POST", "/v1/import", bundle); status != http.StatusForbidden && status != http.StatusUnauthorized {
			t.Errorf("%q imported: %d %v", as, status, body)
		}
	}
	for name, bad := range map[string]string{
		"cut":       bundle[:len(bundle)-90],
		"changed":   strings.Replace(bundle, "whisper", "whimper", 1),
		"no bundle": "hello\n",
	} {
		if status, body := s.ask(operator, "POST", "/v1/import", bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", name, status, body)
		}
	}
	if n := channels(); n != 1 {
		t.Errorf("%d channels are left of broken bundles", n-1)
	}
	status, body := s.ask(operator, "POST", "/v1/import", bundle)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, body)
	}
	made := body["channels"].([]any)[0].(map[string]any)
	if made["imported_from"] != ch || channels() != 2 {
		t.Errorf("got %v", body)
	}
	_, again := s.download(operator, "/v1/channels/"+made["channel_id"].(string)+"/export?form=bundle")
	if !strings.Contains(again, `"close_reason":"imported"`) || strings.Count(again, "\n") != strings.Count(bundle, "\n") {
		t.Errorf("the copy's bundle: %s", again)
	}
}

// A bundle over limits.import is refused by that name.
func TestBundlesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Import = 4 << 10 })
	status, body := s.ask(operator, "POST", "/v1/import", `{"parley_bundle":1,"hub":"`+strings.Repeat("x", 8<<10)+`"}`+"\n")
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(body["detail"].(string), "limits.import") {
		t.Errorf("%d %v", status, body)
	}
}
