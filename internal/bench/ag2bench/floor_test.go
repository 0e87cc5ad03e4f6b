package ag2bench

import (
	"bufio"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// The floor's server echoes, answers posts, and its loop reaches every reader.
func TestFloor(t *testing.T) {
	t.Parallel()
	in, stop := io.Pipe()
	told, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- ServeFloor(t.Context(), in, out) }()
	line, err := bufio.NewReader(told).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var where struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(line, &where); err != nil {
		t.Fatal(err)
	}
	r := &run{Options: Options{Readers: 3}, ctx: t.Context(), echo: &bench.Process{URL: where.URL}}
	echo, err := dial(r.ctx, where.URL+echoPath, busyBuffer)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"x", string(text), string(make([]byte, 20_000))} {
		if _, err := echo.conn.Write(message([]byte(said))); err != nil {
			t.Fatal(err)
		}
		if got, err := echo.next(); err != nil || string(got) != said {
			t.Fatalf("%d bytes came back as %d, %v", len(said), len(got), err)
		}
	}
	echo.close()
	r.Connections, r.InFlight = 2, 8
	posters, err := r.answered()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := posters.side(r.ctx, time.Millisecond); err != nil || s.Value <= 0 {
		t.Errorf("%g posts a second are answered, %v", s.Value, err)
	}
	posters.close()
	l, err := r.loop(900)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.side(r.ctx, time.Millisecond)
	if err != nil || s.Value <= 0 {
		t.Errorf("the loop made %g deliveries a second, %v", s.Value, err)
	}
	for _, reader := range l.audience.readers {
		if got := reader.bytes.Load(); got != 900 {
			t.Errorf("a reader got %d bytes", got)
		}
	}
	l.close()
	if err := stop.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestRunNeedsItsCommands(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Options{}); err == nil {
		t.Error("a run without commands begins")
	}
}

func TestAnAnswerIsJudged(t *testing.T) {
	t.Parallel()
	for answer, ok := range map[string]bool{
		`{"kind":"response","request_id":"1","ok":true,"result":"x"}`:     true,
		`{"kind": "response", "request_id": "1", "ok": true}`:             true,
		`{"kind":"response","request_id":"1","ok":false,"error_code":""}`: false,
		`{"kind":"notify","envelope":{}}`:                                 false,
	} {
		if err := accepted([]byte(answer)); (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
