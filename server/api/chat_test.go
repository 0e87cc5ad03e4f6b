package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	messages "github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/chat"
)

// chats lets a site run chats.
func chats(t testing.TB) func(*api.Config) {
	return func(cfg *api.Config) {
		h := cfg.Hub
		h.UseAdapter(transcript.New(transcript.Options{}))
		service := chat.New(chat.Config{Log: cfg.Log, Store: chat.NewStore(chat.StoreConfig{
			Hub: h, Writer: func(_ context.Context, o messages.Owner) (string, error) { return o.Key, nil },
		})})
		t.Cleanup(service.Close)
		cfg.Chat = service
		cfg.ChatUser = func(context.Context) (string, error) {
			p, err := h.Agent("user")
			if err != nil {
				return "", err
			}
			return p.ID(), nil
		}
	}
}

// echo answers every text of a conversation with itself.
type echo struct{ acker }

func (e echo) ID() string { return "echo" }
func (e echo) Deliver(n *hub.Notice) error {
	if n.Envelope.Type == envelope.TypeText {
		e.h.Admit(context.Background(), &envelope.Envelope{
			Channel: n.Envelope.Channel, Sender: n.Recipient, Type: envelope.TypeText, Data: n.Envelope.Data, Causation: n.Envelope.ID,
		}, nil)
	}
	return e.acker.Deliver(n)
}

func (s *site) echo(name string) {
	s.t.Helper()
	p, err := s.hub.Register(s.t.Context(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.hub.Bind(p.ID(), echo{acker{s.hub}}); err != nil {
		s.t.Fatal(err)
	}
}

// holdChats does everything that sessions are for.
func holdChats(c *contract, s *site) {
	c.t.Helper()
	s.echo("parrot")
	s.agent("user")
	var said struct {
		Session string `json:"session_id"`
	}
	answer := c.hold(s, operator, "POST", "/v1/chat", `{"agent":"parrot","message":"hello","run_id":"r1"}`)
	if err := json.Unmarshal(answer, &said); err != nil {
		c.t.Fatal(err)
	}
	at := "/v1/chat/sessions/" + said.Session
	c.hold(s, operator, "POST", "/v1/chat/sessions", `{"agent":"parrot","metadata":{"k":1}}`)
	c.hold(s, operator, "GET", "/v1/chat/sessions?limit=1&agent=parrot", "")
	c.hold(s, operator, "GET", "/v1/chat/sessions?after=nonsense", "")
	c.hold(s, operator, "GET", at, "")
	c.hold(s, operator, "PUT", at+"/title", `{"title":"Tides"}`)
	c.hold(s, operator, "PUT", at+"/title", `{"title":" "}`)
	c.hold(s, operator, "POST", "/v1/chat", `{"agent":"parrot","message":""}`)
	c.hold(s, operator, "POST", "/v1/chat", `{"agent":"nobody","message":"x"}`)
	followed := s.follow(operator, at+"/events")
	followed.next()
	c.seen["chatSessionEvents"] = true
	c.hold(s, operator, "DELETE", at, "")
	c.hold(s, operator, "GET", at, "")
}

// chatFrames reads events until one of a name, as "name" or "name@id".
func chatFrames(t *testing.T, resp *http.Response, until string) (names, ids []string) {
	t.Helper()
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	id := ""
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = text
		}
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names, ids = append(names, name), append(ids, id)
			id = ""
			if name == until {
				return names, ids
			}
		}
	}
	t.Fatalf("the stream ended after %v: %v", names, lines.Err())
	return nil, nil
}

func stream(t *testing.T, s *site, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("As", operator)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	return resp
}

