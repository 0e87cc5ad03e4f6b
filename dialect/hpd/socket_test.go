package hpd_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// socket is a client's WebSocket.
type socket struct {
	t    *spec.T
	conn net.Conn
}

func (r *rig) socket(t *spec.T, path string) *socket {
	t.Helper()
	conn, _, _, err := ws.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd"+path)
	t.NoError(err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(wait))
	return &socket{t, conn}
}

func (k *socket) send(frame any) {
	k.t.Helper()
	data, ok := frame.(string)
	if !ok {
		b, _ := json.Marshal(frame)
		data = string(b)
	}
	k.t.NoError(wsutil.WriteClientText(k.conn, []byte(data)))
}

// until reads events up to one of a type.
func (k *socket) until(name string) []object {
	k.t.Helper()
	var seen []object
	for {
		data, err := wsutil.ReadServerText(k.conn)
		if err != nil {
			k.t.Fatalf("no %s: %v; seen %v", name, err, types(seen))
		}
		var e object
		_ = json.Unmarshal(data, &e)
		if seen = append(seen, e); e["type"] == name {
			return seen
		}
	}
}

// closed reads up to the close frame.
func (k *socket) closed() (code int, reason string) {
	k.t.Helper()
	for {
		frame, err := ws.ReadFrame(k.conn)
		if err != nil {
			k.t.Fatalf("no close frame: %v", err)
		}
		if frame.Header.OpCode == ws.OpClose {
			c, reason := ws.ParseCloseFrameData(frame.Payload)
			return int(c), reason
		}
	}
}

func (k *socket) closesWith(code int, reason string) {
	k.t.Helper()
	gotCode, gotReason := k.closed()
	k.t.Equal(gotCode, code)
	k.t.Equal(gotReason, reason)
}

