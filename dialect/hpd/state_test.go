package hpd_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent/samples"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// steps is a producer that does something different in each run.
type steps struct {
	mu   sync.Mutex
	next func(ctx context.Context, run *hpd.Run) error
}

func (p *steps) OnInput(ctx context.Context, run *hpd.Run, _ hpd.Work) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next(ctx, run)
}

// doing is a rig with a session and a producer `p` for which do runs one step.
type doing struct {
	*rig
	session string
	steps   *steps
}

func newDoing(t testing.TB) *doing {
	d := &doing{steps: &steps{}}
	d.rig = newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"p": d.steps}})
	d.session = d.rig.session()
	return d
}

// step runs one step on a branch, which must complete the run.
func (d *doing) step(branch string, do func(ctx context.Context, run *hpd.Run) error) {
	d.t.Helper()
	d.steps.mu.Lock()
	d.steps.next = do
	d.steps.mu.Unlock()
	if end := d.run("p", d.session, branch, "x"); end["errorType"] != nil {
		d.t.Fatalf("the step failed: %v", end["errorMessage"])
	}
}

// say publishes a whole text.
func say(ctx context.Context, run *hpd.Run, id, text string) error {
	return run.Publish(ctx, wire.TextMessageStart{MessageID: id, Role: "assistant"}, wire.TextDelta{MessageID: id, Text: text}, wire.TextMessageEnd{MessageID: id})
}

// texts returns the projected messages of a branch, from its history.
func (d *doing) texts(name string) (list []string) {
	d.t.Helper()
	var h branch.History
	for _, e := range d.history(d.session, name) {
		data, err := json.Marshal(e)
		if err != nil {
			d.t.Fatal(err)
		}
		h.Apply(branch.Event{Type: e["type"].(string), Data: data})
	}
	for _, m := range h.Messages() {
		text := m.MessageID
		for _, c := range m.Contents {
			var content struct{ Text string }
			data, _ := json.Marshal(c)
			_ = json.Unmarshal(data, &content)
			text += " " + content.Text
		}
		list = append(list, text)
	}
	return list
}

func (d *doing) branchOf(name string) object {
	d.t.Helper()
	return d.do("GET", "/sessions/"+d.session+"/branches/"+name, nil).object()
}

