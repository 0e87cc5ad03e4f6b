package standby_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/server/standby"
)

var (
	someLimits = standby.Limits{Connections: 8, Header: 1 << 10, HeaderTimeout: time.Minute, IdleTimeout: time.Minute, BodyTimeout: time.Minute}
	quiet      = slog.New(slog.DiscardHandler)
	nobody     = standby.Node{Name: "a", Serving: func() standby.Serving { return standby.Serving{} }}
)

func newDoor(t *testing.T) *standby.Door {
	t.Helper()
	bound, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return standby.NewDoor(bound)
}

// TestTheDoorOutlivesItsServers: what arrives between two servers is served by the
// next.
func TestTheDoorOutlivesItsServers(t *testing.T) {
	t.Parallel()
	door := newDoor(t)
	for range 3 {
		answered := make(chan int, 1)
		go func() { // begins before anybody listens
			answer, _ := ask(t, "GET", "http://"+door.Addr().String()+"/healthz", http.Header{"Connection": {"close"}})
			answered <- answer.StatusCode
		}()
		stands := nobody.Stand(door.Listener(), nil, standby.Limits{Connections: 1, Header: 1 << 10, HeaderTimeout: time.Minute, IdleTimeout: time.Minute, BodyTimeout: time.Minute}, quiet)
		if status := <-answered; status != http.StatusOK {
			t.Errorf("answered with %d", status)
		}
		if err := stands.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := door.Close(); err != nil {
		t.Error(err)
	}
	if _, err := door.Listener().Accept(); err == nil {
		t.Error("a closed door was passed")
	}
	stands := nobody.Stand(door.Listener(), nil, someLimits, quiet)
	<-stands.Ended()
	if err := stands.Leave(); err != nil { // Close ended it, which is not an error
		t.Error(err)
	}
}

// line is a connection that a test speaks HTTP on by hand.
type line struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, door *standby.Door) line {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return line{conn, bufio.NewReader(conn)}
}

// ask sends a request, and reports whether the answer ends the connection.
func (l line) ask(t *testing.T, path string) (status int, last bool) {
	t.Helper()
	if _, err := fmt.Fprintf(l, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(l.in, nil)
	if err != nil {
		t.Fatalf("the connection was cut off: %v", err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Close
}

// TestLeavingCutsNobodyOff: a client that has connected, or has been answered on a
// connection that stays open, is answered though the node has left the listener;
// the answer ends the connection. The next server has the listener meanwhile.
func TestLeavingCutsNobodyOff(t *testing.T) {
	t.Parallel()
	door := newDoor(t)
	defer door.Close() //nolint:errcheck // the test is over
	stands := nobody.Stand(door.Listener(), nil, someLimits, quiet)
	kept, silent := dial(t, door), dial(t, door)
	if status, last := kept.ask(t, "/healthz"); status != http.StatusOK || last {
		t.Fatalf("healthz: %d, the connection ends: %v", status, last)
	}
	if status, last := dial(t, door).ask(t, "/v1/channels"); status != http.StatusServiceUnavailable || !last {
		t.Errorf("sent elsewhere with %d, the connection ends: %v", status, last) // a balancer may lead to another node
	}
	if err := stands.Leave(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- stands.Wait(t.Context()) }()

	next := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })}
	go func() { _ = next.Serve(door.Listener()) }()
	defer next.Close() //nolint:errcheck // the test is over
	if status, _ := dial(t, door).ask(t, "/healthz"); status != http.StatusTeapot {
		t.Errorf("a new connection is answered with %d by the one that left", status)
	}
	for name, l := range map[string]line{"a kept": kept, "a silent": silent} {
		if status, last := l.ask(t, "/healthz"); status != http.StatusOK || !last {
			t.Errorf("%s connection: %d, it ends: %v", name, status, last)
		}
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// TestWhatIsLeftIsClosed when the process ends, whatever it waits for.
func TestWhatIsLeftIsClosed(t *testing.T) {
	t.Parallel()
	door := newDoor(t)
	defer door.Close() //nolint:errcheck // the test is over
	stands := nobody.Stand(door.Listener(), nil, someLimits, quiet)
	kept := dial(t, door)
	kept.ask(t, "/healthz")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := stands.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, err := kept.in.ReadByte(); err == nil || !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection is open: %v", err)
	}
}
