package hpd_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/scale"
)

// stepped publishes a delta for each step, and ends when the steps end.
type stepped struct{ steps chan string }

func (p stepped) OnInput(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
	for {
		select {
		case text, ok := <-p.steps:
			if !ok {
				return nil
			}
			if err := run.Publish(ctx, wire.TextDelta{MessageID: "m", Text: text}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Of many readers of one branch one stops reading: it is cut off within its bound,
// the others get everything in order, and it resumes at its position.
func TestManyReadersOfOneBranch(t *testing.T) {
	t.Parallel()
	readers, deltas := min(scale.N(250), 1_000), 200
	p := stepped{make(chan string)}
	r := newRig(t, hpd.Config{
		Producers: map[string]hpd.Producer{"echo": p},
		// On few cores all readers are slow: the bound in bytes cuts one off, not time.
		Limits: hpd.Limits{Behind: 4 * deltas, BehindBytes: 256 << 10, Write: wait},
	})
	s := r.session()
	path := "/agents/echo/sessions/" + s + "/branches/main/events/live"
	var reading sync.WaitGroup
	passed := make([]atomic.Int64, readers)
	for i := range readers {
		body := r.lines(path)
		reading.Go(func() {
			defer body.Close()
			lines := bufio.NewReaderSize(body, 128<<10)
			for {
				line, err := lines.ReadSlice('\n')
				switch {
				case err != nil:
					t.Errorf("reader %d: the stream ended: %v", i, err)
					return
				case bytes.Contains(line[:min(len(line), 100)], []byte(`"BRANCH_RUN_COMPLETED"`)):
					return
				case bytes.Contains(line[:min(len(line), 100)], []byte(`"TEXT_DELTA"`)):
					if want := fmt.Sprintf(`"text":"%d `, passed[i].Load()); !bytes.Contains(line[:100], []byte(want)) {
						t.Errorf("reader %d got %.100s, not %s", i, line, want)
					}
					passed[i].Add(1)
				}
			}
		})
	}
	stuck := r.lines(path)
	defer stuck.Close()
	r.input("echo", s, "main", "go")
	behind := func() int64 {
		least := passed[0].Load()
		for i := range passed {
			least = min(least, passed[i].Load())
		}
		return least
	}
	padding := strings.Repeat("x", 8<<10)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for i := range deltas {
		for int64(i)-behind() > 8 && !t.Failed() { // no active reader falls behind
			<-poll.C
		}
		p.steps <- fmt.Sprintf("%d %s", i, padding)
	}
	close(p.steps)
	reading.Wait()

	// The stuck reader's stream ends without the final chunk.
	w := &reader{t: t, res: &http.Response{Body: stuck}, cancel: func() {}, events: make(chan frame, deltas+10)}
	w.pump()
	last, seen := "", 0
	for f := range w.events {
		if f.event["type"] == "TEXT_DELTA" {
			last, seen = f.id, seen+1
		}
	}
	if w.err == nil || seen == deltas || last == "" {
		t.Fatalf("the stuck reader got %d of %d and ended with %v", seen, deltas, w.err)
	}
	again := r.watch(path, map[string]string{"Last-Event-ID": last})
	for _, f := range again.frames("BRANCH_RUN_COMPLETED") {
		if f.event["type"] != "TEXT_DELTA" {
			continue
		}
		if want := fmt.Sprintf("%d ", seen); !strings.HasPrefix(f.event["text"].(string), want) {
			t.Fatalf("resumed with %.20q, not %q", f.event["text"], want)
		}
		seen++
	}
	if seen != deltas {
		t.Errorf("%d deltas of %d after it resumed", seen, deltas)
	}
}

// lines opens a stream on a connection with a small buffer.
func (r *rig) lines(path string) io.ReadCloser {
	r.t.Helper()
	via := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return conn, err
	}}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.http.URL+"/hpd"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := via.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("stream: %s", res.Status)
	}
	return res.Body
}

// Many runs in this process stream at once when the store crashes: all acknowledged
// events are in the history, and each run has ended once.
func TestManyRunsAndACrash(t *testing.T) {
	t.Parallel()
	runs := min(scale.N(50), 200)
	var mu sync.Mutex
	acknowledged := map[string]int{} // deltas by session
	total := atomic.Int64{}
	talk := hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
		for i := 0; ; i++ {
			if err := run.Publish(ctx, wire.TextDelta{MessageID: "m", Text: fmt.Sprintf("%d ", i)}); err != nil {
				return err
			}
			mu.Lock()
			acknowledged[run.Scope().Session] = i + 1
			mu.Unlock()
			total.Add(1)
		}
	})
	begin := make(chan struct{}) // closed when all have begun: runs that stream leave the others little time
	waiting := hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, work hpd.Work) error {
		select {
		case <-begin:
			return talk(ctx, run, work)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"talk": waiting}})
	sessions := make([]string, runs)
	for i := range sessions {
		sessions[i] = r.session()
		if a := r.input("talk", sessions[i], "main", "go"); a.status != http.StatusAccepted {
			t.Fatalf("input: %d %s", a.status, a.raw)
		}
	}
	close(begin)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for late := time.Now().Add(wait); total.Load() < int64(20*runs) && time.Now().Before(late); {
		<-poll.C
	}
	r.crash()
	for _, s := range sessions {
		history := r.history(s, "main")
		for i, e := range history {
			if e["sequenceNumber"] != float64(i+1) {
				t.Fatalf("event %d has the number %v", i+1, e["sequenceNumber"])
			}
		}
		said := only(history, "TEXT_DELTA")[1:] // the first is the user's
		if len(said) < acknowledged[s] {
			t.Errorf("%d deltas were acknowledged, %d are there", acknowledged[s], len(said))
		}
		for i, e := range said {
			if e["text"] != fmt.Sprintf("%d ", i) {
				t.Fatalf("delta %d is %v", i, e["text"])
			}
		}
		ends := only(history, "BRANCH_RUN_COMPLETED")
		if len(ends) != 1 || ends[0]["errorType"] != "RuntimeLost" {
			t.Errorf("the run ended as %v", ends)
		}
		if a := r.do("GET", "/agents/talk/sessions/"+s+"/branches/main/runs/active", nil); strings.TrimSpace(string(a.raw)) != "null" {
			t.Errorf("a run is active: %s", a.raw)
		}
	}
}
