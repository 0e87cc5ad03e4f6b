package budget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/budget"
	"github.com/parley-hub/parley/task"
)

// bank is a hub with budgets, which can be closed and opened again.
type bank struct {
	*budget.Store
	t     *testing.T
	hub   *hub.Hub
	close func()
}

func open(t *testing.T, store *mem.Store) *bank {
	t.Helper()
	engine, err := mem.Open(mem.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(t.Context(), engine, hub.Options{Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { h.Close(); _ = engine.Close() })
	t.Cleanup(end)
	return &bank{&budget.Store{Hub: h}, t, h, end}
}

func (b *bank) set(owner string, l budget.Limits) {
	b.t.Helper()
	if _, err := b.Set(b.t.Context(), owner, l, runner.Prices{}, true); err != nil {
		b.t.Fatal(err)
	}
}

// delegates reports to the hub that one agent delegated to another.
func (b *bank) delegates(id, from, to, within string) {
	b.t.Helper()
	payload, err := json.Marshal(agent.Delegation{To: to, Within: within})
	if err == nil {
		err = b.hub.ObserveTask(b.t.Context(), task.Task{ID: id, Owner: from, State: task.Running, Spec: task.Spec{Payload: payload}}, nil, hub.MirrorOff)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// spends makes a request of so many tokens, and returns an error if it was not granted.
func (b *bank) spends(ctx context.Context, who, taskID string, tokens int64) error {
	g, err := b.Grant(ctx, budget.Ask{Agent: who, Task: taskID, Charge: runner.Charge{Turn: true, Input: 1, Output: 500}})
	if err != nil {
		return err
	}
	return b.Settle(ctx, who, taskID, g.ID, tokens, 0)
}

func (b *bank) spent(owner string) runner.Spent {
	b.t.Helper()
	read, err := b.Read(b.t.Context(), owner)
	if err != nil || read == nil {
		b.t.Fatalf("%+v, %v", read, err)
	}
	return read.Spent
}

// refused checks that a request was refused with a code, and with words in the text.
func refused(t *testing.T, err error, code fault.Code, words string) {
	t.Helper()
	if fault.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want %s %q", err, code, words)
	}
}

// What a child spends counts for its parent, however deep, and the parent's
// limit stops both; a restart of the hub keeps what was spent.
func TestChildrenSpendTheirParentsBudget(t *testing.T) {
	t.Parallel()
	store := mem.NewStore()
	b := open(t, store)
	ctx := t.Context()
	b.set("parent", budget.Limits{Tokens: 1000})
	b.set("child", budget.Limits{Tokens: 10_000})
	b.delegates("t1", "parent", "child", "")
	b.delegates("t2", "child", "grandchild", "t1")
	for _, step := range []struct{ who, task string }{{"parent", ""}, {"child", "t1"}, {"grandchild", "t2"}} {
		if err := b.spends(ctx, step.who, step.task, 200); err != nil {
			t.Fatal(step, err)
		}
	}
	if parent, child := b.spent("parent"), b.spent("child"); parent.Tokens != 600 || parent.Turns != 3 || child.Tokens != 400 {
		t.Errorf("the parent spent %+v, the child %+v", parent, child)
	}
	// What is left bounds what the grandchild may write.
	g, err := b.Grant(ctx, budget.Ask{Agent: "grandchild", Task: "t2", Charge: runner.Charge{Input: 100}})
	if err != nil || g.Output != 300 {
		t.Fatalf("%+v, %v", g, err)
	}
	b.close()
	b = open(t, store)
	if b.spent("parent").Tokens != 1000 {
		t.Errorf("after a restart: %+v", b.spent("parent"))
	}
	refused(t, b.spends(ctx, "parent", "", 1), fault.RateLimited, "the budget of 1000 tokens is spent")
	refused(t, b.spends(ctx, "child", "t1", 1), fault.RateLimited, "for the agent that delegated it the budget of 1000 tokens is spent")
	refused(t, b.spends(ctx, "grandchild", "t2", 1), fault.RateLimited, "for the agent that delegated it the budget of 1000 tokens is spent")
	if err := b.spends(ctx, "child", "", 1); err != nil {
		t.Errorf("on its own: %v", err)
	}
	if b.spent("child").Tokens != 801 {
		t.Errorf("what was refused was counted: %+v", b.spent("child"))
	}
	// The unused part of a grant is returned, once, to those who granted it.
	for range 2 {
		if err := b.Settle(ctx, "grandchild", "t2", g.ID, 50, 50); err != nil {
			t.Fatal(err)
		}
	}
	if b.spent("parent").Tokens != 700 {
		t.Errorf("settled: %+v", b.spent("parent"))
	}
}

func TestWhoMayNotSpend(t *testing.T) {
	t.Parallel()
	b := open(t, mem.NewStore())
	ctx := t.Context()
	b.set("parent", budget.Limits{Turns: 100})
	b.delegates("t1", "parent", "child", "")
	refused(t, b.spends(ctx, "stranger", "t1", 1), fault.AccessDenied, "is not delegated to 'stranger'")
	g, err := b.Grant(ctx, budget.Ask{Agent: "child", Task: "t1", Charge: runner.Charge{Input: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.hub.UpdateTask(ctx, task.Update{ID: "t1", State: task.Completed}, nil, hub.MirrorOff); err != nil {
		t.Fatal(err)
	}
	refused(t, b.spends(ctx, "child", "t1", 1), fault.Protocol, "has ended")
	if err := b.Settle(ctx, "child", "t1", g.ID, 3, 0); err != nil || b.spent("parent").Tokens != 3 {
		t.Errorf("settling what has ended: %v, %+v", err, b.spent("parent"))
	}
	// The length of a chain of delegations is bounded.
	within := ""
	for n := range 20 {
		id := fmt.Sprint("d", n)
		b.delegates(id, fmt.Sprint("a", n), fmt.Sprint("a", n+1), within)
		within = id
	}
	if err := b.spends(ctx, "a16", "d15", 1); err != nil {
		t.Error(err)
	}
	refused(t, b.spends(ctx, "a17", "d16", 1), fault.AccessDenied, "delegated through 17 agents")
}

// Many spend at once, and never more than the limit.
func TestManySpendAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, mem.NewStore())
	b.set("parent", budget.Limits{Turns: 20})
	var granted atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		id := string(rune('a' + n))
		b.delegates(id, "parent", "child-"+id, "")
		all.Go(func() {
			for range 5 {
				switch err := b.spends(t.Context(), "child-"+id, id, 1); fault.CodeOf(err) {
				case fault.RateLimited:
				default:
					if err != nil {
						t.Error(err)
						return
					}
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got := b.spent("parent"); granted.Load() != 20 || got.Turns != 20 || got.Tokens != 20 {
		t.Errorf("%d were granted, %+v is counted", granted.Load(), got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := open(t, mem.NewStore())
	ctx := t.Context()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.Now = func() time.Time { return now }
	prices := runner.Prices{Input: 1e9, Output: 1e9} // a dollar for a million
	if _, err := b.Set(ctx, "desk", budget.Limits{Money: 1e6, Nanoseconds: int64(time.Minute)}, prices, false); err != nil {
		t.Fatal(err)
	}
	// A child without prices pays those of the budget, one with its own pays its own.
	b.delegates("t", "desk", "child", "")
	ask := budget.Ask{Agent: "child", Task: "t", Charge: runner.Charge{Input: 100, Output: 100}}
	g, err := b.Grant(ctx, ask)
	if err != nil || !g.Until.Equal(now.Add(time.Minute)) || b.spent("desk").Money != 200_000 {
		t.Errorf("%+v, %v, %+v", g, err, b.spent("desk"))
	}
	ask.Prices = runner.Prices{Input: 8e9, Output: 8e9}
	_, err = b.Grant(ctx, ask)
	refused(t, err, fault.RateLimited, "$0.0010 is spent")
	now = now.Add(time.Minute)
	refused(t, b.spends(ctx, "desk", "", 1), fault.RateLimited, "1m0s of time is spent")
	for name, set := range map[string]budget.Limits{"more time": {Money: 1e6, Nanoseconds: int64(time.Hour)}, "no limit of money": {Nanoseconds: int64(time.Second)}} {
		if _, err := b.Set(ctx, "desk", set, prices, false); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Set(ctx, "desk", budget.Limits{Money: 1e5, Nanoseconds: int64(time.Second)}, prices, false); err != nil {
		t.Errorf("less: %v", err)
	}
	if _, err := b.Set(ctx, "desk", budget.Limits{}, prices, true); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("none: %v", err)
	}
	if err := b.Remove(ctx, "desk"); err != nil {
		t.Fatal(err)
	}
	if read, err := b.Read(ctx, "desk"); read != nil || err != nil {
		t.Errorf("removed: %+v, %v", read, err)
	}
	if g, err := b.Grant(ctx, budget.Ask{Agent: "desk"}); err != nil || g.ID != "" {
		t.Errorf("without a budget: %+v, %v", g, err)
	}
	if _, err := b.Grant(ctx, budget.Ask{Agent: "desk", Charge: runner.Charge{Input: -1}}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("less than nothing: %v", err)
	}
}
