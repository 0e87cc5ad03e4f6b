package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// patience is far more than anything here takes.
const patience = 20 * time.Second

// A client that announces a body and sends none is disconnected in time,
// however its request is answered.
func TestSilentSocketsAreEnded(t *testing.T) {
	t.Parallel()
	const unsent = "Content-Length: 100\r\n"
	for name, request := range map[string]string{
		"wrong host":     "POST /v1/x HTTP/1.1\r\nHost: evil.example\r\n" + unsent,
		"bad token":      "POST /v1/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n" + unsent,
		"upgrade":        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + unsent,
		"foreign origin": "POST /v1/x HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n" + unsent,
		"chunks":         "POST /v1/x HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n",
		"a method":       "DELETE /healthz HTTP/1.1\r\nHost: localhost\r\n" + unsent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, func(c *config.Config, _ *server.Deps) { c.HTTP.BodyTimeout = 50 * time.Millisecond })
			c := h.raw(t)
			if _, err := io.WriteString(c, request+"\r\n"); err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection was still open")
			}
		})
	}
}

// An answer whose reader stops reading is ended, and one whose reader
// continues is not, however long it takes.
func TestStuckReadersAreEnded(t *testing.T) {
	t.Parallel()
	const limit, size = 1500 * time.Millisecond, 64 << 20
	ended := make(chan error, 1)
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.Limits.FollowerWrite = limit
		d.V1 = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, size))
			ended <- err
		})
	})
	stuck := h.raw(t)
	if _, err := io.WriteString(stuck, "GET /v1/big HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the stuck reader's answer ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the stuck reader's answer did not end")
	}

	slow := h.raw(t)
	if _, err := io.WriteString(slow, "GET /v1/big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	begun, read := time.Now(), 0
	tick := time.NewTicker(limit / 100)
	defer tick.Stop()
	for part := make([]byte, 256<<10); ; { // paced by the ticker, so that it takes longer than the limit
		n, err := slow.Read(part)
		if read += n; err != nil {
			break
		}
		if time.Since(begun) < 2*limit {
			<-tick.C
		}
	}
	if err := <-ended; err != nil || read < size || time.Since(begun) < limit {
		t.Errorf("the slow reader got %d of %d bytes in %v, then %v", read, size, time.Since(begun), err)
	}
}

// ask sends a request over a connection, and returns the status.
func ask(c net.Conn, header string) (int, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n"); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// Idle sockets take every place of their address, and this machine's operator
// still connects; nobody else does.
func TestTheOperatorHasAReserve(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*config.Config){
		"all places":     func(c *config.Config) { c.HTTP.MaxConnections, c.Limits.ConnectionsPeer = 10, 10 },
		"all of a share": func(c *config.Config) { c.HTTP.MaxConnections, c.Limits.ConnectionsPeer = 100, 10 },
		"a quarter":      func(c *config.Config) { c.HTTP.MaxConnections = 40 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, func(c *config.Config, _ *server.Deps) { edit(c) })
			token, _, err := h.keys.Add(t.Context(), access.Operator, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if status, err := ask(h.raw(t), ""); err != nil || status != 200 {
					t.Fatalf("a first connection: %d, %v", status, err)
				}
			}
			if status, err := ask(h.raw(t), ""); err != nil || status != 503 {
				t.Errorf("one too many, of nobody: %d, %v", status, err)
			}
			for range 50 { // they push each other out of the reserve
				h.raw(t)
			}
			operator := h.raw(t)
			for range 2 {
				if status, err := ask(operator, "Authorization: Bearer "+token+"\r\n"); err != nil || status != 200 {
					t.Fatalf("the operator: %d, %v", status, err)
				}
			}
			for range 50 {
				h.raw(t)
			}
			if status, err := ask(operator, "Authorization: Bearer "+token+"\r\n"); err != nil || status != 200 {
				t.Errorf("the operator was pushed out: %d, %v", status, err)
			}
		})
	}
}

// The reserve has sixteen places; once all are the operator's own, nobody is
// pushed out of them.
func TestTheReserveHasSixteenPlaces(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *config.Config, _ *server.Deps) { c.HTTP.MaxConnections, c.Limits.ConnectionsPeer = 10, 10 })
	token, _, err := h.keys.Add(t.Context(), access.Operator, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	proof := "Authorization: Bearer " + token + "\r\n"
	for range 10 {
		if status, err := ask(h.raw(t), ""); err != nil || status != 200 {
			t.Fatalf("a first connection: %d, %v", status, err)
		}
	}
	var operators []net.Conn
	for n := range 16 {
		c := h.raw(t)
		if status, err := ask(c, proof); err != nil || status != 200 {
			t.Fatalf("the operator's connection %d of the reserve: %d, %v", n+1, status, err)
		}
		operators = append(operators, c)
	}
	// The reset may come before the dialer has returned.
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Addr().String()); err == nil {
		defer c.Close()
		if status, err := ask(c, proof); err == nil {
			t.Errorf("a seventeenth got %d", status)
		}
	}
	for n, c := range operators {
		if status, err := ask(c, proof); err != nil || status != 200 {
			t.Errorf("connection %d was pushed out: %d, %v", n+1, status, err)
		}
	}
}

// Behind a proxy all requests come from one address: each key has a share, and
// requests without a key share one.
func TestSharesBehindAProxy(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *config.Config, d *server.Deps) {
		c.HTTP.BehindProxy, c.Limits.ConnectionsPeer = true, 3
		speak(d).upgrade = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if key := r.Header.Get("Proved"); key != "" {
				if err := access.SeatOf(r.Context())(key); err != nil {
					w.WriteHeader(http.StatusTeapot)
					return
				}
			}
			w.WriteHeader(http.StatusOK)
		})
	})
	one, _, err := h.keys.Add(t.Context(), access.Reader, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := h.keys.Add(t.Context(), access.Reader, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(token string) string { return "Authorization: Bearer " + token + "\r\n" }
	var anonymous []net.Conn
	for i, tc := range []struct {
		header string
		want   int
	}{
		{"", 200},
		{"", 200},
		{"", 200},
		{"", 503},
		{bearer(one), 200},
		{bearer(one), 200},
		{bearer(one), 200},
		{bearer(one), 503},
		{bearer(two), 200},
		{"", 503},
	} {
		c := h.raw(t)
		if status, err := ask(c, tc.header); err != nil || status != tc.want {
			t.Fatalf("%d: %d, %v; want %d", i, status, err, tc.want)
		}
		if tc.header == "" {
			anonymous = append(anonymous, c)
		}
	}
	// A connection that proves a key later counts for that key's share, and
	// makes room.
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nProved: k\r\n"
	fmt.Fprintf(anonymous[0], "GET /ws HTTP/1.1\r\nHost: localhost\r\n%s\r\n", upgrade)
	if line, err := bufio.NewReader(anonymous[0]).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("proved: %q, %v", line, err)
	}
	if status, err := ask(h.raw(t), ""); err != nil || status != 200 {
		t.Errorf("no room was made: %d, %v", status, err)
	}
}
