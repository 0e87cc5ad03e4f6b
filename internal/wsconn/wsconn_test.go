package wsconn_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/internal/gate"
	"github.com/parley-hub/parley/internal/wsconn"
)

// echo answers each message in kind, and ends as the message says.
type echo struct {
	conn    *wsconn.Conn
	release chan struct{} // ends the work that a message started
	mu      sync.Mutex
	events  []string
}

func (e *echo) Message(payload []byte, binary bool) error {
	switch string(payload) {
	case "close":
		e.conn.Close(wsconn.Policy, "closed by the handler")
		return nil
	case "fail":
		return &wsconn.CloseError{Code: 4000, Reason: "failed by the handler"}
	case "break":
		return errors.New("no close frame for this")
	case "panic":
		panic("by the handler")
	case "work":
		e.conn.Go(func() { <-e.release })
		return nil
	case "end":
		e.conn.Go(func() { e.conn.End(&wsconn.CloseError{Code: wsconn.NotUTF8, Reason: strings.Repeat("ä", 100)}) })
		return nil
	}
	return e.conn.Send(wsconn.Frame{Head: "<", Body: payload, Tail: []byte(">"), Binary: binary})
}

func (e *echo) note(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

func (e *echo) ReadingEnded() {
	e.note("reading ended")
	e.conn.Go(func() { e.note("last work") })
}

func (e *echo) Closed()         { e.note("closed") }
func (e *echo) LogAttrs() []any { return nil }

// rig serves echoes.
type rig struct {
	*wsconn.Server
	url     string
	release chan struct{}
	mu      sync.Mutex
	handler []*echo
	log     lockedBuffer
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newRig(t *testing.T, limits wsconn.Limits) *rig { return newGatedRig(t, limits, nil) }

func newGatedRig(t *testing.T, limits wsconn.Limits, g gate.Gate) *rig {
	t.Helper()
	r := &rig{release: make(chan struct{})}
	r.Server = wsconn.New(wsconn.Config{Keys: "echo.limits", Limits: limits, Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	web := httptest.NewServer(r.serve(g))
	r.url = "ws" + strings.TrimPrefix(web.URL, "http")
	t.Cleanup(func() {
		_ = r.Close(t.Context())
		web.Close()
	})
	return r
}

func (r *rig) serve(g gate.Gate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r.Accept(w, req.WithContext(gate.With(req.Context(), g)), "one", req.RemoteAddr, func(c *wsconn.Conn) wsconn.Handler {
			e := &echo{conn: c, release: r.release}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.handler = append(r.handler, e)
			return e
		})
	})
}

func (r *rig) dial(t *testing.T) net.Conn {
	t.Helper()
	c, _, _, err := ws.Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

func send(t *testing.T, c net.Conn, f ws.Frame) {
	t.Helper()
	if err := ws.WriteFrame(c, ws.MaskFrame(f)); err != nil {
		t.Fatal(err)
	}
}

func wantClosed(t *testing.T, c net.Conn, code wsconn.Code, reason string) {
	t.Helper()
	f, err := ws.ReadFrame(c)
	if err != nil || f.Header.OpCode != ws.OpClose {
		t.Fatalf("got frame %+v, error %v, want a close frame", f.Header, err)
	}
	got, why := ws.ParseCloseFrameData(f.Payload)
	if got != ws.StatusCode(code) || why != reason {
		t.Errorf("closed with %d %q, want %d %q", got, why, code, reason)
	}
}

func TestMessagesAreAnsweredInKind(t *testing.T) {
	t.Parallel()
	c := newRig(t, wsconn.Limits{}).dial(t)
	send(t, c, ws.NewTextFrame([]byte("text")))
	send(t, c, ws.NewBinaryFrame([]byte{0xff, 0}))
	first := ws.NewFrame(ws.OpText, false, []byte("frag"))
	send(t, c, first)
	send(t, c, ws.NewPingFrame([]byte("between")))
	send(t, c, ws.NewFrame(ws.OpContinuation, true, []byte("ments")))
	for _, want := range []struct {
		op   ws.OpCode
		body string
	}{{ws.OpText, "<text>"}, {ws.OpBinary, "<\xff\x00>"}, {ws.OpPong, "between"}, {ws.OpText, "<fragments>"}} {
		f, err := ws.ReadFrame(c)
		if err != nil || f.Header.OpCode != want.op || string(f.Payload) != want.body {
			t.Fatalf("got opcode %d %q, error %v, want %d %q", f.Header.OpCode, f.Payload, err, want.op, want.body)
		}
	}
}

// TestAGateThatCloses ends a connection that was open before, with a code that
// lets the client reconnect, and the handler never sees the message.
func TestAGateThatCloses(t *testing.T) {
	t.Parallel()
	var shut atomic.Bool
	c := newGatedRig(t, wsconn.Limits{}, func(context.Context) error {
		if shut.Load() {
			return errors.New("node b serves at https://b:7440")
		}
		return nil
	}).dial(t)
	send(t, c, ws.NewTextFrame([]byte("text")))
	if f, err := ws.ReadFrame(c); err != nil || string(f.Payload) != "<text>" {
		t.Fatalf("got %q, error %v", f.Payload, err)
	}
	shut.Store(true)
	send(t, c, ws.NewTextFrame([]byte("text")))
	wantClosed(t, c, wsconn.TryAgain, "node b serves at https://b:7440")
}

func TestAHandlerSaysHowItEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		say    string
		code   wsconn.Code
		reason string
	}{
		{"close", wsconn.Policy, "closed by the handler"},
		{"fail", 4000, "failed by the handler"},
		{"panic", wsconn.Internal, "internal error"},
		{"end", wsconn.NotUTF8, strings.Repeat("ä", 61)}, // cut between characters
	}
	for _, tt := range tests {
		t.Run(tt.say, func(t *testing.T) {
			t.Parallel()
			c := newRig(t, wsconn.Limits{}).dial(t)
			send(t, c, ws.NewTextFrame([]byte(tt.say)))
			wantClosed(t, c, tt.code, tt.reason)
		})
	}
	t.Run("break", func(t *testing.T) {
		t.Parallel()
		c := newRig(t, wsconn.Limits{}).dial(t)
		send(t, c, ws.NewTextFrame([]byte("break")))
		if f, err := ws.ReadFrame(c); err == nil {
			t.Errorf("got %+v, want the end of the connection", f.Header)
		}
	})
}

// A client that closes waits for the end of the socket: work that goes on must
// not keep it waiting.
func TestTheSocketEndsWithTheCloseFrames(t *testing.T) {
	t.Parallel()
	ended := func(t *testing.T, c net.Conn) {
		t.Helper()
		if f, err := ws.ReadFrame(c); !errors.Is(err, io.EOF) {
			t.Errorf("got frame %+v, error %v, want the end of the socket", f.Header, err)
		}
	}
	goodbye := ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, ""))
	t.Run("the client closes", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, wsconn.Limits{})
		defer close(r.release)
		c := r.dial(t)
		send(t, c, ws.NewTextFrame([]byte("work")))
		send(t, c, goodbye)
		wantClosed(t, c, wsconn.Normal, "")
		ended(t, c)
	})
	t.Run("the server closes", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, wsconn.Limits{})
		defer close(r.release)
		c := r.dial(t)
		send(t, c, ws.NewTextFrame([]byte("work")))
		send(t, c, ws.NewTextFrame([]byte("close")))
		wantClosed(t, c, wsconn.Policy, "closed by the handler")
		send(t, c, goodbye)
		ended(t, c)
	})
}

func TestDrainTellsEveryoneAndWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{})
	c := r.dial(t)
	send(t, c, ws.NewTextFrame([]byte("hello")))
	if _, err := ws.ReadFrame(c); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- r.Close(context.Background()) }()
	wantClosed(t, c, wsconn.GoingAway, "the hub is shutting down")
	send(t, c, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if r.Context().Err() == nil {
		t.Error("the context of operations goes on")
	}
	if got := strings.Join(r.handler[0].events, ", "); got != "reading ended, last work, closed" {
		t.Errorf("the handler was told: %s", got)
	}
	if s := r.Stats(); s.Connections != 0 || s.Opened != 1 || s.Messages != 1 {
		t.Errorf("stats: %+v", s)
	}
	response, err := http.Get("http" + strings.TrimPrefix(r.url, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a closed server answers %d", response.StatusCode)
	}
}

func TestALimitNamesItsKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{Connections: 1, FrameBytes: 10})
	c := r.dial(t)
	response, err := http.Get("http" + strings.TrimPrefix(r.url, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if !strings.Contains(string(body), "echo.limits.connections") {
		t.Errorf("one connection too many is told %q", body)
	}
	if log := r.log.String(); !strings.Contains(log, "upgrade refused") || !strings.Contains(log, "echo.limits.connections") || r.Stats().Refused != 1 {
		t.Errorf("it is logged as %q and counted as %d", log, r.Stats().Refused)
	}
	send(t, c, ws.NewTextFrame(make([]byte, 11)))
	wantClosed(t, c, wsconn.TooLarge, "a message has at most 10 bytes (echo.limits.frame_bytes)")
}

// Frames that wait together are written together, those with priority first.
func TestWaitingFramesAreWrittenTogetherByPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{QueueBytes: 64 << 20})
	c := r.dial(t)
	send(t, c, ws.NewTextFrame([]byte("first")))
	if _, err := wsutil.ReadServerText(c); err != nil {
		t.Fatal(err)
	}
	conn := r.handler[0].conn
	// The writer is stuck with what the peer does not read.
	large := make([]byte, 16<<20)
	if err := conn.Send(wsconn.Frame{Body: large, Binary: true}); err != nil {
		t.Fatal(err)
	}
	for r.Stats().Writes < 2 {
		runtime.Gosched()
	}
	for _, f := range []wsconn.Frame{
		{Body: []byte("low 1"), Priority: wsconn.Low, Stream: "a"},
		{Body: []byte("low 2"), Priority: wsconn.Low, Stream: "b"},
		{Body: []byte("high behind low 1"), Priority: wsconn.High, Stream: "a"},
		{Body: []byte("high"), Priority: wsconn.High, Stream: "c"},
		{Body: []byte("ordinary"), Priority: wsconn.Ordinary, Stream: "d"},
	} {
		if err := conn.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ws.ReadFrame(c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"high", "ordinary", "low 1", "low 2", "high behind low 1"} {
		got, err := wsutil.ReadServerText(c)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, error %v, want %q", got, err, want)
		}
	}
	// The first frame, the parts of the large one, and all others together. The
	// last write may be counted after it is read.
	want := int64(1 + len(large)/(256<<10) + 1)
	for r.Stats().Writes < want {
		runtime.Gosched()
	}
	if wrote := r.Stats().Writes; wrote != want {
		t.Errorf("%d writes, want %d", wrote, want)
	}
}

