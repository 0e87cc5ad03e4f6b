package loop_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/internal/loop"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		recovers := func(run func()) {
			defer func() { _ = recover() }()
			run()
		}
		g := loop.New(t.Context(), recovers)
		var plain, named atomic.Int64
		g.Start(time.Second, func(context.Context) { plain.Add(1); panic("goes on") })
		g.Start(0, func(context.Context) { t.Error("an interval of zero runs") })
		if got := g.StartNamed("a", 2*time.Second, func(context.Context) { named.Add(1) }); got != loop.Started {
			t.Errorf("the first start is %v", got)
		}
		if got := g.StartNamed("a", time.Second, nil); got != loop.Taken {
			t.Errorf("a second start of the name is %v", got)
		}
		<-time.After(4*time.Second + 1)
		synctest.Wait()
		if plain.Load() != 4 || named.Load() != 2 {
			t.Errorf("after 4 s they ran %d and %d times", plain.Load(), named.Load())
		}
		if !g.Stop("a") || g.Stop("a") {
			t.Error("a named loop stops once")
		}
		<-time.After(2 * time.Second)
		g.Close()
		g.Close()
		if plain.Load() != 6 || named.Load() != 2 {
			t.Errorf("at the end they ran %d and %d times", plain.Load(), named.Load())
		}
		if got := g.StartNamed("b", time.Second, nil); got != loop.Closed {
			t.Errorf("a start after the end is %v", got)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := loop.Pause(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Fatalf("paused for %v: %v; want a minute", time.Since(began), err)
		}
		if err := loop.Pause(t.Context(), 0); err != nil {
			t.Fatalf("no pause: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := loop.Pause(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the end of the context", err)
		}
	})
}
