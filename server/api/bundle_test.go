package api_test

import (
	"bytes"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd"
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
	if status != http.StatusOK || !strings.HasPrefix(bundle, `{"parley_bundle":2,`) || !strings.Contains(bundle, "whisper") {
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

// The requests of a bundle are listed with the copy's channel, ended as they were, and
// with no other; nobody is asked again, on the hub that asked them or on another.
func TestRequestsOfABundleAreRead(t *testing.T) {
	t.Parallel()
	here, there := newSite(t), newSite(t)
	here.agent("alice")
	here.agent("bob")
	ch := here.open("conversation", "alice", "bob")
	ask := func() string {
		status, asked := here.ask(operator, "POST", "/v1/channels/"+ch+"/requests", strings.Replace(question, "{", `{"asked_by":"alice",`, 1))
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, asked)
		}
		return asked["request_id"].(string)
	}
	first, second := ask(), ask()
	if status, body := here.ask(operator, "POST", "/v1/requests/"+first+"/answer", `{"choice":"approve"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	_, bundle := here.download(operator, "/v1/channels/"+ch+"/export?form=bundle")
	for name, s := range map[string]*site{"here": here, "there": there} {
		_, before := s.ask(operator, "GET", "/v1/requests", "")
		status, body := s.ask(operator, "POST", "/v1/import", bundle)
		if status != http.StatusCreated {
			t.Fatalf("%s: %d %v", name, status, body)
		}
		made := body["channels"].([]any)[0].(map[string]any)["channel_id"].(string)
		_, page := s.ask(operator, "GET", "/v1/requests?channel="+made, "")
		list := page["requests"].([]any)
		if len(list) != 2 {
			t.Fatalf("%s: %v", name, page)
		}
		for n, want := range []map[string]any{{"request_id": first, "state": "answered"}, {"request_id": second, "state": "cancelled"}} {
			got := list[n].(map[string]any)
			if got["request_id"] != want["request_id"] || got["state"] != want["state"] || got["channel_id"] != made {
				t.Errorf("%s: got %v", name, got)
			}
		}
		if answer := list[0].(map[string]any)["answer"].(map[string]any); answer["choice"] != "approve" {
			t.Errorf("%s: got %v", name, answer)
		}
		if _, after := s.ask(operator, "GET", "/v1/requests", ""); !cmp.Equal(before["requests"], after["requests"]) {
			t.Errorf("%s: got %v, before %v", name, after["requests"], before["requests"])
		}
	}
	if status, body := there.ask(operator, "POST", "/v1/requests/"+second+"/answer", `{"choice":"approve"}`); status != http.StatusNotFound {
		t.Errorf("an imported request was answered: %d %v", status, body)
	}
}

// A bundle over limits.import is refused by that name.
func TestBundlesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Limits.Import = 4 << 10 })
	status, body := s.ask(operator, "POST", "/v1/import", `{"parley_bundle":2,"hub":"`+strings.Repeat("x", 8<<10)+`"}`+"\n")
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(body["detail"].(string), "limits.import") {
		t.Errorf("%d %v", status, body)
	}
}

// A session comes back whole: its branches, its metadata, and its content under the ids
// that its events name.
func TestASessionComesBackWhole(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, hub.Options{Adapters: []channel.Adapter{branch.New(branch.Options{})}})
	events, err := hpd.New(hpd.Config{Hub: s.hub, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Close() })
	call := func(method, path, kind, body string) {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		events.Mount().Routes[0].Handler.ServeHTTP(w, req)
		if w.Code >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	const inJSON = "application/json"
	call(http.MethodPost, "/hpd/sessions", inJSON, `{"sessionId":"s-1","metadata":{"case":"K-7"}}`)
	call(http.MethodPatch, "/hpd/sessions/s-1", inJSON, `{"metadata":{"case":"K-8","open":true}}`)
	call(http.MethodPatch, "/hpd/sessions/s-1/branches/main", inJSON, `{"name":"first","description":"the leak"}`)
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	if part, err := parts.CreateFormFile("file", "plan.txt"); err != nil {
		t.Fatal(err)
	} else if _, err := part.Write([]byte("close the valve")); err != nil {
		t.Fatal(err)
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	call(http.MethodPost, "/hpd/sessions/s-1/content", parts.FormDataContentType(), form.String())

	main, _, err := s.hub.Channels(t.Context(), hub.ListOptions{})
	if err != nil || len(main) != 1 {
		t.Fatalf("%d channels, %v", len(main), err)
	}
	// What a bundle says beside its first line and those that begin a channel.
	told := func(channelID string) (list []string) {
		_, bundle := s.download(operator, "/v1/channels/"+channelID+"/export?form=bundle&home=true")
		lines := strings.Split(strings.TrimSpace(bundle), "\n")
		for _, line := range lines[1 : len(lines)-1] {
			if !strings.HasPrefix(line, `{"channel":`) {
				list = append(list, line)
			}
		}
		return list
	}
	_, whole := s.download(operator, "/v1/channels/"+main[0].ID+"/export?form=bundle&home=true")
	status, body := s.ask(operator, "POST", "/v1/import", whole)
	if status != http.StatusCreated || body["contents"] != 1.0 {
		t.Fatalf("%d %v", status, body)
	}
	copied := body["channels"].([]any)[0].(map[string]any)["channel_id"].(string)
	want := told(main[0].ID)
	if diff := cmp.Diff(want, told(copied)); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"K-8", "the leak", `"name":"main:plan.txt"`, `{"piece":`} {
		if !strings.Contains(strings.Join(want, "\n"), part) {
			t.Errorf("the bundle has no %s: %s", part, want)
		}
	}
	if list, _, err := s.hub.Contents(t.Context(), hub.HomeOf(main[0].ID), hub.ContentPage{Limit: 2}); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	} else if info, from, err := s.hub.Content(t.Context(), hub.HomeOf(copied), list[0].ID); err != nil || !info.CreatedAt.Equal(list[0].CreatedAt) {
		t.Errorf("%+v, %v", info, err)
	} else {
		_ = from.Close()
	}
}
