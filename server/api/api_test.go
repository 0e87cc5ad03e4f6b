package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// site is a hub behind its interface.
type site struct {
	t    testing.TB
	hub  *hub.Hub
	v1   http.Handler
	http *httptest.Server
}

func newSite(t testing.TB, change ...func(*api.Config)) *site {
	t.Helper()
	return newSiteOn(t, hub.Options{}, change...)
}

func newSiteOn(t testing.TB, o hub.Options, change ...func(*api.Config)) *site {
	t.Helper()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOf(t, engine, o, change...)
}

func newSiteOf(t testing.TB, engine journal.Engine, o hub.Options, change ...func(*api.Config)) *site {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	o.Log = quiet
	if o.Adapters == nil {
		o.Adapters = adapter.All()
	}
	o.Limits.Inbox = 1 << 30 // see unbounded
	h, err := hub.Open(t.Context(), engine, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, hub: h}
	cfg := api.Config{Hub: h, Version: "test", Log: quiet}
	for _, fn := range change {
		fn(&cfg)
	}
	v1 := api.New(cfg)
	s.v1 = v1
	// The guard is tested where it lives; here the header says who asks.
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role, name, _ := strings.Cut(r.Header.Get("As"), ":")
		p := access.Principal{Role: access.Role(role), Agent: name, Key: r.Header.Get("Key")}
		v1.ServeHTTP(w, r.WithContext(access.With(r.Context(), p)))
	}))
	s.http.Listener = narrow{s.http.Listener}
	s.http.Start()
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
		h.Close()
		_ = engine.Close()
	})
	return s
}

const operator = "operator"

// agent registers an identity that acks invitations.
func (s *site) agent(name string) string {
	s.t.Helper()
	p, err := s.hub.Register(s.t.Context(), hub.Registration{
		Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.hub.Bind(p.ID(), acker{s.hub}); err != nil {
		s.t.Fatal(err)
	}
	return p.ID()
}

type acker struct{ h *hub.Hub }

func (acker) ID() string { return "acker" }
func (a acker) Deliver(n *hub.Notice) error {
	if n.Envelope.Type == envelope.TypeInvite {
		a.h.Admit(context.Background(), &envelope.Envelope{
			Channel: n.Envelope.Channel, Sender: n.Recipient, Type: envelope.TypeInviteAck, Data: []byte(`{}`),
		}, nil)
	}
	return nil
}
func (a acker) Replay(_ context.Context, n *hub.Notice) error { return a.Deliver(n) }

// CutOff never happens: it queues nothing.
func (acker) CutOff(error) {}

// ask makes a request and decodes the answer.
func (s *site) ask(as, method, path, body string) (int, map[string]any) {
	s.t.Helper()
	resp := s.do(as, method, path, body)
	defer resp.Body.Close()
	var answer map[string]any
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &answer); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
	return resp.StatusCode, answer
}

// unbounded lets someone fall behind for ever.
func (s *site) unbounded(name string) {
	s.t.Helper()
	p, err := s.hub.Agent(name)
	if err != nil {
		s.t.Fatal(err)
	}
	rule := *p.Rule
	rule.Limits.Inbox.MaxPending = 0
	if err := s.hub.SetRule(s.t.Context(), p.ID(), &rule); err != nil {
		s.t.Fatal(err)
	}
}

func readAll(t testing.TB, resp *http.Response) []byte {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s *site) do(as, method, path, body string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	as, key, _ := strings.Cut(as, " ") // a key may follow the role
	req.Header.Set("As", as)
	req.Header.Set("Key", key)
	resp, err := s.http.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

// open opens a channel as an operator.
func (s *site) open(kind, creator string, others ...string) string {
	s.t.Helper()
	list, _ := json.Marshal(others)
	status, ch := s.ask(operator, "POST", "/v1/channels", fmt.Sprintf(`{"creator":%q,"type":%q,"participants":%s,"labels":{"team":"red"}}`, creator, kind, list))
	if status != http.StatusCreated {
		s.t.Fatalf("%d %v", status, ch)
	}
	return ch["channel_id"].(string)
}

func (s *site) say(as, ch, sender, text string) (int, map[string]any) {
	s.t.Helper()
	return s.ask(as, "POST", "/v1/channels/"+ch+"/events", fmt.Sprintf(`{"sender":%q,"text":%q}`, sender, text))
}

func TestChannels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice, _ := s.agent("alice"), s.agent("bob")
	s.agent("carol")
	ch := s.open("discussion", "alice", "bob")
	other := s.open("conversation", "bob", "carol")

	status, shown := s.ask(operator, "GET", "/v1/channels/"+ch, "")
	if status != http.StatusOK || shown["state"] != "active" || shown["expected_next_speaker"] != alice || shown["length"] != 3.0 {
		t.Errorf("show: %d %v", status, shown)
	}
	for path, want := range map[string][]string{
		"/v1/channels":                        {ch, other},
		"/v1/channels?newest":                 {other, ch},
		"/v1/channels?limit=1":                {ch},
		"/v1/channels?after=" + ch:            {other},
		"/v1/channels?agent=carol":            {other},
		"/v1/channels?type=discussion":        {ch},
		"/v1/channels?state=closed":           {},
		"/v1/channels?label=team=red":         {ch, other},
		"/v1/channels?label=team=blue":        {},
		"/v1/channels?agent=bob&state=active": {ch, other},
	} {
		status, page := s.ask(operator, "GET", path, "")
		got := []string{}
		for _, m := range page["channels"].([]any) {
			got = append(got, m.(map[string]any)["channel_id"].(string))
		}
		if status != http.StatusOK || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, want %v", path, status, got, want)
		}
	}
	status, closed := s.ask(operator, "POST", "/v1/channels/"+ch+"/close", `{"reason":"done"}`)
	if status != http.StatusOK || closed["state"] != "closed" || closed["close_reason"] != "done" {
		t.Errorf("close: %d %v", status, closed)
	}
	if status, _ := s.ask(operator, "DELETE", "/v1/channels/"+ch, ""); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	if status, p := s.ask(operator, "GET", "/v1/channels/"+ch, ""); status != http.StatusNotFound || p["code"] != "not_found" {
		t.Errorf("deleted: %d %v", status, p)
	}
}