// A body that waits for many recipients is counted once, and a reader that
// reads is not disconnected for a burst.
func TestSharedBodiesCountOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{QueueBytes: 2 << 20})
	c := r.dial(t)
	send(t, c, ws.NewTextFrame([]byte("first")))
	if _, err := wsutil.ReadServerText(c); err != nil {
		t.Fatal(err)
	}
	conn := r.handler[0].conn
	body := make([]byte, 1<<20)
	for range 64 {
		if err := conn.Send(wsconn.Frame{Body: body, Binary: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 { // behind them, and of their own
		if err := conn.Send(wsconn.Frame{Body: make([]byte, 1<<20), Binary: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 70 {
		if f, err := ws.ReadFrame(c); err != nil || len(f.Payload) != 1<<20 {
			t.Fatalf("%d bytes, %v", len(f.Payload), err)
		}
	}
}

// A reader that takes nothing is disconnected at its limit, and one that is
// far beyond its limit at once.
func TestStalledReadersAreCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{QueueBytes: 1 << 20})
	c := r.dial(t)
	send(t, c, ws.NewTextFrame([]byte("first")))
	if _, err := wsutil.ReadServerText(c); err != nil {
		t.Fatal(err)
	}
	conn := r.handler[0].conn
	sent := 0
	for sent < 64 && conn.Send(wsconn.Frame{Body: make([]byte, 1<<20), Binary: true}) == nil {
		sent++
	}
	if sent == 64 {
		t.Error("64 MiB wait for one reader")
	}
}

// A handshake that fails is answered and its connection closed: nobody else
// would ever close it.
func TestFailedHandshakesAreClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t, wsconn.Limits{})
	for name, headers := range map[string]string{
		"no key":      "Sec-WebSocket-Version: 13\r\n",
		"old version": "Sec-WebSocket-Version: 9\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
		"unsent body": "Content-Length: 10\r\n",
	} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "ws://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+headers+"\r\n")
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") || !strings.Contains(string(answer), "X-Content-Type-Options: nosniff\r\n") {
			t.Errorf("%s: %v %q", name, err, answer)
		}
		_ = c.Close()
	}
	if n := r.Stats().Refused; n != 3 {
		t.Errorf("%d are counted as refused", n)
	}
}
