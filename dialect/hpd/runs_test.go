package hpd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// input posts a text and returns the answer.
func (r *rig) input(agent, session, branch, text string) answer {
	r.t.Helper()
	return r.do("POST", "/agents/"+agent+"/sessions/"+session+"/branches/"+branch+"/inputs", object{"text": text})
}

// run posts a text and waits until its run is over.
func (r *rig) run(agent, session, branch, text string) object {
	r.t.Helper()
	w := r.watch("/agents/"+agent+"/sessions/"+session+"/branches/"+branch+"/events/live", nil)
	defer w.close()
	if a := r.input(agent, session, branch, text); a.status != 202 {
		r.t.Fatalf("input: %d %s", a.status, a.raw)
	}
	seen := w.until("BRANCH_RUN_COMPLETED")
	return seen[len(seen)-1]
}

// gate is a producer that publishes some text and then waits.
type gate struct {
	open     chan struct{}
	started  chan *hpd.Run
	then     func(ctx context.Context, run *hpd.Run) error
	stubborn bool
}

func newGate() *gate { return &gate{open: make(chan struct{}), started: make(chan *hpd.Run, 100)} }

func (g *gate) OnInput(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
	id := "m-" + run.ID()
	if err := run.Publish(ctx, wire.TextMessageStart{MessageID: id, Role: "assistant"}, wire.TextDelta{MessageID: id, Text: "partial"}); err != nil {
		return err
	}
	g.started <- run
	done := ctx.Done()
	if g.stubborn {
		done = nil
	}
	select {
	case <-g.open:
	case <-done:
		return ctx.Err()
	}
	if g.then != nil {
		return g.then(ctx, run)
	}
	return nil
}

