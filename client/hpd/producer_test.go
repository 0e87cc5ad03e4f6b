package hpd_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

func input(t *testing.T, r *rig, at wire.Scope, text string) {
	t.Helper()
	if _, err := r.client.Input(t.Context(), "far", at, text); err != nil {
		t.Fatal(err)
	}
}

func say(ctx context.Context, run *hpd.Run, word string) error {
	return run.Publish(ctx, wire.TextDelta{MessageID: "m", Text: word})
}

func ended(t *testing.T, seen []event) event {
	t.Helper()
	last := seen[len(seen)-1]
	for i, e := range seen {
		if e.SequenceNumber != 0 && e.Type == last.Type && i != len(seen)-1 {
			t.Errorf("the run ended twice: %v", seen)
		}
	}
	return last
}

func TestARunIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.session()
	r.produce(hpd.Producer{Agent: "far", Do: func(ctx context.Context, run *hpd.Run) error {
		for _, w := range wire.Words(run.Work.Messages) {
			if err := say(ctx, run, w); err != nil {
				return err
			}
		}
		many := make([]wire.Payload, wire.MaxPublished+1)
		for i := range many {
			many[i] = wire.ReasoningDelta{MessageID: "m", Text: "x"}
		}
		return run.Publish(ctx, many...)
	}})
	input(t, r, at, "one two")
	seen := r.until(at, "BRANCH_RUN_COMPLETED")
	if got := words(seen); !slices.Equal(got, []string{"one ", "two"}) {
		t.Errorf("it said %q", got)
	}
	if e := ended(t, seen); e.Cancelled || e.ErrorType != nil {
		t.Errorf("the run ended as %+v", e)
	}
}

func TestARunIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.session()
	begun := make(chan struct{})
	r.produce(hpd.Producer{Agent: "far", Do: func(ctx context.Context, _ *hpd.Run) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}})
	input(t, r, at, "go")
	<-begun
	post(t, r, "/hpd/agents/far/sessions/"+at.Session+"/branches/main/interrupt", `{}`)
	if e := ended(t, r.until(at, "BRANCH_RUN_COMPLETED")); !e.Cancelled {
		t.Errorf("the run ended as %+v", e)
	}
}

func post(t *testing.T, r *rig, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		t.Fatalf("%s: %s", path, answer.Status)
	}
}

func TestAFailureSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.session()
	r.produce(hpd.Producer{Agent: "far", Do: func(context.Context, *hpd.Run) error {
		return &hpd.RunError{Type: "OutOfTokens", Message: "the month's are spent"}
	}})
	input(t, r, at, "go")
	if e := ended(t, r.until(at, "BRANCH_RUN_COMPLETED")); e.ErrorType == nil || *e.ErrorType != "OutOfTokens" {
		t.Errorf("the run ended as %+v", e)
	}
}

func TestMoreRunsThanAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.session(), r.session()
	release := make(chan struct{})
	begun := make(chan struct{}, 2)
	r.produce(hpd.Producer{Agent: "far", AtOnce: 1, Do: func(context.Context, *hpd.Run) error {
		begun <- struct{}{}
		<-release
		return nil
	}})
	input(t, r, first, "go")
	<-begun
	input(t, r, second, "go")
	if e := ended(t, r.until(second, "BRANCH_RUN_COMPLETED")); e.ErrorType == nil || *e.ErrorType != "Busy" {
		t.Errorf("the second run ended as %+v", e)
	}
	close(release)
	if e := ended(t, r.until(first, "BRANCH_RUN_COMPLETED")); e.ErrorType != nil {
		t.Errorf("the first run ended as %+v", e)
	}
}

