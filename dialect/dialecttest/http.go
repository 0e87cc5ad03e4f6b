package dialecttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Request is an HTTP request of a client. Header has lines, each with its line
// break.
type Request struct {
	Method, Path, Header, Body string
}

// head returns the request without its body, for a host.
func (r Request) head(host, header string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", r.Method, r.Path, host, r.Header, header)
}

// answered is the head of an answer.
type answered struct {
	code          int
	status, where string
}

// ask sends a request on a connection of its own.
func (s *Site) ask(t *testing.T, r Request, host, header string) answered {
	t.Helper()
	if r.Body != "" {
		header += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(r.Body))
	}
	answer, err := s.exchange(t, r.head(host, header)+r.Body)
	if err != nil {
		t.Fatalf("%s %.200s: %v", r.Method, r.Path, err)
	}
	return answer
}

func (s *Site) exchange(t *testing.T, text string) (answered, error) {
	t.Helper()
	c := s.bare(t)
	_ = c.SetDeadline(time.Now().Add(Wait))
	if _, err := io.WriteString(c, text); err != nil {
		return answered{}, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answered{}, err
	}
	return answered{answer.StatusCode, answer.Status, answer.Header.Get("Location")}, answer.Body.Close()
}

func (s *Site) bare(t *testing.T) net.Conn {
	t.Helper()
	c, err := s.Socket()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// otherSites checks that a page of another site cannot send requests through the
// user's browser.
func otherSites(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	if s.Asks == nil {
		return
	}
	good := s.honest(t)
	asks := s.Asks(good.a, good.room)
	if got := s.ask(t, asks, "localhost", ""); got.code >= 300 {
		t.Errorf("what an honest client asks for is answered with %s", got.status)
	}
	requests := []Request{asks}
	if s.Tells != nil {
		requests = append(requests, s.Tells(good.a, good.room))
	}
	for _, r := range requests {
		for _, from := range []struct{ host, header string }{
			{"localhost", "Sec-Fetch-Site: cross-site\r\n"},
			{"localhost", "Sec-Fetch-Site: same-site\r\n"},
			{"localhost", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n"},
			{"localhost", "Origin: https://evil.example\r\n"},
			{"localhost", "Origin: null\r\n"},
			{"localhost", "Origin: http://localhost\r\nOrigin: https://evil.example\r\n"},
			{"evil.example", ""},
		} {
			if got := s.ask(t, r, from.host, from.header); got.code != http.StatusForbidden {
				t.Errorf("%s %s to %s with %q is answered with %s", r.Method, r.Path, from.host, from.header, got.status)
			}
		}
	}
	good.works("after pages of other sites")
}

// pathTricks checks that an oddly written path is not found.
func pathTricks(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	if s.Asks == nil {
		return
	}
	good := s.honest(t)
	for _, path := range s.Tricks {
		r := s.Asks(good.a, good.room)
		r.Path = path
		got := s.ask(t, r, "localhost", "")
		switch where := got.where; {
		case got.code >= 300 && got.code < 400:
			if !strings.HasPrefix(where, "/") || strings.HasPrefix(where, "//") || strings.HasPrefix(where, "/\\") {
				t.Errorf("%.200s leads to %q", path, where)
			}
		case got.code < 400 || got.code >= 500:
			t.Errorf("%.200s is answered with %s", path, got.status)
		}
	}
	good.works("after tricks with paths")
}

// endlessBodies checks that the server does not wait for a body that is longer than
// any message.
func endlessBodies(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	if s.Tells == nil {
		return
	}
	good := s.honest(t)
	const patience = 256 << 20 // bytes that a client sends until it is stopped
	block := strings.Repeat("x", 64<<10)
	for name, chunked := range map[string]bool{"announced": false, "in chunks": true} {
		c := s.bare(t)
		_ = c.SetDeadline(time.Now().Add(Wait))
		header, part := fmt.Sprintf("Content-Length: %d\r\n", int64(1)<<40), block
		if chunked {
			header, part = "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(block), block)
		}
		_, _ = io.WriteString(c, s.Tells(good.a, good.room).head("localhost", "Content-Type: application/json\r\n"+header))
		sent, stopped := 0, false
		for !stopped && sent < patience {
			n, err := io.WriteString(c, part)
			sent, stopped = sent+n, err != nil
		}
		if !stopped {
			t.Errorf("a body %s is read after %d bytes", name, sent)
		}
		good.works("after an endless body")
	}
}

// slowBodies checks that the server does not wait for a client that sends a body
// byte by byte.
func slowBodies(t *testing.T, door Door) {
	s := door.Start(t, Options{Patience: 500 * time.Millisecond})
	if s.Tells == nil {
		return
	}
	good := s.honest(t)
	var slow []net.Conn
	for range 8 {
		c := s.bare(t)
		_ = c.SetDeadline(time.Now().Add(Wait))
		_, _ = io.WriteString(c, s.Tells(good.a, good.room).head("localhost", "Content-Type: application/json\r\nContent-Length: 1000000\r\n")+"{")
		slow = append(slow, c)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(Wait); len(slow) > 0; <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("%d slow bodies are still waited for", len(slow))
		}
		var left []net.Conn
		for _, c := range slow {
			if _, err := io.WriteString(c, " "); err == nil {
				left = append(left, c)
			}
		}
		slow = left
	}
	good.works("after slow bodies")
}
