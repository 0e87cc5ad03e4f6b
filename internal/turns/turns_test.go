package turns_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/turns"
)

const mib = 1 << 20

func open(wake <-chan struct{}) bool {
	if wake == nil {
		return true
	}
	synctest.Wait()
	select {
	case <-wake:
		return true
	default:
		return false
	}
}

func TestOnePieceOfWorkAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(4 * mib)
		first, second, third, other := g.For("a"), g.For("a"), g.For("a"), g.For("b")
		for _, turn := range []*turns.Turn{first, first, other} { // asking again changes nothing
			if !open(turn.Take()) {
				t.Fatal("the first of each principal waits")
			}
		}
		if second.Try() || !first.Try() {
			t.Fatal("a turn is taken from who has it")
		}
		w2, w3 := second.Take(), third.Take()
		if open(w2) || open(w3) {
			t.Fatal("two pieces of work of one principal are done at once")
		}
		first.Done(1)
		if !open(w2) || open(w3) {
			t.Fatal("the turn is not given in the order it was asked for")
		}
		second.Leave()
		if !open(w3) {
			t.Fatal("who leaves keeps its turn")
		}
		w1, w2 := first.Take(), second.Take()
		first.Leave() // while it waits
		third.Done(1)
		if open(w1) || !open(w2) {
			t.Fatal("who left the queue gets the turn")
		}
	})
}

func TestSharesAreBoundedInASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(4 * mib)
		work := func(who string, bytes int) time.Duration {
			t.Helper()
			began, turn := time.Now(), g.For(who)
			if err := turn.Wait(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			turn.Done(bytes)
			return time.Since(began).Round(time.Millisecond)
		}
		expect := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s waits %s, want %s", what, got, want)
			}
		}
		expect("the first", work("a", 3*mib), 0)
		expect("another principal", work("b", 1), 0)
		expect("one that is two seconds ahead", work("a", mib), 2*time.Second)
		expect("one that is a second ahead", work("a", 1), time.Second)
		<-time.After(time.Minute)
		for _, who := range []string{"a", "b", "c", "d", "e", "f"} {
			if got := work(who, 8*mib); who < "f" && got != 0 {
				t.Errorf("%s waits %s for the large work of others", who, got)
			}
		}
		expect("one more than all have", work("g", 0), 250*time.Millisecond)
	})
}

func TestWaitingHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turns.New(4 * mib)
		slow := g.For("a")
		if err := slow.Wait(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		err := g.For("a").Wait(t.Context(), time.Second)
		if fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), "1048576 bytes a second for you and 4194304 for all") || !strings.Contains(err.Error(), "limits.reads") {
			t.Errorf("who waits too long: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.For("a").Wait(ctx, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone: %v", err)
		}
		slow.Done(0)
		if !open(g.For("a").Take()) {
			t.Error("those who gave up are still in the queue")
		}
	})
}

func TestANilTurnIsAlwaysThere(t *testing.T) {
	t.Parallel()
	var none *turns.Turn
	if err := none.Wait(t.Context(), 0); err != nil || none.Take() != nil {
		t.Error(err)
	}
	none.Done(1)
	none.Leave()
}
