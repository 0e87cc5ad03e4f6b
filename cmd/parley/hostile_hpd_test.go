package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// HPD's wire survives every hostile client. In a conversation the second client
// has a session in which the first, a producer, does its run.
func TestHostileClientsOfHPD(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, dialecttest.Door{
		Start: startHPDSite,
		Garbage: map[string][]byte{
			"no text":          []byte(`{}`),
			"unknown type":     []byte(`{"version":"1.0","type":"NO_SUCH"}`),
			"server's event":   []byte(`{"version":"1.0","type":"BRANCH_RUN_COMPLETED","runtimeRunId":"x","agentId":"y"}`),
			"newer version":    []byte(`{"version":"9.0","type":"USER_TEXT_INPUT","text":"x"}`),
			"too many at once": []byte(`{"version":"1.0","type":"USER_MESSAGES_INPUT","messages":[` + strings.Repeat(`{"role":"user","contents":[]},`, 1000) + `{}]}`),
		},
	})
}

func startHPDSite(t *testing.T, o dialecttest.Options) *dialecttest.Site {
	t.Helper()
	s := &site{t: t}
	door := startSite(s, o)
	door.Join = func(name, token string) (dialecttest.Client, error) { return s.joinHPD(name, token) }
	door.Stranger = func() (dialecttest.Client, error) {
		return &hpdWire{httpWire: newHTTPWire(s, "", "")}, nil
	}
	door.Meet = func(a, b dialecttest.Client) string {
		room, err := b.(*hpdWire).hire(a.(*hpdWire))
		if err != nil {
			t.Fatal(err)
		}
		return room
	}
	door.Asks = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*hpdWire).asks(http.MethodGet, hpdHistory(room), "")
	}
	door.Tells = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*hpdWire).asks(http.MethodPost, hpdPath(c.ID(), room, "/events"), hpdEvent([]byte(`{}`)))
	}
	door.Unread = func(c dialecttest.Client, room string) []dialecttest.Request {
		w := c.(*hpdWire)
		content, err := w.upload(room, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		return []dialecttest.Request{
			w.asks(http.MethodGet, hpdHistory(room), ""), w.asks(http.MethodGet, hpdPath(w.name, room, "/events/live")+"&after=0", ""),
			w.asks(http.MethodGet, content, ""),
		}
	}
	door.Tricks = append(tricks("/hpd/sessions/", "/branches/main/events"), tricks("/hpd/agents/", "/sessions/s/branches/main/runs")...)
	door.Tricks = append(door.Tricks, "/hpd/~/sessions", "/hpd/sessions/s/branches/..%2f..%2f/events", "/hpd/..%2fv1%2fkeys")
	return door
}

// hpdWire is a client of HPD, and a producer.
type hpdWire struct {
	*httpWire
	work chan string // runs that it was given
	desk net.Conn    // on which it is given them
}

func (s *site) joinHPD(name, token string) (*hpdWire, error) {
	w := &hpdWire{httpWire: newHTTPWire(s, name, token), work: make(chan string, 16)}
	var err error
	w.desk, err = w.follow("/hpd/agents/"+name+"/work", func(event string, data []byte) {
		var input struct{ RuntimeRunID string }
		if event == "input" && json.Unmarshal(data, &input) == nil {
			w.work <- input.RuntimeRunID
		}
	})
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// hire opens a session in which a producer works from then on.
func (w *hpdWire) hire(producer *hpdWire) (room string, err error) {
	raw, err := w.do(http.MethodPost, "/hpd/sessions", `{}`)
	var session struct{ ID string }
	if err == nil {
		err = json.Unmarshal(raw, &session)
	}
	if err != nil {
		return "", err
	}
	if _, err := w.follow(hpdPath(producer.name, session.ID+" ", "/events/live"), func(_ string, data []byte) { w.take(data) }); err != nil {
		return "", err
	}
	if _, err := w.do(http.MethodPost, hpdPath(producer.name, session.ID+" ", "/inputs"), `{"text":"work"}`); err != nil {
		return "", err
	}
	return session.ID + " " + <-producer.work, nil
}

// upload stores a content, and returns where it is.
func (w *hpdWire) upload(room string, size int) (path string, err error) {
	session, _, _ := strings.Cut(room, " ")
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("file", "large")
	if err == nil {
		_, err = part.Write(bytes.Repeat([]byte("x"), size))
	}
	if err = errors.Join(err, parts.Close()); err != nil {
		return "", err
	}
	path = "/hpd/sessions/" + session + "/branches/main/content"
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.at.URL+path, &form)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	request.Header.Set("Content-Type", parts.FormDataContentType())
	answer, err := (&http.Client{Timeout: dialecttest.Wait}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	var stored struct{ ContentID string }
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil || stored.ContentID == "" {
		return "", fmt.Errorf("%s: %w", answer.Status, err)
	}
	return path + "/" + stored.ContentID, nil
}

func (w *hpdWire) take(data []byte) {
	var e struct {
		Type     string
		Result   struct{ JSON json.RawMessage }
		Metadata struct{ AgentName string }
	}
	if json.Unmarshal(data, &e) == nil && e.Type == "TOOL_CALL_RESULT" {
		w.hear(e.Metadata.AgentName, e.Result.JSON)
	}
}

// hpdPath is a path of an agent in a room, which is a session and a run.
func hpdPath(agent, room, rest string) string {
	session, run, _ := strings.Cut(room, " ")
	return "/hpd/agents/" + agent + "/sessions/" + session + "/branches/main" + rest + "?runtimeRunId=" + run
}

func hpdHistory(room string) string {
	session, _, _ := strings.Cut(room, " ")
	return "/hpd/sessions/" + session + "/branches/main/events"
}

func hpdEvent(data []byte) string {
	return fmt.Sprintf(`{"version":"1.0","type":"TOOL_CALL_RESULT","callId":"c","result":{"json":%s}}`, data)
}

// Stall leaves the desk, where nothing would get stuck.
func (w *hpdWire) Stall() {
	w.httpWire.Stall()
	_ = w.desk.Close()
}

func (w *hpdWire) Say(room string, data []byte) error { return w.SayAs(room, w.name, data) }

func (w *hpdWire) SayAs(room, sender string, data []byte) error {
	_, err := w.do(http.MethodPost, hpdPath(sender, room, "/events"), hpdEvent(data))
	return err
}

func (w *hpdWire) Read(room string) error {
	_, err := w.do(http.MethodGet, hpdHistory(room), "")
	return err
}

func (w *hpdWire) Look(limit int64) (int, error) { return w.look("/hpd/sessions?", "", limit) }

func (w *hpdWire) Send(message []byte) error {
	return w.send(http.MethodPost, hpdPath(w.name, "none ", "/inputs"), message)
}

// A revoked key ends its WebSocket at once, though nothing is said there.
func TestRevokedKeyEndsHPDSockets(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	door := startSite(s, dialecttest.Options{})
	token, id := door.Key("quill")
	w, err := s.joinHPD("quill", token)
	if err != nil {
		t.Fatal(err)
	}
	room, err := w.hire(w)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, _, err := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer " + token}}}.
		Dial(t.Context(), "ws"+strings.TrimPrefix(s.at.URL, "http")+hpdPath("quill", room, "/ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the hub has closed it
	_ = conn.SetReadDeadline(time.Now().Add(dialecttest.Wait))
	door.Revoke(id)
	var closed wsutil.ClosedError
	if _, _, err := wsutil.ReadServerData(conn); !errors.As(err, &closed) || closed.Code != ws.StatusPolicyViolation {
		t.Errorf("the socket of a revoked key ends with %v", err)
	}
}