func TestSending(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("discussion", "alice", "bob")
	status, p := s.say(operator, ch, "bob", "me first")
	if status != http.StatusConflict || !strings.HasSuffix(fmt.Sprint(p["detail"]), "turn of 'alice'") {
		t.Errorf("out of turn: %d %v", status, p)
	}
	status, sent := s.say("agent:alice", ch, "", "hello")
	if status != http.StatusCreated || sent["envelope_id"] == "" {
		t.Errorf("%d %v", status, sent)
	}
	for name, tc := range map[string]struct {
		as, body string
		want     int
		code     string
	}{
		"for another":        {"agent:alice", `{"sender":"bob","text":"x"}`, http.StatusForbidden, "access_denied"},
		"a reader":           {"reader", `{"sender":"bob","text":"x"}`, http.StatusForbidden, "access_denied"},
		"nobody":             {"", `{"sender":"bob","text":"x"}`, http.StatusUnauthorized, "auth_failed"},
		"an unknown sender":  {operator, `{"sender":"ghost","text":"x"}`, http.StatusNotFound, "not_found"},
		"an unknown key":     {operator, `{"sender":"bob","txt":"x"}`, http.StatusBadRequest, "invalid"},
		"text and data":      {operator, `{"sender":"bob","text":"x","event_type":"y"}`, http.StatusBadRequest, "invalid"},
		"data of wrong kind": {operator, `{"sender":"bob","event_type":"y","event_data":[1]}`, http.StatusBadRequest, "invalid"},
		"not JSON":           {operator, `{`, http.StatusBadRequest, "invalid"},
		"too large":          {operator, `{"sender":"bob","text":"` + strings.Repeat("x", 3<<20) + `"}`, http.StatusRequestEntityTooLarge, "too_large"},
	} {
		status, p := s.ask(tc.as, "POST", "/v1/channels/"+ch+"/events", tc.body)
		if status != tc.want || p["code"] != tc.code {
			t.Errorf("%s: %d %v", name, status, p)
		}
	}
	body := `{"sender":"bob","text":"once","idempotency_key":"k"}`
	_, first := s.ask(operator, "POST", "/v1/channels/"+ch+"/events", body)
	_, again := s.ask(operator, "POST", "/v1/channels/"+ch+"/events", body)
	if first["envelope_id"] != again["envelope_id"] {
		t.Errorf("%v, then %v", first, again)
	}
}

func TestReadingEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	bob := s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	s.say(operator, ch, "alice", "one")
	s.say(operator, ch, "bob", "two")
	status, page := s.ask(operator, "GET", "/v1/channels/"+ch+"/events?limit=4", "")
	events := page["events"].([]any)
	if status != http.StatusOK || len(events) != 4 || page["more"] != true {
		t.Fatalf("%d %v", status, page)
	}
	last := events[3].(map[string]any)
	if last["sequence"] != 4.0 || last["event_data"].(map[string]any)["text"] != "one" || !strings.HasSuffix(last["created_at"].(string), "Z") {
		t.Errorf("%v", last)
	}
	_, rest := s.ask(operator, "GET", fmt.Sprintf("/v1/channels/%s/events?after=%s", ch, page["next"]), "")
	events = rest["events"].([]any)
	if len(events) != 1 || rest["more"] != false || events[0].(map[string]any)["sender_id"] != bob {
		t.Errorf("%v", rest)
	}
	if status, p := s.ask(operator, "GET", "/v1/channels/"+ch+"/events?after=9.9.9", ""); status != http.StatusGone || p["code"] != "gap" {
		t.Errorf("a foreign position: %d %v", status, p)
	}
	if status, p := s.ask(operator, "GET", "/v1/channels/"+ch+"/events?after=x", ""); status != http.StatusBadRequest {
		t.Errorf("no position: %d %v", status, p)
	}
	_, wide := s.ask(operator, "GET", "/v1/events?limit=1000", "")
	if n := len(wide["events"].([]any)); n != 5 {
		t.Errorf("everything: %d events", n)
	}
}
