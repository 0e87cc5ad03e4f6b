package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/config"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}), make(chan struct{})
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Shutdown.Timeout = time.Minute
		d.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-server.Stopping(r.Context())
			<-finish
			if r.Context().Err() != nil {
				t.Error("a request in flight was cancelled although there was time")
			}
			_, _ = io.WriteString(w, "finished")
		})
		speak(d).drain = func(ctx context.Context) {
			if ctx.Err() != nil {
				t.Error("no time to drain")
			}
			close(finish)
		}
	})
	answered := make(chan string, 1)
	go func() {
		_, text := h.do(t, "GET", "/", "")
		answered <- text
	}()
	<-entered
	h.stop()
	if text := <-answered; text != "finished" {
		t.Errorf("the request in flight got %q", text)
	}
	err := <-h.done
	h.done <- err
	if err != nil {
		t.Error(err)
	}
	if _, err := h.client.Get(h.URL() + "/healthz"); err == nil { // there is nobody to answer
		t.Error("still listening after shutdown")
	}
}

// TestDrainAnswersWhoHasConnected: a client that has connected and not asked
// yet is answered although no connection is accepted any more; the answer ends
// the connection.
func TestDrainAnswersWhoHasConnected(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Shutdown.Timeout = time.Minute
		speak(d)
	})
	ask := func(c net.Conn) *http.Response {
		t.Helper()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("it was cut off: %v", err)
		}
		_ = answer.Body.Close()
		return answer
	}
	silent, later := h.raw(t), h.raw(t)
	ask(later) // so the one before it was accepted, too
	h.stop()
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	if answer := ask(silent); answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("answered with %d, the connection ends: %v", answer.StatusCode, answer.Close)
	}
}

func TestReadyzIsRedWhileDraining(t *testing.T) {
	t.Parallel()
	draining, release := make(chan struct{}), make(chan struct{})
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Shutdown.Timeout = time.Minute
		speak(d).upgrade = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an upgrade came through") })
		speak(d).drain = func(context.Context) {
			close(draining)
			<-release
		}
	})
	h.stop()
	<-draining
	h.want(t, "GET", "/readyz", "", 503, `{"name":"serving","ok":false,"reason":"the hub is shutting down"}`)
	h.want(t, "GET", "/healthz", "", 200, "ok")
	h.want(t, "GET", "/", "", 503, "unavailable", "Connection", "upgrade", "Upgrade", "websocket")
	close(release)
}

func TestDeadlineCutsEveryoneOff(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 2)
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Shutdown.Timeout = 30 * time.Millisecond
		speak(d).upgrade = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
				t.Error(err)
			}
			taken <- struct{}{} // and never closed
		})
		d.Page = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			taken <- struct{}{}
			<-r.Context().Done() // ignores Stopping
		})
		speak(d).drain = func(ctx context.Context) { <-ctx.Done() }
	})
	hijacked, stuck := h.raw(t), h.raw(t)
	for c, request := range map[io.Writer]string{
		hijacked: "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		stuck:    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		<-taken
	}
	h.stop()
	for _, c := range []io.Reader{hijacked, stuck} {
		if _, err := io.Copy(io.Discard, c); isTimeout(err) {
			t.Error("a connection outlived the deadline")
		}
	}
	err := <-h.done
	h.done <- err
	if err != nil {
		t.Errorf("Run: %v", err)
	}
}