func TestStateOfMiddleware(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#75: a fork has a copy of the branch's state and shares the session's", func(t *spec.T) {
		d := newDoing(t)
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			before, err := run.State(ctx)
			t.Equal(before, map[string]string(nil))
			return errors.Join(err, say(ctx, run, "m1", "one"),
				run.CommitState(ctx, map[string]string{"a": "0", "gone": "x"}), run.CommitState(ctx, map[string]string{"a": "1"}),
				run.CommitSessionState(ctx, map[string]string{"s": "1"}))
		})
		t.Equal(d.do("POST", "/agents/p/sessions/"+d.session+"/branches/main/fork", object{"newBranchId": "f", "fromMessageId": "m1"}).status, 201)
		d.crash()
		read := func(branch string) (own, shared map[string]string) {
			d.step(branch, func(ctx context.Context, run *hpd.Run) (err error) {
				if own, err = run.State(ctx); err == nil {
					shared, err = run.SessionState(ctx)
				}
				return err
			})
			return own, shared
		}
		own, shared := read("f")
		t.Equal(own, map[string]string{"a": "1"})
		t.Equal(shared, map[string]string{"s": "1"})
		d.step("f", func(ctx context.Context, run *hpd.Run) error {
			return errors.Join(run.CommitState(ctx, map[string]string{"a": "2"}), run.CommitSessionState(ctx, map[string]string{"s": "2"}))
		})
		own, shared = read("main")
		t.Equal(own, map[string]string{"a": "1"})
		t.Equal(shared, map[string]string{"s": "2"})
	})
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	said := func(d *doing) {
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			return errors.Join(say(ctx, run, "m1", "one"), say(ctx, run, "m2", "two"), say(ctx, run, "m3", "three"))
		})
	}
	summary := []wire.ChatMessage{{MessageID: "sum", Role: "assistant", Contents: []wire.Content{branch.Text("summed up")}}}
	spec.Check(t, "hpd-events#46 seed-003#69: a hard compaction is in the history and replaces where the first was", func(t *spec.T) {
		d := newDoing(t)
		said(d)
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			return run.Compact(ctx, hpd.Compaction{MessageIDs: []string{"m1", "m2"}, Replacements: summary, Strategy: "Summarize", Boundary: "Message", Hard: true})
		})
		e := only(d.history(d.session, "main"), "BRANCH_HISTORY_COMPACTED")[0]
		t.Equal(e["durableCompactedMessageIds"], any([]any{"m1", "m2"}))
		t.Equal(d.texts("main")[1:3], []string{"sum summed up", "m3 three"})
		t.Equal(d.branchOf("main")["messageCount"], any(float64(len(d.texts("main")))))
		t.Equal(d.do("POST", "/agents/p/sessions/"+d.session+"/branches/main/fork", object{"newBranchId": "f", "fromMessageId": "m1"}).code(), "ForkMessageNotPresent")
		t.Equal(d.do("POST", "/agents/p/sessions/"+d.session+"/branches/main/fork", object{"newBranchId": "f", "fromMessageId": "sum"}).status, 201)
		t.Equal(d.texts("f")[1:], []string{"sum summed up"})
	})
	spec.Check(t, "hpd-events#47: the raw events of what was compacted stay in the history", func(t *spec.T) {
		d := newDoing(t)
		said(d)
		before := d.history(d.session, "main")
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			return run.Compact(ctx, hpd.Compaction{MessageIDs: []string{"m1", "m2", "m3"}, Hard: true})
		})
		t.Equal(d.history(d.session, "main")[:len(before)], before)
	})
	spec.Check(t, "hpd-events#45 seed-003#70: a soft compaction, or one of nothing, writes nothing and changes nothing", func(t *spec.T) {
		d := newDoing(t)
		said(d)
		before := d.texts("main")
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			return errors.Join(run.Compact(ctx, hpd.Compaction{MessageIDs: []string{"m1"}, Replacements: summary}), run.Compact(ctx, hpd.Compaction{MessageIDs: []string{" "}, Hard: true}))
		})
		t.Equal(len(only(d.history(d.session, "main"), "BRANCH_HISTORY_COMPACTED")), 0)
		t.Equal(d.texts("main")[:len(before)], before)
	})
	spec.Check(t, "seed-003#144: what tells of a compaction is live, and only a hard one is stored", func(t *spec.T) {
		d := newDoing(t)
		said(d)
		w := d.watch("/agents/p/sessions/"+d.session+"/branches/main/events/live", nil)
		stored := len(d.history(d.session, "main"))
		for _, hard := range []bool{false, true} {
			d.step("main", func(ctx context.Context, run *hpd.Run) error {
				return errors.Join(run.Publish(ctx, wire.Compaction{AgentName: "p"}), run.Compact(ctx, hpd.Compaction{MessageIDs: []string{"m1"}, Hard: hard}))
			})
			t.Equal(len(only(w.until("BRANCH_RUN_COMPLETED"), "COMPACTION")), 1)
			kept := only(d.history(d.session, "main")[stored:], "COMPACTION", "BRANCH_HISTORY_COMPACTED")
			t.Equal(types(kept), map[bool][]string{false: {}, true: {"BRANCH_HISTORY_COMPACTED"}}[hard])
		}
	})
	spec.Check(t, "hpd-events#48: a result without a message is the message tool-{callId} of a fork", func(t *spec.T) {
		d := newDoing(t)
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			text := "seven"
			return errors.Join(say(ctx, run, "m1", "one"), run.Publish(ctx, wire.ToolCallStart{CallID: "c9", Name: "f", MessageID: "m1"},
				wire.ToolCallEnd{CallID: "c9"}, wire.ToolCallResult{CallID: "c9", Result: wire.ToolResult{Text: &text}}))
		})
		t.Equal(d.do("POST", "/agents/p/sessions/"+d.session+"/branches/main/fork", object{"newBranchId": "f", "fromMessageId": "tool-c9"}).status, 201)
		started := only(d.history(d.session, "f"), "MESSAGE_STARTED")
		t.Equal(started[len(started)-1]["messageId"], any("tool-c9"))
		t.Equal(started[len(started)-1]["role"], any("tool"))
		args := only(d.history(d.session, "f"), "TOOL_CALL_ARGS")
		t.Equal(args[0]["argsJson"], any("{}"))
	})
}

