//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// socketTo opens a WebSocket to a node.
func (n *nodes) socketTo(name, path string) net.Conn {
	n.t.Helper()
	conn, _, _, err := ws.Dial(n.ctx, webSocket(n.list[name].url)+path)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	return conn
}

// TestANodeThatWakes: connections that were open before a node was paused, and on
// which something was asked meanwhile, are answered by nobody but the node that
// serves since: WebSockets of every dialect are closed with a code to come back,
// and requests on connections that are kept open are refused.
func TestANodeThatWakes(t *testing.T) {
	t.Parallel()
	n := startCluster(t, "a", "b")
	paused := n.serves("")
	url := n.list[paused].url
	var session struct {
		ID string `json:"id"`
	}
	request, err := http.NewRequestWithContext(n.ctx, http.MethodPost, url+"/hpd/sessions", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	made, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Body.Close()
	if err := json.NewDecoder(made.Body).Decode(&session); err != nil || session.ID == "" {
		t.Fatalf("no session: %d, %v", made.StatusCode, err)
	}

	const list = `{"kind":"request","request_id":"1","op":"list_agents","params":{}}`
	ag2, hpd := n.socketTo(paused, "/"), n.socketTo(paused, "/hpd/agents/user/sessions/"+session.ID+"/branches/main/ws")
	if err := wsutil.WriteClientText(ag2, []byte(list)); err != nil {
		t.Fatal(err)
	}
	if answer, err := wsutil.ReadServerText(ag2); err != nil || !strings.Contains(string(answer), `"request_id":"1"`) {
		t.Fatalf("before the pause: %s, %v", answer, err)
	}
	open := map[string]kept{}
	for _, path := range []string{"/v1/channels", "/v1/chat/sessions", "/hpd/sessions", "/agh/network/status"} {
		conn, err := (&net.Dialer{}).DialContext(n.ctx, "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test is over
		_ = conn.SetDeadline(time.Now().Add(startTimeout))
		open[path] = kept{conn, bufio.NewReader(conn)}
		open[path].ask(t, path)
		if status, body := open[path].answer(t); status >= http.StatusInternalServerError {
			t.Fatalf("%s is answered with %d: %s", path, status, body)
		}
	}

	n.signal(paused, syscall.SIGSTOP)
	serving := n.serves(paused)
	for _, conn := range []net.Conn{ag2, hpd} { // HPD would close with 1007
		if err := wsutil.WriteClientText(conn, []byte(list)); err != nil {
			t.Fatal(err)
		}
	}
	for path, conn := range open {
		conn.ask(t, path)
	}
	n.signal(paused, syscall.SIGCONT)
	for name, conn := range map[string]net.Conn{"AG2": ag2, "HPD": hpd} {
		frame, err := ws.ReadFrame(conn)
		if err != nil || frame.Header.OpCode != ws.OpClose {
			t.Errorf("%s: the node that woke answers %q, error %v", name, frame.Payload, err)
			continue
		}
		code, reason := ws.ParseCloseFrameData(frame.Payload)
		if code != 1013 && code != 1001 || reason == "" {
			t.Errorf("%s: the node that woke closes with %d, %q", name, code, reason)
		}
		t.Logf("%s: %d %s", name, code, reason)
	}
	for path, conn := range open {
		if status, body := conn.answer(t); status != http.StatusServiceUnavailable {
			t.Errorf("%s: the node that woke answers %d: %s", path, status, body)
		}
	}
	if n.serves(paused) != serving {
		t.Errorf("node %s no longer serves", serving)
	}
}

// kept is a connection for HTTP that stays open.
type kept struct {
	net.Conn
	in *bufio.Reader
}

func (k kept) ask(t *testing.T, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(k, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

func (k kept) answer(t *testing.T) (status int, body string) {
	t.Helper()
	answer, err := http.ReadResponse(k.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}
