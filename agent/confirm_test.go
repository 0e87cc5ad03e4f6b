package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

var (
	_ agent.Requests = hub.Asker{}
	_ agent.Requests = (*v1.Client)(nil)
)

// An approval that is open while the hub and the agent restart is found again:
// one request, one answer, one run of the tool.
func TestAnApprovalSurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(t *testing.T, h *house, current *atomic.Pointer[http.Handler]) agent.Requests{
		"in process": func(_ *testing.T, h *house, _ *atomic.Pointer[http.Handler]) agent.Requests { return h.hub.Asker(nil) },
		"over /v1": func(t *testing.T, h *house, current *atomic.Pointer[http.Handler]) agent.Requests {
			serve := api.New(api.Config{Hub: h.hub, Version: "test"})
			var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				serve.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Principal{Role: access.Operator})))
			})
			current.Store(&handler)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) }))
			t.Cleanup(func() {
				web.CloseClientConnections()
				web.Close()
			})
			c, err := v1.New(web.URL, v1.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var current atomic.Pointer[http.Handler]
			var ran atomic.Int32
			pay := &agent.Tool{Name: "pay", Confirm: true, Run: func(context.Context, *agent.Call) (any, error) { ran.Add(1); return "paid", nil }}
			script := func() agent.Model {
				return does(calling(turn.Call{ID: "1", Name: "pay", Arguments: `{"euros":5}`}), agent.Response{Text: "done"})
			}
			open := func(h *house) []hub.Request {
				page, err := h.hub.Requests(h.ctx, hub.RequestQuery{State: request.Open})
				if err != nil {
					t.Fatal(err)
				}
				return page.Requests
			}
			store := mem.NewStore()
			h := openHouse(t, store)
			a, b := h.join("a"), h.join("b")
			_, stopB := h.run(b, script(), agent.Options{Tools: []*agent.Tool{pay}, Confirm: agent.ConfirmBy(over(t, h, &current), agent.Confirmation{})})
			_, stopA := h.run(a, says(), agent.Options{})
			m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "conversation", Participants: []string{b.Self().ID}})
			if err != nil {
				t.Fatal(err)
			}
			h.say(a, m.ID, "pay!")
			wait(h.ctx, func() bool { return len(open(h)) == 1 })
			asked := open(h)[0]
			stopA()
			stopB()
			h.stop()

			h = openHouse(t, store)
			if got := open(h); len(got) != 1 || got[0].ID != asked.ID || got[0].Action.Name != "pay" || got[0].AskedBy != b.Self().ID {
				t.Fatalf("after the restart: %+v", got)
			}
			b = h.join("b")
			h.run(b, script(), agent.Options{Tools: []*agent.Tool{pay}, Confirm: agent.ConfirmBy(over(t, h, &current), agent.Confirmation{})})
			if _, err := h.hub.Answer(h.ctx, asked.ID, hub.Answer{Choice: "approve"}, nil); err != nil {
				t.Fatal(err)
			}
			wait(h.ctx, func() bool { return len(h.lines(m.ID)) == 2 })
			if got := h.lines(m.ID); len(got) != 2 || got[1] != "b: done" || ran.Load() != 1 {
				t.Errorf("%v, run %d times", got, ran.Load())
			}
			page, err := h.hub.Requests(h.ctx, hub.RequestQuery{})
			if err != nil || len(page.Requests) != 1 {
				t.Errorf("%d requests (%v)", len(page.Requests), err)
			}
		})
	}
}

func TestADeniedApprovalDoesNotRun(t *testing.T) {
	t.Parallel()
	h := openHouse(t, mem.NewStore())
	a, b := h.join("a"), h.join("b")
	ran := false
	pay := &agent.Tool{Name: "pay", Confirm: true, Run: func(context.Context, *agent.Call) (any, error) { ran = true; return "paid", nil }}
	model := does(calling(turn.Call{ID: "1", Name: "pay"}), agent.Response{Text: "well"})
	h.run(b, model, agent.Options{Tools: []*agent.Tool{pay}, Confirm: agent.ConfirmBy(h.hub.Asker(nil), agent.Confirmation{For: a.Self().ID})})
	h.run(a, says(), agent.Options{})
	m, err := a.OpenChannel(h.ctx, agent.Opening{Type: "conversation", Participants: []string{b.Self().ID}})
	if err != nil {
		t.Fatal(err)
	}
	h.say(a, m.ID, "pay!")
	var asked []hub.Request
	wait(h.ctx, func() bool {
		page, err := h.hub.Requests(h.ctx, hub.RequestQuery{State: request.Open, For: a.Self().ID})
		asked = page.Requests
		return err == nil && len(asked) == 1
	})
	if _, err := h.hub.Answer(h.ctx, asked[0].ID, hub.Answer{Choice: "deny", Note: "too much", As: a.Self().ID}, nil); err != nil {
		t.Fatal(err)
	}
	wait(h.ctx, func() bool { return len(h.lines(m.ID)) == 2 })
	prompts := model.asked()
	if last := prompts[1].Messages; ran || last[len(last)-1].Text != "Error: 'pay' was not confirmed: denied: too much" {
		t.Errorf("ran %v, the model is told %q", ran, last[len(last)-1].Text)
	}
}
