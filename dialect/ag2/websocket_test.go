package ag2_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2"
)

const (
	ping = `{"kind":"ping"}`
	pong = `{"kind":"pong"}`
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Everything that a conforming client may send is accepted.
func TestWebSocketAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	long := `{"kind":"ping","x":"` + strings.Repeat("x", 70_000) + `"}`
	largest := `{"kind":"ping","x":"` + strings.Repeat("x", 1<<20-len(`{"kind":"ping","x":""}`)) + `"}`
	tests := []struct {
		name  string
		sends []byte
		pongs int // text frames
	}{
		{"a whole message", frame(true, opText, []byte(ping)), 1},
		{"length in 16 bits", frame(true, opText, []byte(`{"kind":"ping","x":"`+strings.Repeat("x", 200)+`"}`)), 1},
		{"length in 64 bits", frame(true, opText, []byte(long)), 1},
		{"the largest message", frame(true, opText, []byte(largest)), 1},
		{"a length that could be shorter", join([]byte{0x81, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, byte(len(ping)), 0, 0, 0, 0}, []byte(ping)), 1},
		{"two fragments", join(frame(false, opText, []byte(ping[:5])), frame(true, opContinuation, []byte(ping[5:]))), 1},
		{"many fragments", fragments([]byte(ping), 1), 1},
		{"empty fragments", join(frame(false, opText, nil), frame(false, opContinuation, []byte(ping)), frame(true, opContinuation, nil)), 1},
		{"a character in two fragments", fragments([]byte(`{"kind":"ping","x":"é€😀"}`), 1), 1},
		{"a large message in fragments", fragments([]byte(largest), 4096), 1},
		{"two messages at once", join(frame(true, opText, []byte(ping)), frame(true, opText, []byte(ping))), 2},
		{"a hundred messages at once", bytes.Repeat(frame(true, opText, []byte(ping)), 100), 100},
		{"an empty message", join(frame(true, opText, nil), frame(true, opText, []byte(ping))), 1},
		{"a binary message of text", frame(true, opBinary, []byte(ping)), 1},
		{"a binary message of bytes", join(frame(true, opBinary, []byte{0xff, 0xfe}), frame(true, opText, []byte(ping))), 1},
		{"a pong nobody asked for", join(frame(true, opPong, []byte("x")), frame(true, opText, []byte(ping))), 1},
		{"a pong between fragments", join(frame(false, opText, []byte(ping[:5])), frame(true, opPong, nil), frame(true, opContinuation, []byte(ping[5:]))), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := r.raw()
			c.t = t
			c.write(tt.sends)
			for range tt.pongs {
				c.expect(ws.OpText, pong)
			}
			c.write(frame(true, opClose, closePayload(1000, "")))
			c.expectClose(1000)
		})
	}
}

func fragments(message []byte, size int) []byte {
	var out []byte
	op := byte(opText)
	for len(message) > size {
		out = append(out, frame(false, op, message[:size])...)
		message, op = message[size:], opContinuation
	}
	return append(out, frame(true, op, message)...)
}

// WebSocket's own pings are answered at once, with their payload, also between
// the fragments of a message.
func TestWebSocketPing(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	c := r.raw()
	full := strings.Repeat("p", 125)
	c.write(join(frame(true, opPing, nil), frame(true, opPing, []byte(full))))
	c.expect(ws.OpPong, "")
	c.expect(ws.OpPong, full)
	c.write(join(frame(false, opText, []byte(ping[:5])), frame(true, opPing, []byte("between")), frame(true, opContinuation, []byte(ping[5:]))))
	c.expect(ws.OpPong, "between")
	c.expect(ws.OpText, pong)
}