func TestInputs(t *testing.T) {
	t.Parallel()
	echo := hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}}
	spec.Check(t, "hpd-events#86: the short form is accepted, with the run and where it is", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		a := r.input("echo", s, "main", "hi")
		t.Equal(a.status, 202)
		run, _ := a.object()["runtimeRunId"].(string)
		t.Equal(len(run), 32)
		t.True(a.object()["startedAt"] != nil, "startedAt is there")
		t.Equal(a.header.Get("Location"), "/hpd/agents/echo/sessions/"+s+"/branches/main/runs/"+run)
	})
	for name, body := range map[string]string{
		"hpd-events#87: a typed text":           `{"type":"USER_TEXT_INPUT","text":"hi","sessionId":"x","branchId":"y","agentId":"z"}`,
		"hpd-events#88: messages with contents": `{"type":"USER_MESSAGES_INPUT","messages":[{"role":"user","contents":[{"$type":"text","text":"hi"}]}]}`,
		"hpd-events#88: messages with text":     `{"type":"user_messages_input","messages":[{"text":"hi"}]}`,
		"hpd-events#88: messages with content":  `{"type":"USER_MESSAGES_INPUT","messages":[{"content":"hi"}]}`,
	} {
		spec.Check(t, name, func(t *spec.T) {
			r := newRig(t, echo)
			s := r.session()
			w := r.watch("/agents/echo/sessions/"+s+"/branches/main/events/live", nil)
			a := r.do("POST", "/agents/echo/sessions/"+s+"/branches/main/inputs", body)
			t.Equal(a.status, 202)
			t.Equal(only(w.until("BRANCH_RUN_COMPLETED"), "TEXT_DELTA")[0]["text"], any("hi"))
		})
	}
	for name, body := range map[string]string{
		"hpd-events#89: blank text":       `{"text":"  "}`,
		"hpd-events#89: blank typed text": `{"type":"USER_TEXT_INPUT","text":""}`,
		"hpd-events#90: a response":       `{"type":"PERMISSION_RESPONSE","permissionId":"p","sourceName":"s","approved":true}`,
		"hpd-events#11: an unknown type":  `{"type":"NO_SUCH_INPUT","text":"x"}`,
		"hpd-events#10: a list":           `[]`,
		"hpd-events#10: nothing in it":    `{}`,
		"hpd-events#10: a text":           `"x"`,
		"hpd-events#10: a null type":      `{"type":null}`,
	} {
		spec.Check(t, name, func(t *spec.T) {
			r := newRig(t, echo)
			s := r.session()
			a := r.do("POST", "/agents/echo/sessions/"+s+"/branches/main/inputs", body)
			t.Equal(a.status, 400)
			t.Equal(a.header.Get("Content-Type"), "application/problem+json")
			t.Equal(len(r.history(s, "main")), 3)
		})
	}
	spec.Check(t, "hpd-events#91: the route's ids count, not the body's", func(t *spec.T) {
		r := newRig(t, echo)
		s, other := r.session(), r.session()
		w := r.watch("/agents/echo/sessions/"+s+"/branches/main/events/live", nil)
		r.do("POST", "/agents/echo/sessions/"+s+"/branches/main/inputs", object{"type": "USER_TEXT_INPUT", "text": "hi", "sessionId": other, "branchId": "z", "agentId": "q"})
		seen := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[0]["agentId"], any("echo"))
		t.Equal(seen[0]["sessionId"], any(s))
		t.Equal(len(r.history(other, "main")), 3)
	})
	spec.Check(t, "hpd-events#41: an input becomes MESSAGE_STARTED, TEXT_* and MESSAGE_COMPLETED", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		r.run("echo", s, "main", "hello there")
		h := r.history(s, "main")
		t.Equal(types(h)[3:10], []string{
			"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "MESSAGE_STARTED", "TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_COMPLETED",
		})
		t.Equal(h[5]["role"], any("user"))
		t.Equal(h[7]["text"], any("hello there"))
		t.Equal(h[7]["messageId"], h[5]["messageId"])
	})
	spec.Check(t, "hpd-events#42 hpd-events#43: an image becomes CONTENT_ADDED, text never does", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		w := r.watch("/agents/echo/sessions/"+s+"/branches/main/events/live", nil)
		r.do("POST", "/agents/echo/sessions/"+s+"/branches/main/inputs",
			`{"type":"USER_MESSAGES_INPUT","messages":[{"messageId":"m-1","contents":[{"$type":"text","text":"see"},{"$type":"hpd:image","mediaType":"image/png","uri":"hpd-content://x"}]}]}`)
		w.until("BRANCH_RUN_COMPLETED")
		added := only(r.history(s, "main"), "CONTENT_ADDED")
		t.Equal(len(added), 1)
		t.Equal(added[0]["messageId"], any("m-1"))
		t.Equal(added[0]["content"].(object)["$type"], any("hpd:image"))
	})
	spec.Check(t, "hpd-events#98: an unknown run is 404; so are unknown scopes and agents", func(t *spec.T) {
		r := newRig(t, echo)
		s := r.session()
		t.Equal(r.do("GET", "/agents/echo/sessions/"+s+"/branches/main/runs/nothing", nil).status, 404)
		t.Equal(r.input("echo", s, "nothing", "x").status, 404)
		t.Equal(r.input("echo", "nothing", "main", "x").status, 404)
		t.Equal(r.input("nobody", s, "main", "x").status, 404)
		t.Equal(len(r.history(s, "main")), 3)
	})
	t.Run("an input of more than 512 events is 413, one of 512 is taken", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		message := func(contents int) string {
			return `{"contents":[` + strings.TrimSuffix(strings.Repeat(`{"$type":"uri","uri":"u"},`, contents), ",") + `]}`
		}
		input := func(messages string) answer {
			return r.do("POST", "/agents/echo/sessions/"+s+"/branches/main/inputs", `{"type":"USER_MESSAGES_INPUT","messages":[`+messages+`]}`)
		}
		many := strings.Repeat(message(1)+",", 169) // of three events each; two events begin the run
		c.Equal(input(message(600)).status, 413)
		c.Equal(input(many+message(2)).status, 413)
		c.Equal(len(r.history(s, "main")), 3)
		c.Equal(input(many+message(1)).status, 202)
	})
	t.Run("each content is bounded as the event that it becomes, not their sum", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, echo)
		s := r.session()
		input := func(sizes ...int) string {
			var list []string
			for _, size := range sizes {
				list = append(list, `{"$type":"data","mediaType":"a/b","data":"`+strings.Repeat("A", size)+`"}`)
			}
			return `{"type":"USER_MESSAGES_INPUT","messages":[{"contents":[` + strings.Join(list, ",") + `]}]}`
		}
		at := "/agents/echo/sessions/" + s + "/branches/main/"
		for _, sizes := range [][]int{{1 << 20}, {5, 1 << 20}, {900_000, 900_000, 900_000, 900_000, 900_000}} {
			a := r.do("POST", at+"inputs", input(sizes...))
			c.Equal(a.status, 413)
			c.Contains(string(a.raw), "POST …/content")
		}
		c.Equal(len(r.history(s, "main")), 3)
		k := r.socket(c, at+"ws")
		k.send(input(700_000, 700_000))
		k.until("BRANCH_RUN_COMPLETED")
		c.Equal(r.do("POST", at+"inputs", input(700_000, 700_000)).status, 202)
		c.Equal(len(only(r.history(s, "main"), "CONTENT_ADDED")), 4)
		k = r.socket(c, at+"ws")
		k.send(input(1 << 20))
		k.closesWith(1009, "the input is too large")
	})
	t.Run("the default agent takes inputs for unknown ones", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := newRig(t, hpd.Config{Producers: echo.Producers, DefaultAgent: "echo"})
		c.Equal(r.run("somebody", r.session(), "main", "x")["agentId"], any("somebody"))
	})
}

