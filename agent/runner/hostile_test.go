package runner_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
)

// stream answers with server-sent events.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// flood writes until the other side is gone, and counts.
func flood(w http.ResponseWriter, text string, written *atomic.Int64) {
	for {
		n, err := io.WriteString(w, text)
		written.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// Whatever a provider answers, a request ends with an error of the catalogue,
// after a bounded number of attempts and bytes.
func TestHostileProviders(t *testing.T) {
	t.Parallel()
	const attempts, sockets = 3, 16 << 20 // what the sockets hold of what nobody reads
	chunk := strings.Repeat("x", 64<<10)
	for what, c := range map[string]struct {
		answer  func(w http.ResponseWriter, r *http.Request, written *atomic.Int64)
		timeout time.Duration
		code    fault.Code
	}{
		"a page": {answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Welcome to the hotel's network</html>")
		}},
		"bytes": {answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) {
			stream(w, "\x00\xff\xfe\n\ndata: \xc3\x28\n\ndata\n\n:\n\nevent:\n")
		}},
		"events of other protocols": {answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) {
			stream(w, "event: hello\ndata: []\n\ndata: 7\n\ndata: null\n\ndata: {\"type\":{},\"choices\":7,\"candidates\":\"x\",\"index\":-1}\n\n")
		}},
		"broken JSON": {answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) {
			stream(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\n\ndata: {\"choices\":[{\"delta\":{\n\n")
		}},
		"nothing": {answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) { stream(w, "") }},
		"a rate limit for ever": {code: fault.RateLimited, answer: func(w http.ResponseWriter, _ *http.Request, _ *atomic.Int64) {
			w.Header().Set("Retry-After-Ms", "1")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"code":429,"message":"slow down","type":"rate_limit_error"}}`)
		}},
		"a stream that never ends": {timeout: 50 * time.Millisecond, answer: func(w http.ResponseWriter, r *http.Request, _ *atomic.Int64) {
			stream(w, ": wait\n\n")
			<-r.Context().Done()
		}},
		"no answer at all": {timeout: 50 * time.Millisecond, answer: func(_ http.ResponseWriter, r *http.Request, _ *atomic.Int64) {
			<-r.Context().Done()
		}},
		"a line that never ends": {answer: func(w http.ResponseWriter, _ *http.Request, written *atomic.Int64) {
			stream(w, "data: ")
			flood(w, chunk, written)
		}},
		"comments that never end": {answer: func(w http.ResponseWriter, _ *http.Request, written *atomic.Int64) {
			stream(w, "")
			flood(w, ":"+chunk+"\n\n", written)
		}},
		"an error that never ends": {answer: func(w http.ResponseWriter, _ *http.Request, written *atomic.Int64) {
			w.WriteHeader(http.StatusInternalServerError)
			flood(w, chunk, written)
		}},
	} {
		for name, open := range providers {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				var asked, written atomic.Int64
				listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client goes
					c.answer(w, r, &written)
				}))
				t.Cleanup(listener.Close)
				p, err := open(t.Context(), listener.URL)
				if err != nil {
					t.Fatal(err)
				}
				model, err := runner.New(p, runner.Options{
					Model: "m", Secret: runner.NewSecret(key), Timeout: c.timeout, Log: slog.New(slog.DiscardHandler), Retry: runner.Retry{Attempts: attempts, First: time.Millisecond},
				})
				if err != nil {
					t.Fatal(err)
				}
				answer, err := model.Respond(t.Context(), hello())
				if err == nil || c.code != "" && fault.CodeOf(err) != c.code {
					t.Errorf("answered %+v, %.200v", answer, err)
				}
				n := asked.Load()
				if n < 1 || n > attempts {
					t.Errorf("asked %d times: %.200v", n, err)
				}
				if read := written.Load(); read > n*(runner.MaxReply+sockets) {
					t.Errorf("read %d bytes: %.200v", read, err)
				}
			})
		}
	}
}

// Impossible usage is ignored: it neither returns budget nor spends all of it.
func TestUsageIsPlausible(t *testing.T) {
	t.Parallel()
	budget, err := runner.NewBudget(t.Context(), runner.Limits{Tokens: 1 << 40}, runner.Prices{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, _ := newModel(t, runner.Options{Budget: budget}, says("a", -1<<62, -1<<62), says("b", 1<<62, 1<<62), says("c", 1, 1))
	spent := []int64{}
	for range 3 {
		if _, err := model.Respond(t.Context(), hello()); err != nil {
			t.Fatal(err)
		}
		spent = append(spent, budget.Spent().Tokens)
	}
	if spent[0] != 0 || spent[1] != 2e9 || spent[2] != 2e9+2 {
		t.Errorf("spent %d", spent)
	}
}