// A question waits for its answer even if the hub restarts in between.
func TestAQuestionSurvivesARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.session()
	r.produce(hpd.Producer{Agent: "far", Do: func(ctx context.Context, run *hpd.Run) error {
		answer, err := run.Ask(ctx, wire.ClarificationRequest{RequestID: "q", SourceName: "s", Question: "which?"})
		if err != nil {
			return err
		}
		return say(ctx, run, answer.Payload.(wire.ClarificationResponse).Answer)
	}})
	input(t, r, at, "go")
	open := "/hpd/agents/far/sessions/" + at.Session + "/branches/main/requests"
	for !strings.Contains(get(t, r, open), `"q"`) { // until it is asked
	}
	r.stop()
	r.start()
	for !strings.Contains(get(t, r, open), `"q"`) {
	}
	post(t, r, "/hpd/agents/far/sessions/"+at.Session+"/branches/main/responses",
		`{"type":"CLARIFICATION_RESPONSE","requestId":"q","sourceName":"s","question":"which?","answer":"that"}`)
	seen := r.until(at, "BRANCH_RUN_COMPLETED")
	if got := words(seen); !slices.Equal(got, []string{"that"}) || ended(t, seen).ErrorType != nil {
		t.Errorf("it said %q and ended as %+v", got, ended(t, seen))
	}
}

func get(t *testing.T, r *rig, path string) string {
	t.Helper()
	at, err := v1.New(r.url(), v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := at.Download(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var text strings.Builder
	if _, err := io.Copy(&text, body); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// A producer waits for a hub that is away, and a producer that reconnects
// begins a run again without writing anything twice.
func TestNothingIsWrittenTwice(t *testing.T) {
	t.Parallel()
	for _, repeatable := range []bool{true, false} {
		r := newRig(t)
		at := r.session()
		var mu sync.Mutex
		starts := 0
		do := func(pause chan struct{}) func(context.Context, *hpd.Run) error {
			return func(ctx context.Context, run *hpd.Run) error {
				mu.Lock()
				starts++
				mu.Unlock()
				for i, w := range []string{"a", "b", "c"} {
					if err := say(ctx, run, w); err != nil {
						return err
					}
					if i != 1 || pause == nil {
						continue
					}
					pause <- struct{}{}
					select {
					case <-pause:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}
		}
		pause := make(chan struct{})
		stop := r.produce(hpd.Producer{Agent: "far", Repeatable: repeatable, Do: do(pause)})
		input(t, r, at, "go")
		<-pause
		r.stop()
		if repeatable {
			stop() // this producer is gone as well
			r.start()
			r.produce(hpd.Producer{Agent: "far", Repeatable: true, Do: do(nil)})
		} else {
			go func() { pause <- struct{}{} }() // it publishes while the hub is away
			r.start()
		}
		seen := r.until(at, "BRANCH_RUN_COMPLETED")
		if got := words(seen); !slices.Equal(got, []string{"a", "b", "c"}) || ended(t, seen).ErrorType != nil {
			t.Errorf("repeatable %v: it said %q and ended as %+v", repeatable, got, ended(t, seen))
		}
		mu.Lock()
		if want := map[bool]int{true: 2, false: 1}[repeatable]; starts != want {
			t.Errorf("repeatable %v: begun %d times, not %d", repeatable, starts, want)
		}
		mu.Unlock()
	}
}

func TestAProducerThatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.client.Produce(t.Context(), hpd.Producer{Agent: "", Do: func(context.Context, *hpd.Run) error { return errors.New("no") }})
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("without a name: %v", err)
	}
}

// The hub names open runs again after each reconnect. A run whose end it
// accepts meanwhile is not begun a second time.
func TestAnEndedRunIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 1)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // the only call is the end of a run
			taken <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		tell := func(run string) {
			_, _ = io.WriteString(w, `event: input`+"\n"+`data: {"runtimeRunId":"`+run+`","sessionId":"s","branchId":"main"}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		tell("one")
		<-taken
		tell("one")
		tell("two")
		<-r.Context().Done()
	}))
	t.Cleanup(hub.Close)
	at, err := v1.New(hub.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	produced := make(chan error, 1)
	go func() {
		produced <- hpd.New(at).Produce(ctx, hpd.Producer{Agent: "far", Do: func(_ context.Context, run *hpd.Run) error {
			done <- run.Work.RuntimeRunID
			return nil
		}})
	}()
	if first, second := <-done, <-done; first != "one" || second != "two" {
		t.Errorf("%s was done, and then %s", first, second)
	}
	cancel()
	if err := <-produced; err != nil {
		t.Error(err)
	}
}
