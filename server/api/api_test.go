package api_test

import (
	"bufio"
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
	o.Adapters, o.Log = adapter.All(), quiet
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

// frames reads server sent events one by one.
type frames struct {
	t    testing.TB
	body io.ReadCloser
	scan *bufio.Scanner
}

type frame struct{ id, name, data string }

func (s *site) follow(as, path string, header ...string) *frames {
	s.t.Helper()
	return s.followWith(s.http.Client(), as, path, header...)
}

func (s *site) followWith(client *http.Client, as, path string, header ...string) *frames {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("As", as)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 4<<20)
	return &frames{t: s.t, body: resp.Body, scan: scan}
}

func (f *frames) next() frame {
	f.t.Helper()
	got, ok := f.try()
	if !ok {
		f.t.Fatalf("the stream ended: %v", f.scan.Err())
	}
	return got
}

// try is next for a stream that may end.
func (f *frames) try() (got frame, ok bool) {
	for f.scan.Scan() {
		line := f.scan.Text()
		switch {
		case line == "" && got != (frame{}):
			return got, true
		case strings.HasPrefix(line, "id: "):
			got.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			got.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			got.data = line[6:]
		}
	}
	return frame{}, false
}

func TestFollowing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	f := s.follow(operator, "/v1/channels/"+ch+"/events")
	defer f.body.Close()
	for range 3 {
		if got := f.next(); got.name != "envelope" || !strings.Contains(got.data, "ag2.channel.") {
			t.Errorf("%+v", got)
		}
	}
	s.say(operator, ch, "alice", "live")
	got := f.next()
	if !strings.Contains(got.data, `"event_data":{"text":"live"}`) || !strings.Contains(got.data, `"position":"`+got.id+`"`) {
		t.Errorf("%+v", got)
	}
	s.say(operator, ch, "bob", "missed")
	again := s.follow(operator, "/v1/channels/"+ch+"/events", "Last-Event-ID", got.id)
	defer again.body.Close()
	if next := again.next(); !strings.Contains(next.data, "missed") {
		t.Errorf("resumed with %+v", next)
	}
	gap := s.follow(operator, "/v1/channels/"+ch+"/events?after=9.9.9")
	defer gap.body.Close()
	if first := gap.next(); first.name != "gap" || !strings.Contains(first.data, `"reason":"the epoch has changed"`) {
		t.Errorf("%+v", first)
	}
	s.say(operator, ch, "alice", "after the gap")
	if next := gap.next(); !strings.Contains(next.data, "after the gap") {
		t.Errorf("%+v", next)
	}
}

func TestFollowingEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("carol")
	one, two := s.open("conversation", "alice", "bob"), s.open("conversation", "bob", "carol")
	_, all := s.ask(operator, "GET", "/v1/events?limit=1000", "")
	f := s.follow("agent:carol", fmt.Sprintf("/v1/events?after=%s", all["next"]))
	defer f.body.Close()
	s.say(operator, one, "alice", "not for carol")
	s.say(operator, two, "bob", "for carol")
	if got := f.next(); !strings.Contains(got.data, `"for carol"`) {
		t.Errorf("carol follows %+v", got)
	}
}

func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	s.agent("eve")
	ch := s.open("conversation", "alice", "bob")
	for _, path := range []string{"/v1/channels/" + ch, "/v1/channels/" + ch + "/events", "/v1/channels/" + ch + "/views/full_transcript"} {
		for as, want := range map[string]int{
			operator: 200, "reader": 200, "agent:alice": 200, "agent:eve": 403, "agent:ghost": 403, "": 401,
		} {
			if status, p := s.ask(as, "GET", path, ""); status != want {
				t.Errorf("%q %s: %d %v, want %d", as, path, status, p, want)
			}
		}
	}
	for _, tc := range []struct{ method, path string }{
		{"DELETE", "/v1/channels/" + ch}, {"DELETE", "/v1/agents/eve"},
	} {
		for as, want := range map[string]int{"reader": 403, "agent:alice": 403, "": 401} {
			if status, _ := s.ask(as, tc.method, tc.path, ""); status != want {
				t.Errorf("%q %s %s: %d", as, tc.method, tc.path, status)
			}
		}
	}
	if _, page := s.ask("agent:eve", "GET", "/v1/channels", ""); len(page["channels"].([]any)) != 0 {
		t.Errorf("eve lists %v", page)
	}
	if status, _ := s.ask("agent:eve", "GET", "/v1/channels?agent=alice", ""); status != 403 {
		t.Errorf("eve asks for alice's: %d", status)
	}
}

func TestAgentsAuditHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	_, page := s.ask(operator, "GET", "/v1/agents?limit=1", "")
	list := page["agents"].([]any)
	if len(list) != 1 || page["next"] != alice || list[0].(map[string]any)["online"] != true {
		t.Errorf("%v", page)
	}
	_, shown := s.ask(operator, "GET", "/v1/agents/alice", "")
	if shown["passport"].(map[string]any)["agent_id"] != alice {
		t.Errorf("%v", shown)
	}
	ch := s.open("conversation", "alice", "bob")
	if status, _ := s.ask(operator, "DELETE", "/v1/agents/bob", ""); status != http.StatusNoContent {
		t.Errorf("remove: %d", status)
	}
	_, audit := s.ask(operator, "GET", "/v1/audit?channel="+ch, "")
	records := audit["records"].([]any)
	if len(records) != 1 || records[0].(map[string]any)["kind"] != "channel_created" {
		t.Errorf("%v", audit)
	}
	f := s.follow(operator, fmt.Sprintf("/v1/audit?kind=channel_closed&after=%s", audit["position"]))
	defer f.body.Close()
	s.ask(operator, "POST", "/v1/channels/"+ch+"/close", "")
	if got := f.next(); got.name != "audit" || !strings.Contains(got.data, `"reason":"explicit_close"`) {
		t.Errorf("%+v", got)
	}
	if status, health := s.ask(operator, "GET", "/v1/health", ""); status != 200 || health["version"] != "test" {
		t.Errorf("%d %v", status, health)
	}
}