// A permanent decision applies to the session and the function, also after a
// restart.
func TestPermissions(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	d := newDoing(t)
	base := "/agents/p/sessions/" + d.session + "/branches/main"
	permit := func(function string, timeout time.Duration, answer object) (allowed bool, reason string, live []object) {
		d.t.Helper()
		w := d.watch(base+"/events/live", nil)
		defer w.close()
		d.steps.mu.Lock()
		d.steps.next = func(ctx context.Context, run *hpd.Run) (err error) {
			allowed, reason, err = run.Permit(ctx, wire.PermissionRequest{PermissionID: "q", FunctionName: function, CallID: "c"}, timeout)
			return err
		}
		d.steps.mu.Unlock()
		c.Equal(d.input("p", d.session, "main", "x").status, 202)
		if answer != nil {
			live = w.until("PERMISSION_REQUEST")
			c.Equal(live[len(live)-1]["description"], any("No description available"))
			answer["type"], answer["permissionId"], answer["sourceName"] = "PERMISSION_RESPONSE", "q", "PermissionMiddleware"
			c.Equal(d.do("POST", base+"/responses", answer).status, 200)
		}
		live = append(live, w.until("BRANCH_RUN_COMPLETED")...)
		return allowed, reason, live
	}
	allowed, _, live := permit("wipe", 0, object{"approved": true})
	c.True(allowed, "it was approved")
	c.Equal(len(only(live, "PERMISSION_APPROVED")), 1)
	allowed, reason, live := permit("wipe", 0, object{"approved": false, "reason": "too risky", "choice": "deny_always"})
	c.False(allowed, "it was denied")
	c.Equal(reason, "too risky")
	c.Equal(only(live, "PERMISSION_DENIED")[0]["reason"], any("too risky"))
	_, _, _ = permit("read", 0, object{"approved": true, "choice": "allow_always"})
	d.crash()
	for function, want := range map[string]bool{"wipe": false, "read": true} {
		allowed, _, live = permit(function, 0, nil)
		c.Equal(allowed, want)
		c.Equal(len(only(live, "PERMISSION_REQUEST")), 0)
	}
	allowed, reason, live = permit("other", time.Millisecond, nil)
	c.False(allowed, "nobody answered")
	c.Contains(reason, "timed out")
	c.Equal(only(live, "PERMISSION_DENIED")[0]["callId"], any("c"))

	other := d.rig.session() // another session is asked again
	d.session, base = other, "/agents/p/sessions/"+other+"/branches/main"
	_, _, live = permit("read", 0, object{"approved": true})
	c.Equal(len(only(live, "PERMISSION_REQUEST")), 1)
}

func TestAnswersInProcess(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#117: a request is answered in process", func(t *spec.T) {
		a := newAsker(t, 0, permission)
		a.w.until("PERMISSION_REQUEST")
		at := wire.Scope{Session: a.session, Branch: "main"}
		got, err := a.server.Respond(t.Context(), at, wire.PermissionResponse{PermissionID: "p1", SourceName: "S", Approved: true})
		t.NoError(err)
		t.Equal(got, wire.RespondResult{Status: wire.Accepted, RequestID: "p1", Accepted: true})
		t.True((<-a.answers).(wire.PermissionResponse).Approved, "the producer has the answer")
		a.w.until("BRANCH_RUN_COMPLETED")
		_, err = a.server.Respond(t.Context(), at, wire.PermissionResponse{PermissionID: "unknown"})
		t.ErrorContains(err, "No run is active")
	})
}

type depth struct {
	samples.Owned
	N int64
}

func (depth) SampleKind() string { return "depth" }

func TestSamplesAreNoEvents(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#76 seed-003#81: samples are in no stream and no history until an event is made of them", func(t *spec.T) {
		d := newDoing(t)
		var lanes samples.Hub
		route, err := samples.RouteOf[depth](&lanes, samples.RouteOptions{})
		t.NoError(err)
		var got int64
		w := d.watch("/agents/p/sessions/"+d.session+"/branches/main/events/live", nil)
		d.step("main", func(ctx context.Context, run *hpd.Run) error {
			inbox, err := route.Subscribe(samples.SubscribeOptions{})
			if err != nil {
				return err
			}
			defer inbox.Close()
			for i := range int64(5) {
				if err := route.Emit(ctx, 0, depth{N: i}); err != nil {
					return err
				}
			}
			for {
				s, ok := inbox.TryRead()
				if !ok {
					break
				}
				got += s.Value.N
			}
			return run.Publish(ctx, wire.ToolProgress{CallID: "c", Message: new("the summary")})
		})
		t.Equal(got, int64(10))
		live := w.until("BRANCH_RUN_COMPLETED")
		t.Equal(types(live), []string{"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "TOOL_PROGRESS", "MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED"})
		t.Equal(live[2]["message"], any("the summary"))
		for _, e := range d.history(d.session, "main") {
			row, known := branch.NewTable().Lookup(e["type"].(string))
			t.True(known && row.Type != "DEPTH", "%s", e["type"])
		}
	})
}
