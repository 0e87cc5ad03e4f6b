package streams

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// Count counts the ends of events in what was read. An event may end with the first
// byte of what was read if the last byte read before belongs to its end. Comments end
// like events, but none is sent before a long silence.
func Count(read []byte, tail *byte) int {
	if len(read) == 0 {
		return 0
	}
	n := bytes.Count(read, []byte("\n\n"))
	if *tail == '\n' && read[0] == '\n' {
		n++
	}
	*tail = read[len(read)-1]
	if len(read) >= 2 && read[len(read)-2] == '\n' {
		*tail = 0 // that one is counted
	}
	return n
}

// many keeps the connections of many senders open.
var many = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}

// Post sends a body and reads the answer to its end.
func Post(ctx context.Context, url string, body []byte, want int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := many.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s: %s: %.200s", url, answer.Status, raw)
	}
	return err
}

// Timed repeats an operation for a while and reports its median in µs.
func Timed(d time.Duration, op func() (time.Duration, error)) (bench.Sample, error) {
	var took []time.Duration
	for start := time.Now(); len(took) == 0 || time.Since(start) < d; {
		t, err := op()
		if err != nil {
			return bench.Sample{}, err
		}
		took = append(took, t)
	}
	p50, p99 := bench.Latencies(took)
	return bench.Sample{Value: float64(p50.Nanoseconds()) / 1000, P50: p50, P99: p99}, nil
}