// A run is streamed to its end, and from any place in it the rest is.
func TestChatStreamsResume(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.echo("parrot")
	s.agent("user")
	const body = `{"agent":"parrot","message":"hello"}`
	names, ids := chatFrames(t, stream(t, s, "POST", "/v1/chat", body, "Idempotency-Key", "k-1"), "ended")
	if got := strings.Join(names, " "); got != "started appended ended" {
		t.Fatalf("got %s", got)
	}
	for i, id := range ids[:len(ids)-1] {
		rest, _ := chatFrames(t, stream(t, s, "POST", "/v1/chat", body, "Idempotency-Key", "k-1", "Last-Event-ID", id), "ended")
		if got, want := strings.Join(rest, " "), strings.Join(names[i+1:], " "); got != want {
			t.Errorf("after %s: got %s, want %s", id, got, want)
		}
	}
	_, page := s.ask(operator, "GET", "/v1/chat/sessions", "")
	session := page["sessions"].([]any)[0].(map[string]any)["session_id"].(string)
	all, _ := chatFrames(t, stream(t, s, "GET", "/v1/chat/sessions/"+session+"/events", ""), "ended")
	if got := strings.Join(all, " "); got != "created started appended ended" {
		t.Errorf("the session streams %s", got)
	}
}

// A session is its owner's and operators'.
func TestWhoSeesASession(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.echo("parrot")
	s.agent("alice")
	s.agent("bob")
	status, answer := s.ask("agent:alice", "POST", "/v1/chat", `{"agent":"parrot","message":"mine"}`)
	if status != http.StatusOK || answer["reply"] != "mine" {
		t.Fatalf("%d %v", status, answer)
	}
	at := "/v1/chat/sessions/" + answer["session_id"].(string)
	for _, tc := range []struct {
		as, method, path, body string
		want                   int
	}{
		{"agent:alice", "GET", at, "", 200},
		{operator, "GET", at + "?as=bob", "", 200},
		{"agent:bob", "GET", at, "", 404},
		{"agent:bob", "GET", at + "/events", "", 404},
		{"agent:bob", "DELETE", at, "", 404},
		{"agent:bob", "PUT", at + "/title", `{"title":"x"}`, 404},
		{"agent:bob", "POST", "/v1/chat", `{"message":"x","session_id":"` + answer["session_id"].(string) + `"}`, 404},
		{"agent:bob", "POST", "/v1/chat", `{"as":"alice","agent":"parrot","message":"x"}`, 403},
		{"agent:bob", "GET", "/v1/chat/sessions?as=alice", "", 403},
		{"reader", "GET", at, "", 403},
		{"reader", "POST", "/v1/chat", `{"agent":"parrot","message":"x"}`, 403},
		{"", "GET", at, "", 401},
		{"", "POST", "/v1/chat", `{"agent":"parrot","message":"x"}`, 401},
		{"agent:alice", "POST", "/v1/chat", `{"agent":"parrot","message":"x","run_id":"a b"}`, 400},
		{"agent:alice", "POST", "/v1/chat", `{"agent":"parrot","mesage":"x"}`, 400},
		{"agent:alice", "DELETE", at, "", 200},
	} {
		if status, answer := s.ask(tc.as, tc.method, tc.path, tc.body); status != tc.want {
			t.Errorf("%q %s %s: %d %v", tc.as, tc.method, tc.path, status, answer)
		}
	}
}

// A session is called after its first words in the list of channels, and its
// download says who said what.
func TestASessionIsCalledAfterItsFirstWords(t *testing.T) {
	t.Parallel()
	s := newSite(t, chats(t))
	s.echo("parrot")
	s.agent("user")
	if status, answer := s.ask(operator, "POST", "/v1/chat", `{"agent":"parrot","message":"When is\nhigh tide?"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	_, page := s.ids(operator, "form=row&type=transcript")
	row := page["channels"].([]any)[0].(map[string]any)
	if row["title"] != "When is high tide?" {
		t.Errorf("the row is called %q", row["title"])
	}
	resp := stream(t, s, "GET", "/v1/channels/"+row["channel_id"].(string)+"/export?form=markdown", "")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# When is high tide?\n", "\n## user\n", "\n## parrot\n", "> When is\n> high tide?\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the download has no %q:\n%s", want, text)
		}
	}
}
