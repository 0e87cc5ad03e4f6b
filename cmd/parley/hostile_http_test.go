package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// httpWire is what the hostile clients of HTTP have in common. A wire embeds it.
type httpWire struct {
	*site
	name, token string
	said        chan saying
	stalled     chan struct{}
	once        sync.Once
	ended       chan struct{} // closed when every stream has ended

	mu      sync.Mutex
	streams int
	conns   []net.Conn
	pipe    net.Conn // for what is sent without waiting
}

func newHTTPWire(s *site, name, token string) *httpWire {
	return &httpWire{
		site: s, name: name, token: token, said: make(chan saying, 1024), stalled: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (w *httpWire) ID() string            { return w.name }
func (w *httpWire) Stall()                { w.once.Do(func() { close(w.stalled) }) }
func (w *httpWire) Gone() <-chan struct{} { return w.ended }

func (w *httpWire) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

func (w *httpWire) Hear() (string, []byte, error) {
	select {
	case s := <-w.said:
		return s.sender, s.data, nil
	case <-w.ended:
		return "", nil, errors.New("the stream has ended")
	case <-time.After(dialecttest.Wait):
		return "", nil, errors.New("nothing was heard")
	}
}

func (w *httpWire) hear(sender string, data []byte) {
	select {
	case w.said <- saying{sender, data}:
	default:
	}
}

// authorization is the header line that shows the key.
func (w *httpWire) authorization() string {
	if w.token == "" {
		return ""
	}
	return "Authorization: Bearer " + w.token + "\r\n"
}

// do asks with the client's own key.
func (w *httpWire) do(method, path, body string) ([]byte, error) {
	own := &site{t: w.t, at: w.at, token: w.token}
	var raw json.RawMessage
	err := own.ask(method, path, body, &raw)
	return raw, err
}

// send writes a request without waiting for its answer, which is read later and
// must not be the hub's own failure.
func (w *httpWire) send(method, path string, message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe == nil {
		c, err := w.connect()
		if err != nil {
			return err
		}
		w.pipe = c
		go func() {
			for from := bufio.NewReader(c); ; {
				answer, err := http.ReadResponse(from, nil)
				if err != nil {
					return
				}
				if answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusServiceUnavailable {
					w.t.Errorf("the hub fails with %s", answer.Status)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}()
	}
	_ = w.pipe.SetWriteDeadline(time.Now().Add(dialecttest.Wait))
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, w.authorization(), len(message))
	_, err := w.pipe.Write(append([]byte(head), message...))
	if err != nil {
		w.pipe = nil
	}
	return err
}

// connect dials with a small buffer, so that a stuck reader is noticed soon. The
// lock is held.
func (w *httpWire) connect() (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.at.URL, "http://"))
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(64 << 10)
	}
	w.conns = append(w.conns, c)
	return c, nil
}

// follow opens a stream of server-sent events and gives each to take until it
// ends. A client without streams left is gone.
func (w *httpWire) follow(path string, take func(event string, data []byte)) (net.Conn, error) {
	w.mu.Lock()
	c, err := w.connect()
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(dialecttest.Wait))
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s\r\n", path, w.authorization()); err != nil {
		return nil, err
	}
	from := bufio.NewReader(c)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(answer.Body)
		return nil, errors.Join(fmt.Errorf("%s: %s", answer.Status, raw), answer.Body.Close())
	}
	_ = c.SetDeadline(time.Time{})
	w.mu.Lock()
	w.streams++
	w.mu.Unlock()
	go func() {
		defer w.left()
		defer answer.Body.Close() //nolint:errcheck // it has ended
		lines := bufio.NewReader(answer.Body)
		for name := ""; ; {
			select {
			case <-w.stalled:
				untilEnd(c)
				return
			default:
			}
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			field, value, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(": "))
			switch string(field) {
			case "event":
				name = string(value)
			case "data":
				take(name, value)
				name = ""
			}
		}
	}()
	return c, nil
}

// left notes the end of a stream.
func (w *httpWire) left() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams--; w.streams == 0 {
		close(w.ended)
	}
}

// untilEnd waits for the end of a connection without reading what is sent.
func untilEnd(c net.Conn) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

// asks is a request with a client's key.
func (w *httpWire) asks(method, path, body string) dialecttest.Request {
	return dialecttest.Request{Method: method, Path: path, Header: w.authorization(), Body: body}
}

// look counts the entries of a list.
func (w *httpWire) look(path, list string, limit int64) (int, error) {
	raw, err := w.do(http.MethodGet, path+"limit="+strconv.FormatInt(limit, 10), "")
	if err != nil {
		return 0, err
	}
	if list == "" {
		var all []json.RawMessage
		err = json.Unmarshal(raw, &all)
		return len(all), err
	}
	var page map[string]json.RawMessage
	var all []json.RawMessage
	if err = json.Unmarshal(raw, &page); err == nil {
		err = json.Unmarshal(page[list], &all)
	}
	return len(all), err
}

// quoted is a JSON string.
func quoted(t *testing.T, text []byte) string {
	t.Helper()
	raw, err := json.Marshal(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