func TestRuns(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#92 hpd-events#94: a second input is refused, also for another agent, and disturbs nothing", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g, "other": hpd.Echo{}}})
		s := r.session()
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		t.Equal(r.input("g", s, "main", "x").status, 202)
		<-g.started
		for _, agent := range []string{"g", "other"} {
			a := r.input(agent, s, "main", "y")
			t.Equal(a.status, 409)
			t.Equal(a.code(), "BranchRunActive")
		}
		a := r.do("POST", "/agents/g/sessions/"+s+"/threads/main/inputs", object{"text": "y"})
		t.Equal(a.code(), "ThreadRunActive")
		close(g.open)
		seen := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(seen[len(seen)-1]["cancelled"], any(false))
		t.Equal(len(only(r.history(s, "main"), "BRANCH_RUN_STARTED")), 1)
	})
	spec.Check(t, "hpd-events#93: another branch of the session runs at the same time", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g, "echo": hpd.Echo{}}})
		s := r.session()
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b"})
		t.Equal(r.input("g", s, "main", "x").status, 202)
		<-g.started
		t.Equal(r.run("echo", s, "b", "y")["cancelled"], any(false))
		t.Equal(r.do("GET", "/agents/g/sessions/"+s+"/branches/main/runs/active", nil).object()["status"], any("active"))
	})
	spec.Check(t, "hpd-events#95 hpd-events#96: after its end the branch is idle and takes another input", func(t *spec.T) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
		s := r.session()
		active := "/agents/echo/sessions/" + s + "/branches/main/runs/active"
		t.Equal(string(r.do("GET", active, nil).raw), "null")
		r.run("echo", s, "main", "x")
		t.Equal(string(r.do("GET", active, nil).raw), "null")
		t.Equal(r.run("echo", s, "main", "y")["cancelled"], any(false))
	})
	spec.Check(t, "hpd-events#97: completed, cancelled and failed are told apart", func(t *spec.T) {
		g := newGate()
		failing := hpd.ProducerFunc(func(context.Context, *hpd.Run, hpd.Work) error {
			return &hpd.RunError{Type: "TimeoutException", Message: "model timed out"}
		})
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g, "echo": hpd.Echo{}, "f": failing}})
		s := r.session()
		r.run("echo", s, "main", "x")
		r.run("f", s, "main", "x")
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		<-g.started
		t.Equal(r.do("POST", "/agents/g/sessions/"+s+"/branches/main/interrupt", nil).status, 202)
		w.until("BRANCH_RUN_COMPLETED")
		for agent, want := range map[string]string{"echo": "completed", "g": "cancelled", "f": "failed"} {
			list := r.do("GET", "/agents/"+agent+"/sessions/"+s+"/branches/main/runs", nil).list()
			t.Equal(len(list), 1)
			t.Equal(list[0]["status"], any(want))
			t.Equal(list[0]["backgroundTasks"], any([]any{}))
			one := r.do("GET", "/agents/"+agent+"/sessions/"+s+"/branches/main/runs/"+list[0]["runtimeRunId"].(string), nil)
			t.Equal(one.object(), list[0])
			if agent == "f" {
				t.Equal(list[0]["error"], any(object{"type": "TimeoutException", "message": "model timed out"}))
			}
		}
	})
	spec.Check(t, "hpd-events#38 hpd-events#40: a failed turn leaves MESSAGE_TURN_ERROR, a finished one never gets it", func(t *spec.T) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{
			"f": hpd.ProducerFunc(func(context.Context, *hpd.Run, hpd.Work) error { return errors.New("no luck") }),
			"late": hpd.ProducerFunc(func(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
				if err := run.Publish(ctx, wire.MessageTurnFinished{MessageTurnID: run.Turn()}); err != nil {
					return err
				}
				return errors.New("too late")
			}),
		}})
		s := r.session()
		r.run("f", s, "main", "x")
		failed := only(r.history(s, "main"), "MESSAGE_TURN_ERROR", "MESSAGE_TURN_STARTED")
		t.Equal(len(failed), 2)
		t.Equal(failed[1]["messageTurnId"], failed[0]["messageTurnId"])
		t.Equal(failed[1]["message"], any("no luck"))
		t.True(failed[1]["errorType"] != nil, "errorType is there")
		s = r.session()
		end := r.run("late", s, "main", "x")
		t.Equal(end["errorMessage"], any("too late"))
		t.Equal(len(only(r.history(s, "main"), "MESSAGE_TURN_ERROR")), 0)
	})
	spec.Check(t, "hpd-events#99 hpd-events#100: nothing to interrupt is 409; no body has the default reason", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		at := "/agents/g/sessions/" + s + "/branches/main/interrupt"
		a := r.do("POST", at, nil)
		t.Equal(a.status, 409)
		t.Equal(a.code(), "BranchRunNotActive")
		t.Equal(r.do("POST", "/agents/g/sessions/"+s+"/threads/main/interrupt", nil).code(), "ThreadRunNotActive")
		t.Equal(r.do("POST", "/agents/g/sessions/"+s+"/branches/none/interrupt", nil).status, 404)
		t.Equal(r.do("POST", at, `{"type":"USER_TEXT_INPUT","text":"x"}`).status, 400)
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		<-g.started
		t.Equal(r.do("POST", at, nil).status, 202)
		handled := only(w.until("BRANCH_RUN_COMPLETED"), "INTERRUPTION_HANDLED")
		t.Equal(handled[0]["reason"], any("Interrupted by client."))
		t.Equal(handled[0]["source"], any("User"))
	})
	spec.Check(t, "hpd-events#101 hpd-events#102: handled, then completed as cancelled; the partial text stays", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		<-g.started
		r.do("POST", "/agents/g/sessions/"+s+"/branches/main/interrupt", `{"reason":"enough"}`)
		seen := types(w.until("BRANCH_RUN_COMPLETED"))
		t.Equal(seen[len(seen)-2:], []string{"INTERRUPTION_HANDLED", "BRANCH_RUN_COMPLETED"})
		h := r.history(s, "main")
		t.True(slices.ContainsFunc(h, func(e object) bool { return e["text"] == "partial" }), "the partial text is kept")
		t.Equal(h[len(h)-1]["cancelled"], any(true))
		t.Equal(len(only(h, "INTERRUPTION_HANDLED")), 0)
	})
	spec.Check(t, "hpd-events#39: a cancelled turn leaves no error", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		<-g.started
		r.do("POST", "/agents/g/sessions/"+s+"/branches/main/interrupt", nil)
		w.until("BRANCH_RUN_COMPLETED")
		t.Equal(len(only(r.history(s, "main"), "MESSAGE_TURN_ERROR", "MESSAGE_TURN_FINISHED")), 0)
	})
	t.Run("a producer that does not end is cut off", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := newGate()
		g.stubborn = true
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}, InterruptGrace: time.Millisecond})
		s := r.session()
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		run := <-g.started
		r.do("POST", "/agents/g/sessions/"+s+"/branches/main/interrupt", nil)
		seen := w.until("BRANCH_RUN_COMPLETED")
		c.Equal(seen[len(seen)-1]["cancelled"], any(true))
		c.ErrorContains(run.Publish(t.Context(), wire.TextDelta{MessageID: "m", Text: "late"}), "not active")
		close(g.open)
	})
	spec.Check(t, "hpd-events#104: nobody to run it is 500, with the run's end in the history", func(t *spec.T) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
		s := r.session()
		a := r.input("user", s, "main", "x") // registered, but runs nothing
		t.Equal(a.status, 500)
		t.Equal(a.code(), "NoProducer")
		h := r.history(s, "main")
		t.Equal(h[len(h)-1]["errorType"], any("NoProducer"))
		t.Equal(r.run("echo", s, "main", "y")["cancelled"], any(false))
	})
	spec.Check(t, "hpd-events#106: of 50 inputs at once one is accepted", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		var mu sync.Mutex
		got := map[int]int{}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				a := r.input("g", s, "main", "x")
				mu.Lock()
				defer mu.Unlock()
				got[a.status]++
			})
		}
		all.Wait()
		t.Equal(got, map[int]int{202: 1, 409: 49})
	})
	spec.Check(t, "hpd-events#105: a run that a restart cut off is failed, not active", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g, "echo": hpd.Echo{}}})
		s := r.session()
		r.input("g", s, "main", "x")
		<-g.started
		r.crash()
		t.Equal(string(r.do("GET", "/agents/g/sessions/"+s+"/branches/main/runs/active", nil).raw), "null")
		list := r.do("GET", "/agents/g/sessions/"+s+"/branches/main/runs", nil).list()
		t.Equal(list[0]["status"], any("failed"))
		t.Equal(list[0]["error"].(object)["type"], any("RuntimeLost"))
		t.Equal(r.run("echo", s, "main", "y")["cancelled"], any(false))
	})
	spec.Check(t, "hpd-events#49: a restart keeps the history byte for byte", func(t *spec.T) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
		s := r.session()
		r.run("echo", s, "main", "some words")
		before := r.do("GET", "/sessions/"+s+"/branches/main/events", nil).raw
		r.restart()
		t.Equal(string(r.do("GET", "/sessions/"+s+"/branches/main/events", nil).raw), string(before))
	})
}