// A violation of the protocol closes the connection with the matching code.
func TestWebSocketRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	type test struct {
		name  string
		sends []byte
		code  ws.StatusCode
	}
	tests := []test{
		{"a frame that is not masked", rawFrame(true, 0, opText, false, []byte(ping)), 1002},
		{"a control frame that is not masked", rawFrame(true, 0, opPing, false, nil), 1002},
		{"a control frame in fragments", frame(false, opPing, nil), 1002},
		{"a ping of 126 bytes", frame(true, opPing, make([]byte, 126)), 1002},
		{"a close of 126 bytes", frame(true, opClose, closePayload(1000, strings.Repeat("x", 124))), 1002},
		{"a continuation of nothing", frame(true, opContinuation, []byte(ping)), 1002},
		{"a continuation after the end", join(frame(false, opText, nil), frame(true, opContinuation, nil), frame(true, opContinuation, nil)), 1002},
		{"a message within a message", join(frame(false, opText, []byte(ping)), frame(true, opText, []byte(ping))), 1002},
		{"a binary message within a message", join(frame(false, opText, []byte(ping)), frame(true, opBinary, []byte(ping))), 1002},
		{"text that is not UTF-8", frame(true, opText, []byte("{\"kind\":\"\xff\"}")), 1007},
		{"text that ends within a character", frame(true, opText, []byte("\xe2\x82")), 1007},
		{"a surrogate in UTF-8", frame(true, opText, []byte("\xed\xa0\x80")), 1007},
		{"fragments that are not UTF-8", join(frame(false, opText, []byte("\xe2")), frame(true, opContinuation, []byte("x"))), 1007},
		{"a message of one byte too many", frame(true, opText, make([]byte, 1<<20+1)), 1009},
		{"a promise of a message too large", []byte{0x81, 0x80 | 127, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4}, 1009},
		{"a promise beyond all numbers", []byte{0x81, 0x80 | 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}, 1009},
		{"fragments too large together", join(frame(false, opText, make([]byte, 1<<19)), frame(false, opContinuation, make([]byte, 1<<19)), frame(true, opContinuation, []byte("x"))), 1009},
		{"a close of one byte", frame(true, opClose, []byte{3}), 1002},
		{"a close with a reason that is not UTF-8", frame(true, opClose, closePayload(1000, "\xff")), 1007},
	}
	for _, rsv := range []byte{1, 2, 4, 7} {
		tests = append(tests, test{fmt.Sprintf("reserved bits %03b", rsv), rawFrame(true, rsv, opText, true, []byte(ping)), 1002})
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		tests = append(tests, test{fmt.Sprintf("reserved opcode %d", op), frame(true, op, nil), 1002})
	}
	for _, code := range []int{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		tests = append(tests, test{fmt.Sprintf("close code %d", code), frame(true, opClose, closePayload(code, "")), 1002})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := r.raw()
			c.t = t
			c.write(tt.sends)
			if reason := c.expectClose(tt.code); reason == "" {
				t.Error("no reason is given")
			}
		})
	}
}

// A close is answered with its own code, and frames that were sent before it are
// handled.
func TestWebSocketClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			c := r.raw()
			c.t = t
			c.write(frame(true, opClose, closePayload(code, "done")))
			c.expectClose(ws.StatusCode(code))
		})
	}
	t.Run("without a code", func(t *testing.T) {
		t.Parallel()
		c := r.raw()
		c.t = t
		c.write(frame(true, opClose, nil))
		c.expectClose(1000)
	})
	t.Run("between fragments", func(t *testing.T) {
		t.Parallel()
		c := r.raw()
		c.t = t
		c.write(join(frame(false, opText, []byte(ping)), frame(true, opClose, closePayload(1000, ""))))
		c.expectClose(1000)
	})
	t.Run("behind a registration", func(t *testing.T) {
		t.Parallel()
		c := r.raw()
		c.t = t
		register := `{"kind":"request","request_id":"1","op":"register","params":{"passport":{"name":"hasty"},"resume":{}}}`
		c.write(join(frame(true, opText, []byte(register)), frame(true, opClose, closePayload(1000, ""))))
		until(t, "it is registered and nowhere bound", func() bool {
			id, ok := r.hub.FindAgent("hasty")
			_, bound := r.hub.Bound(id)
			return ok && !bound
		})
	})
}

// Bytes may arrive one at a time.
func TestWebSocketByteByByte(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	c := r.raw()
	message := join(frame(false, opText, []byte(ping[:3])), frame(true, opPing, []byte("p")), frame(true, opContinuation, []byte(ping[3:])))
	for i := range message {
		c.write(message[i : i+1])
	}
	c.expect(ws.OpPong, "p")
	c.expect(ws.OpText, pong)
}

// Frames may come in the same packet as the request to upgrade.
func TestWebSocketEarlyFrames(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	c := r.raw(bytes.Repeat(frame(true, opText, []byte(ping)), 3)...)
	for range 3 {
		c.expect(ws.OpText, pong)
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	tests := []struct {
		name, request string
		status        int
	}{
		{"any path", "GET /a/b?c=d HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", 101},
		{"compression is offered and not taken", upgrade + "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n", 101},
		{"no upgrade", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"no key", "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n", 400},
		{"another version", strings.Replace(upgrade, "Version: 13", "Version: 8", 1) + "\r\n", 426},
		{"another method", strings.Replace(upgrade, "GET", "POST", 1) + "\r\n", 405},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := r.connect()
			c.t = t
			c.write([]byte(tt.request))
			response, err := http.ReadResponse(c.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != tt.status {
				t.Errorf("got %s, want %d", response.Status, tt.status)
			}
			if extensions := response.Header.Get("Sec-WebSocket-Extensions"); extensions != "" {
				t.Errorf("extensions %q were agreed on", extensions)
			}
		})
	}
}

func TestNewNeedsAHub(t *testing.T) {
	t.Parallel()
	if _, err := ag2.New(ag2.Config{}); err == nil {
		t.Fatal("a server without a hub was made")
	}
}