func TestSocket(t *testing.T) {
	t.Parallel()
	echo := hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}}
	text := func(text string) object { return object{"type": "USER_TEXT_INPUT", "text": text, "sessionId": "x"} }
	at := func(s string) string { return "/agents/echo/sessions/" + s + "/branches/main/ws" }
	stale := object{"type": "PERMISSION_RESPONSE", "permissionId": "none", "sourceName": "s", "approved": true}
	const invalid = "Invalid agent input or response event envelope"

	spec.Check(t, "hpd-events#118 hpd-events#124: nothing comes before the first frame; a stale response subscribes", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		k := r.socket(t, at(s))
		r.run("echo", s, "main", "unseen")
		k.send(stale)
		t.Equal(k.until("AGENT_RESPONSE_REJECTED")[0]["type"], any("AGENT_RESPONSE_REJECTED"))
		r.input("echo", s, "main", "seen")
		t.Equal(only(k.until("BRANCH_RUN_COMPLETED"), "TEXT_DELTA")[0]["text"], any("seen"))
	})
	spec.Check(t, "hpd-events#119: its own run is seen from the start, and several follow each other", func(t *spec.T) {
		r := newRig(t, echo)
		k := r.socket(t, at(r.session()))
		for range 3 {
			k.send(text("hi"))
			seen := k.until("BRANCH_RUN_COMPLETED")
			t.Equal(seen[0]["type"], any("BRANCH_RUN_STARTED"))
			t.Equal(len(only(seen, "MESSAGE_STARTED")), 0)
		}
	})
	for name, frame := range map[string]string{
		"hpd-events#120: invalid JSON": `{"type":`, "hpd-events#12: an unknown type": `{"type":"NO_SUCH"}`,
		"hpd-events#120: blank text": `{"type":"USER_TEXT_INPUT","text":" "}`, "hpd-events#120: no message": `{"type":"USER_MESSAGES_INPUT","messages":[]}`,
		"hpd-events#120: an event that is no input": `{"type":"TEXT_DELTA","messageId":"m","text":"x"}`,
		"hpd-events#120: text that is not UTF-8":    "{\"type\":\"USER_TEXT_INPUT\",\"text\":\"\xff\"}",
	} {
		spec.Check(t, name+" closes with 1007", func(t *spec.T) {
			r := newRig(t, echo)
			k := r.socket(t, at(r.session()))
			k.send(frame)
			k.closesWith(1007, invalid)
		})
	}
	spec.Check(t, "hpd-events#121 hpd-events#122: a busy branch, and none to interrupt", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": g}})
		s := r.session()
		k := r.socket(t, at(s))
		k.send(object{"type": "INTERRUPTION_REQUEST", "reason": "x", "source": "User"})
		k.closesWith(1008, "BranchRunNotActive")
		k = r.socket(t, at(s))
		k.send(text("one"))
		<-g.started
		k.send(text("two"))
		k.closesWith(1008, "BranchRunActive")
		k = r.socket(t, at(s))
		k.send(object{"type": "INTERRUPTION_REQUEST", "reason": "x", "source": 0})
		seen := k.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(true))
	})
	spec.Check(t, "hpd-events#123: fragments are one message", func(t *spec.T) {
		r := newRig(t, echo)
		k := r.socket(t, at(r.session()))
		data := []byte(`{"type":"USER_TEXT_INPUT","text":"in pieces"}`)
		for i, part := range [][]byte{data[:7], data[7:20], data[20:]} {
			op := ws.OpContinuation
			if i == 0 {
				op = ws.OpText
			}
			t.NoError(ws.WriteFrame(k.conn, ws.MaskFrame(ws.NewFrame(op, i == 2, part))))
		}
		t.Equal(only(k.until("BRANCH_RUN_COMPLETED"), "TEXT_DELTA")[0]["text"], any("in "))
	})
	spec.Check(t, "hpd-events#125: a client's close is answered with 1000, and the run goes on", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": g}})
		s := r.session()
		w := r.watch("/agents/echo/sessions/"+s+"/branches/main/events/live", nil)
		k := r.socket(t, at(s))
		k.send(text("one"))
		<-g.started
		t.NoError(ws.WriteFrame(k.conn, ws.MaskFrame(ws.NewCloseFrame(nil))))
		k.closesWith(1000, "Stream completed")
		close(g.open)
		seen := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(false))
	})
	spec.Check(t, "hpd-events#126: a plain GET is 400 InvalidRequest; unknown scopes and agents are 404", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		a := r.do("GET", at(s), nil)
		t.Equal(a.status, 400)
		t.Equal(a.code(), "InvalidRequest")
		for _, path := range []string{at("none"), "/agents/nobody/sessions/" + s + "/branches/main/ws"} {
			_, _, _, err := ws.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd"+path)
			t.ErrorContains(err, "404")
		}
	})
	t.Run("a branch that goes closes with 1007", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		k := r.socket(c, "/agents/echo/sessions/"+s+"/threads/main/ws")
		k.send(text("x"))
		k.until("THREAD_RUN_COMPLETED")
		c.Equal(r.do("DELETE", "/sessions/"+s, nil).status, 204)
		k.closesWith(1007, "Session or thread not found")
	})
	t.Run("nobody to run it leaves the socket open", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		k := r.socket(c, "/agents/user/sessions/"+s+"/branches/main/ws")
		for range 2 {
			k.send(text("x"))
			seen := k.until("BRANCH_RUN_COMPLETED")
			c.Equal(seen[len(seen)-1]["errorType"], any("NoProducer"))
		}
	})
}

// Revoking a key while its socket is being opened closes the socket, although
// nothing is sent there and no other key changes.
func TestSocketsOfKeysThatWereJustRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{
		Producers: map[string]hpd.Producer{"echo": newGate()},
		Stands:    func(*http.Request) bool { return false },
	})
	conn, early, _, err := ws.Dial(t.Context(), strings.Replace(r.http.URL, "http", "ws", 1)+"/hpd/agents/echo/sessions/"+r.session()+"/branches/main/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the server has closed it
	_ = conn.SetDeadline(time.Now().Add(wait))
	var from io.Reader = conn
	if early != nil { // bytes that came with the handshake's response
		from = early
	}
	frame, err := ws.ReadFrame(from)
	if err != nil {
		t.Fatalf("no close frame: %v", err)
	}
	if code, reason := ws.ParseCloseFrameData(frame.Payload); frame.Header.OpCode != ws.OpClose || code != ws.StatusPolicyViolation || reason != "auth_failed" {
		t.Errorf("the socket ends with %v %d %q", frame.Header.OpCode, code, reason)
	}
}
