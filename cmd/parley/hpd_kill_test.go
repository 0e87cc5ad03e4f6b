package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/server/folder"
)

// Many runs of a remote producer stream at once when the hub's process is
// killed. With the next process every acknowledged delta is there once and in
// order, and each run ends once.
func TestRunsAcrossAKill(t *testing.T) {
	t.Parallel()
	runs, deltas := min(scale.N(50), 200), 20
	k := &killable{scene: newScene(t, false), t: t}
	k.start()
	t.Cleanup(func() { k.kill() })
	dir := filepath.Join(k.dir, "parley-data")
	at, err := v1.New(k.url, v1.Options{
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: runs + 10}},
		Relocate: func() (string, *http.Client) {
			holder, _, err := folder.Look(dir)
			if err != nil {
				return "", nil
			}
			return holder.URL, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := hpd.New(at)

	var mu sync.Mutex
	acknowledged := map[string]int{}
	total := atomic.Int64{}
	half := make(chan struct{})
	var once sync.Once
	ctx, cancel := context.WithCancel(context.Background())
	produced := make(chan error, 1)
	ready := make(chan struct{}, 10)
	ended := make(chan error, runs)
	go func() {
		produced <- client.Produce(ctx, hpd.Producer{
			Agent: "far", Log: slog.New(slog.DiscardHandler), Ready: func() { ready <- struct{}{} },
			Do: func(ctx context.Context, run *hpd.Run) (err error) {
				defer func() { ended <- err }()
				for i := range deltas {
					if err := run.Publish(ctx, wire.TextDelta{MessageID: "m", Text: fmt.Sprintf("%d ", i)}); err != nil {
						return err
					}
					mu.Lock()
					acknowledged[run.Work.SessionID] = i + 1
					mu.Unlock()
					if total.Add(1) == int64(runs*deltas/2) {
						once.Do(func() { close(half) })
					}
				}
				return nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-produced; err != nil {
			t.Error(err)
		}
	})
	<-ready
	sessions := make([]string, runs)
	for i := range sessions {
		made, err := client.CreateSession(t.Context(), wire.CreateSession{})
		if err != nil {
			t.Fatal(err)
		}
		sessions[i] = made.ID
	}
	for _, s := range sessions {
		if _, err := client.Input(t.Context(), "far", wire.Scope{Session: s, Branch: wire.MainBranch}, "go"); err != nil {
			t.Fatal(err)
		}
	}
	<-half
	k.kill()
	k.start()
	late := time.After(2 * startTimeout)
	for range runs {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("a run was not finished: %v", err)
			}
		case <-late:
			t.Fatal("the runs do not end")
		}
	}
	for _, s := range sessions {
		checkStory(t, client, s, acknowledged[s])
	}
}

// checkStory reads a branch up to the end of its run.
func checkStory(t *testing.T, client *hpd.Client, session string, acknowledged int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	at := wire.Scope{Session: session, Branch: wire.MainBranch}
	over := errors.New("over")
	next, said, ends := 1, 0, 0
	visit := func(event jsontext.Value) error {
		var e struct {
			Type           string `json:"type"`
			MessageID      string `json:"messageId"`
			Text           string `json:"text"`
			ErrorType      string `json:"errorType"`
			SequenceNumber int    `json:"sequenceNumber"`
		}
		if err := json.Unmarshal(event, &e); err != nil {
			return err
		}
		if e.SequenceNumber != next {
			t.Errorf("%s: event %d comes after %d", session, e.SequenceNumber, next-1)
		}
		next = e.SequenceNumber + 1
		switch {
		case e.Type == "TEXT_DELTA" && e.MessageID == "m":
			if e.Text != fmt.Sprintf("%d ", said) {
				t.Errorf("%s: delta %d is %q", session, said, e.Text)
			}
			said++
		case e.Type == "BRANCH_RUN_COMPLETED":
			if ends++; e.ErrorType != "" {
				t.Errorf("%s: the run ended with %s", session, e.ErrorType)
			}
			return over
		}
		return nil
	}
	err := client.Follow(ctx, at, "", func(_ string, event jsontext.Value) error { return visit(event) })
	if !errors.Is(err, over) {
		t.Fatalf("%s: the run does not end: %v", session, err)
	}
	if said != acknowledged || ends != 1 {
		t.Errorf("%s: %d deltas of %d acknowledged, %d ends", session, said, acknowledged, ends)
	}
	// Nothing comes behind its end.
	err = client.History(ctx, at, fmt.Sprint(next-1), func(event jsontext.Value) error {
		t.Errorf("%s: behind the end comes %s", session, event)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
