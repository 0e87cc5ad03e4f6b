package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
)

// scripted answers with one function after another.
type scripted struct {
	answers  []func(ctx context.Context, r *runner.Request) (provider.Reply, error)
	requests []runner.Request
}

func (s *scripted) Send(ctx context.Context, r *runner.Request, _ func(message.Envelope)) (provider.Reply, error) {
	s.requests = append(s.requests, *r)
	if len(s.answers) == 0 {
		return provider.Reply{}, &runner.SendError{Failure: provider.Failure{Provider: "test", Message: "the script has ended"}}
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(ctx, r)
}

type answer = func(ctx context.Context, r *runner.Request) (provider.Reply, error)

func says(text string, prompt, completion int64) answer {
	return func(context.Context, *runner.Request) (provider.Reply, error) {
		return provider.Reply{
			Messages: []message.Envelope{{Type: message.TypeText, Role: message.RoleAssistant, Content: text}},
			Finish:   provider.FinishStop, Usage: &provider.Usage{Prompt: prompt, Completion: completion},
		}, nil
	}
}

func fails(status int, header http.Header) answer {
	return func(context.Context, *runner.Request) (provider.Reply, error) {
		return provider.Reply{}, runner.Refused("test", status, header, "", "no", nil)
	}
}

func hangs(ctx context.Context, _ *runner.Request) (provider.Reply, error) {
	<-ctx.Done()
	return provider.Reply{}, ctx.Err()
}

func newModel(t *testing.T, o runner.Options, answers ...answer) (*runner.Model, *scripted) {
	t.Helper()
	p := &scripted{answers: answers}
	o.Model = "m"
	model, err := runner.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return model, p
}

func hello() *agent.Prompt {
	return &agent.Prompt{Messages: []agent.Message{{Role: agent.User, Text: "hello"}}}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	t.Run("waits double, within bounds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, p := newModel(t, runner.Options{Retry: runner.Retry{Attempts: 4, First: time.Second, Longest: 3 * time.Second}},
				fails(500, nil), fails(502, nil), fails(529, nil), says("ok", 1, 1))
			began := time.Now()
			if r, err := model.Respond(t.Context(), hello()); err != nil || r.Text != "ok" {
				t.Fatalf("got %v, %v", r, err)
			}
			if took := time.Since(began); took < 3*time.Second || took > 6*time.Second || len(p.requests) != 4 {
				t.Errorf("%d requests in %v", len(p.requests), took)
			}
		})
	})
	t.Run("as long as the provider asks", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, _ := newModel(t, runner.Options{}, fails(429, http.Header{"Retry-After": {"37"}}), says("ok", 1, 1))
			began := time.Now()
			if _, err := model.Respond(t.Context(), hello()); err != nil || time.Since(began) != 37*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("not past what is worth waiting for", func(t *testing.T) {
		t.Parallel()
		model, p := newModel(t, runner.Options{}, fails(429, http.Header{"Retry-After": {"3600"}}))
		if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.RateLimited || len(p.requests) != 1 {
			t.Errorf("%v after %d", err, len(p.requests))
		}
	})
	t.Run("not what is wrong with the request", func(t *testing.T) {
		t.Parallel()
		for status, code := range map[int]fault.Code{400: fault.Invalid, 401: fault.AuthFailed, 403: fault.AuthFailed, 404: fault.NotFound, 422: fault.Invalid} {
			model, p := newModel(t, runner.Options{}, fails(status, nil))
			if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != code || len(p.requests) != 1 {
				t.Errorf("%d: %v after %d", status, err, len(p.requests))
			}
		}
	})
	t.Run("at most so often", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, p := newModel(t, runner.Options{Retry: runner.Retry{Attempts: 2}}, fails(500, nil), fails(500, nil), says("late", 1, 1))
			if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.Unavailable || len(p.requests) != 2 {
				t.Errorf("%v after %d", err, len(p.requests))
			}
		})
	})
	t.Run("a reply that never ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, _ := newModel(t, runner.Options{Timeout: time.Minute}, hangs, says("ok", 1, 1))
			if r, err := model.Respond(t.Context(), hello()); err != nil || r.Text != "ok" {
				t.Errorf("got %v, %v", r, err)
			}
		})
	})
	t.Run("not once the agent is stopped", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			model, _ := newModel(t, runner.Options{}, fails(500, nil), says("late", 1, 1))
			time.AfterFunc(time.Millisecond, stop)
			if _, err := model.Respond(ctx, hello()); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestAPausedReplyGoesOn(t *testing.T) {
	t.Parallel()
	paused := func(context.Context, *runner.Request) (provider.Reply, error) {
		reply, err := says("one, ", 1, 1)(t.Context(), nil)
		reply.Finish = provider.FinishPause
		return reply, err
	}
	model, p := newModel(t, runner.Options{}, paused, says("two", 1, 1))
	if r, err := model.Respond(t.Context(), hello()); err != nil || r.Text != "one, two" || len(p.requests[1].Messages) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestACutOffReplyIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	cut := func(context.Context, *runner.Request) (provider.Reply, error) {
		return provider.Reply{Finish: provider.FinishLength}, nil
	}
	model, _ := newModel(t, runner.Options{}, cut)
	if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("got %v", err)
	}
}

