package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/journal/mem"
)

// A part that never closes, as a hub under an adapter that does not return,
// does not keep the process.
func TestEveryPartClosesWithinTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine, err := mem.Open(mem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := &ending{engine: engine, timeout: 10 * time.Second}
		ctx, told := context.WithCancel(t.Context())
		defer e.watch(ctx)()
		told()
		<-time.After(4 * time.Second) // the drain
		release := make(chan struct{})
		stuck := func() error { <-release; return nil }
		start := time.Now()
		err = e.closing("the hub", stuck)
		if err == nil || !strings.Contains(err.Error(), "the hub did not close in time") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("took %v; the drain left 6s", took)
		}
		start = time.Now()
		if err := e.closing("the journal", stuck); err == nil || time.Since(start) != failedTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(release)
		want := errors.New("why")
		if err := e.closing("a part", func() error { return want }); !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
}
