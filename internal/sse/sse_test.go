package sse_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/internal/sse"
)

func TestAppendEvent(t *testing.T) {
	t.Parallel()
	tests := []struct{ id, name, data, want string }{
		{"7", "envelope", `{"a":1}`, "id: 7\nevent: envelope\ndata: {\"a\":1}\n\n"},
		{"", "", "x", "data: x\n\n"},
		{"1", "", "", "id: 1\ndata: \n\n"},
		{"1", "", "one\ntwo\r\nthree\rfour", "id: 1\ndata: one\ndata: two\ndata: three\ndata: four\n\n"},
		{"1", "", "\n\ndata: forged\n\n", "id: 1\ndata: \ndata: \ndata: data: forged\ndata: \ndata: \n\n"},
		{"1\ndata: forged", "name\r\nid: 2", "x", "id: 1\nevent: name\ndata: x\n\n"},
		{"1\x002", "", "x", "id: 1\ndata: x\n\n"},
	}
	for _, tt := range tests {
		if got := string(sse.AppendEvent(nil, tt.id, tt.name, []byte(tt.data))); got != tt.want {
			t.Errorf("%q %q %q: got %q, want %q", tt.id, tt.name, tt.data, got, tt.want)
		}
	}
	if got := string(sse.AppendComment(nil, "quiet\ndata: forged")); got != ": quiet\n\n" {
		t.Errorf("comment: %q", got)
	}
}

// Whatever an event holds, a reader sees one event with the same lines.
func TestFramingHolds(t *testing.T) {
	t.Parallel()
	lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.StringOfN(rapid.SampledFrom([]rune("a:\r\n dé")), 0, 20, -1).Draw(t, "data")
		id := rapid.StringOfN(rapid.SampledFrom([]rune("1\r\n:")), 0, 5, -1).Draw(t, "id")
		frame := string(sse.AppendEvent(nil, id, id, []byte(data)))
		body, ok := strings.CutSuffix(frame, "\n\n")
		if !ok || strings.Contains(body, "\n\n") || strings.Contains(frame, "\r") {
			t.Fatalf("%q is not one event", frame)
		}
		var got []string
		for line := range strings.SplitSeq(body, "\n") {
			if value, ok := strings.CutPrefix(line, "data: "); ok {
				got = append(got, value)
			}
		}
		if want := lines.Replace(data); strings.Join(got, "\n") != want {
			t.Fatalf("%q is read as %q", want, got)
		}
	})
}

func TestARequestAsks(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if sse.Wanted(r) || sse.LastEventID(r) != "" {
		t.Error("nothing was asked for")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Last-Event-ID", "42")
	if !sse.Wanted(r) || sse.LastEventID(r) != "42" {
		t.Error("a stream was asked for")
	}
	r.Method = http.MethodHead
	if sse.Wanted(r) {
		t.Error("HEAD gets no stream")
	}
}

// recorder notes each write and each deadline.
type recorder struct {
	mu       sync.Mutex
	header   http.Header
	writes   []string
	deadline time.Time
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Flush()              {}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = t
	return nil
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadline.IsZero() {
		return 0, errors.New("a write without a deadline")
	}
	r.writes = append(r.writes, string(b))
	return len(b), nil
}

// seen returns the writes so far, and whether a deadline is set now.
func (r *recorder) seen() (writes []string, timed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes), !r.deadline.IsZero()
}

func start(r *recorder, cfg sse.Config) *sse.Stream {
	r.header = http.Header{}
	if cfg.Write == 0 {
		cfg.Write, cfg.KeepAlive = time.Second, time.Minute
	}
	return sse.Start(r, httptest.NewRequest(http.MethodGet, "/", nil), cfg)
}

func TestEventsAtHandAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &recorder{}
		s := start(w, sse.Config{})
		defer s.End()
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{})
		turn := 0
		done := make(chan error, 1)
		go func() {
			done <- s.Run(ctx, func() (<-chan struct{}, error) {
				if turn++; turn%4 == 0 {
					return wake, nil
				}
				s.Event("", "", []byte("x"))
				return nil, nil
			})
		}()
		synctest.Wait()
		wake <- struct{}{}
		synctest.Wait()
		writes, timed := w.seen()
		if want := strings.Repeat("data: x\n\n", 3); len(writes) != 2 || writes[0] != want || writes[1] != want {
			t.Errorf("writes: %q", writes)
		}
		if timed {
			t.Error("a deadline stays while the stream waits")
		}
		<-time.After(61 * time.Second) // of a faked clock
		synctest.Wait()
		// The comment is written with the events of the next turn.
		writes, _ = w.seen()
		if last := writes[len(writes)-1]; !strings.HasPrefix(last, ": keepalive\n\n") {
			t.Errorf("after a silence: %q", last)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestALongBurstIsWrittenInParts(t *testing.T) {
	t.Parallel()
	w := &recorder{}
	s := start(w, sse.Config{})
	over := errors.New("over")
	n := 0
	err := s.Run(t.Context(), func() (<-chan struct{}, error) {
		if n++; n > 100 {
			return nil, over
		}
		s.Append(sse.AppendEvent(nil, "", "", make([]byte, 4<<10)))
		return nil, nil
	})
	if !errors.Is(err, over) {
		t.Error(err)
	}
	total := 0
	for _, b := range w.writes {
		if total += len(b); len(b) > 70<<10 {
			t.Errorf("one write has %d bytes", len(b))
		}
	}
	if total < 400<<10 {
		t.Errorf("only %d bytes were written before the end", total)
	}
}

func TestAWriteMayBeRefused(t *testing.T) {
	t.Parallel()
	w := &recorder{}
	revoked := errors.New("revoked")
	var open, sizes int
	s := start(w, sse.Config{Write: time.Second, KeepAlive: time.Minute, Before: func(_ context.Context, size int) (func(), error) {
		if sizes += size; sizes > 9 {
			return nil, revoked
		}
		open++
		return func() { open-- }, nil
	}})
	s.Event("", "", []byte("x"))
	if err := s.Flush(t.Context()); err != nil || open != 0 {
		t.Fatalf("error %v, %d open", err, open)
	}
	err := s.Run(t.Context(), func() (<-chan struct{}, error) {
		s.Event("", "", []byte("secret"))
		return nil, io.EOF
	})
	if !errors.Is(err, revoked) || len(w.writes) != 1 {
		t.Errorf("error %v, writes %q", err, w.writes)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		s := sse.Start(w, r, sse.Config{Write: time.Second, KeepAlive: time.Minute})
		defer s.End()
		s.Event("1", "hello", []byte("x"))
		_ = s.Flush(r.Context())
	}))
	defer web.Close()
	response, err := web.Client().Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if h := response.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-cache" || !response.Close {
		t.Errorf("headers: %v", h)
	}
	scan := bufio.NewScanner(response.Body)
	if !scan.Scan() || scan.Text() != "id: 1" {
		t.Errorf("first line %q", scan.Text())
	}
}