// ledger keeps what is spent in memory, and may fail.
type ledger struct {
	spent runner.Spent
	saved int
	err   error
}

func (l *ledger) Load(context.Context) (runner.Spent, error) { return l.spent, nil }

func (l *ledger) Save(_ context.Context, s runner.Spent) error {
	if l.err == nil {
		l.spent = s
		l.saved++
	}
	return l.err
}

func budget(t *testing.T, limits runner.Limits, prices runner.Prices, l runner.Ledger) *runner.Budget {
	t.Helper()
	b, err := runner.NewBudget(t.Context(), limits, prices, l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	money := func(text string) runner.Money {
		m, err := runner.ParseMoney(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	t.Run("tokens", func(t *testing.T) {
		t.Parallel()
		kept := &ledger{}
		model, p := newModel(t, runner.Options{MaxTokens: 5000, Budget: budget(t, runner.Limits{Tokens: 1000}, runner.Prices{}, kept)},
			says("a", 400, 590), says("b", 1, 1))
		if _, err := model.Respond(t.Context(), hello()); err != nil {
			t.Fatal(err)
		}
		if most := p.requests[0].MaxTokens; most >= 1000 || most < 900 {
			t.Errorf("a reply of %d tokens was allowed", most)
		}
		if kept.spent.Tokens != 990 {
			t.Errorf("kept %+v", kept.spent)
		}
		_, err := model.Respond(t.Context(), hello())
		if fault.CodeOf(err) != fault.RateLimited || !strings.Contains(err.Error(), "budget of 1000 tokens is spent") || len(p.requests) != 1 {
			t.Errorf("got %v after %d requests", err, len(p.requests))
		}
		// Another process continues with what was spent.
		again, q := newModel(t, runner.Options{Budget: budget(t, runner.Limits{Tokens: 1000}, runner.Prices{}, kept)}, says("c", 1, 1))
		if _, err := again.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.RateLimited || len(q.requests) != 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("money", func(t *testing.T) {
		t.Parallel()
		b := budget(t, runner.Limits{Money: money("0.01")}, runner.Prices{Input: money("3"), Output: money("15")}, nil)
		model, p := newModel(t, runner.Options{Budget: b}, says("a", 1000, 400), says("b", 1, 1))
		if _, err := model.Respond(t.Context(), hello()); err != nil {
			t.Fatal(err)
		}
		if got := b.Spent().Money; got != money("0.009") || fmt.Sprint(got) != "$0.0090" {
			t.Errorf("spent %v", got)
		}
		if _, err := model.Respond(t.Context(), hello()); err != nil || p.requests[1].MaxTokens > 66 {
			t.Errorf("%v, with %d tokens allowed", err, p.requests[1].MaxTokens)
		}
		if _, err := runner.NewBudget(t.Context(), runner.Limits{Money: 1}, runner.Prices{}, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("without prices: %v", err)
		}
		for _, text := range []string{"", "-1", "x", "1.2.3", "."} {
			if _, err := runner.ParseMoney(text); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
	t.Run("turns, not steps or attempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, _ := newModel(t, runner.Options{Budget: budget(t, runner.Limits{Turns: 1}, runner.Prices{}, nil)},
				fails(500, nil), says("a", 1, 1), says("b", 1, 1), says("c", 1, 1))
			if _, err := model.Respond(t.Context(), hello()); err != nil {
				t.Fatal(err)
			}
			step := hello()
			step.Messages = append(step.Messages,
				agent.Message{Role: agent.Assistant, Calls: []agentCall{{ID: "1", Name: "a"}}}, agent.Message{Role: agent.ToolResult, CallID: "1"})
			if _, err := model.Respond(t.Context(), step); err != nil {
				t.Errorf("a step: %v", err)
			}
			if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.RateLimited {
				t.Errorf("a second turn: %v", err)
			}
		})
	})
	t.Run("wall time ends a reply", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model, p := newModel(t, runner.Options{Budget: budget(t, runner.Limits{WallTime: time.Minute}, runner.Prices{}, nil)}, hangs, says("late", 1, 1))
			began := time.Now()
			_, err := model.Respond(t.Context(), hello())
			if fault.CodeOf(err) != fault.RateLimited || time.Since(began) != time.Minute {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
			if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.RateLimited || len(p.requests) != 1 {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("nothing is spent that cannot be stored", func(t *testing.T) {
		t.Parallel()
		model, p := newModel(t, runner.Options{Budget: budget(t, runner.Limits{}, runner.Prices{}, &ledger{err: errors.New("no disk")})}, says("a", 1, 1))
		if _, err := model.Respond(t.Context(), hello()); fault.CodeOf(err) != fault.Unavailable || len(p.requests) != 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a refused request costs nothing", func(t *testing.T) {
		t.Parallel()
		kept := &ledger{}
		model, _ := newModel(t, runner.Options{Budget: budget(t, runner.Limits{}, runner.Prices{}, kept)}, fails(400, nil))
		if _, err := model.Respond(t.Context(), hello()); err == nil || kept.spent.Tokens != 0 || kept.saved != 2 {
			t.Errorf("%v, kept %+v", err, kept)
		}
	})
}
