package apibench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// latency compares the way from a sender to a follower with an echo of the same
// bytes over HTTP, then a sync of them to disk.
func latency(ctx context.Context, o Options, s *site) (_ bench.Figure, err error) {
	body := fmt.Appendf(nil, `{"sender":%q,"event_type":"ag2.msg.text","event_data":%s}`, s.alice, text)
	file, err := os.Create(filepath.Join(o.Dir, "floor"))
	if err != nil {
		return bench.Figure{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	echo, err := listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(raw)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	if err != nil {
		return bench.Figure{}, err
	}
	defer echo.close()

	following, cancel := context.WithCancel(ctx)
	defer cancel()
	at := s.http.url + "/v1/channels/" + s.channel + "/events"
	arrived, err := s.follow(following, at)
	if err != nil {
		return bench.Figure{}, err
	}
	ours := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return timed(d, func() (time.Duration, error) {
			start := time.Now()
			if err := post(ctx, at, body, http.StatusCreated); err != nil {
				return 0, err
			}
			select {
			case when := <-arrived: // often before the sender is answered
				return when.Sub(start), nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
	}
	floor := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return timed(d, func() (time.Duration, error) {
			start := time.Now()
			if err := post(ctx, echo.url, body, http.StatusOK); err != nil {
				return 0, err
			}
			if _, err := file.Write(body); err != nil {
				return 0, err
			}
			if err := file.Sync(); err != nil {
				return 0, err
			}
			return time.Since(start), nil
		})
	}
	return bench.Contest{
		Name: "publish to SSE follower, p50", Unit: "µs", Better: bench.Lower, Target: ptr(1.5), Ours: ours, Floor: floor,
	}.Run(ctx, o.Plan)
}

// follow tells when each event arrives that comes after those there are.
func (s *site) follow(ctx context.Context, at string) (<-chan time.Time, error) {
	head, err := s.hub.Position(ctx, s.channel)
	if err != nil {
		return nil, err
	}
	body, err := stream(ctx, at+"?after="+head.String())
	if err != nil {
		return nil, err
	}
	arrived := make(chan time.Time, 1024)
	go func() {
		defer body.Close()
		buf := make([]byte, 64<<10)
		tail := byte(0)
		for {
			n, err := body.Read(buf)
			for range events(buf[:n], &tail) {
				arrived <- time.Now()
			}
			if err != nil {
				return
			}
		}
	}()
	return arrived, nil
}

// events counts the ends of events in what was read, of which one may begin
// with the last byte of what was read before. Comments end like events, but
// none comes before a stream was silent for long.
func events(read []byte, tail *byte) int {
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

func post(ctx context.Context, url string, body []byte, want int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
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

// timed repeats an operation for a while and reports its median in µs.
func timed(d time.Duration, op func() (time.Duration, error)) (bench.Sample, error) {
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
