package hpd_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// Requests of a run of this process are cancelled with the run.
func TestRequestsOfALostRun(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	a := newAsker(c, 0, permission)
	a.w.until("PERMISSION_REQUEST")
	at := "/agents/p/sessions/" + a.session + "/branches/main"
	c.Equal(len(a.do("GET", at+"/requests", nil).list()), 1)
	a.crash()
	c.Equal(string(a.do("GET", at+"/requests", nil).raw), "[]")
	c.Equal(a.respond(yes("ask")).code(), "Cancelled")
	list := a.do("GET", at+"/runs", nil).list()
	c.Equal(list[0]["error"].(object)["type"], any("RuntimeLost"))
	turn := only(a.history(a.session, "main"), "MESSAGE_TURN_ERROR")
	c.Equal(len(turn), 1)
}

// A hub is not ready while runs that a restart interrupted are not settled.
func TestReadyWhenSettled(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	a := newAsker(c, 0, permission)
	a.w.until("PERMISSION_REQUEST")
	c.NoError(a.server.Ready(t.Context())) // at once, because nothing was left to settle
	reached, gate := make(chan struct{}, 100), make(chan struct{})
	a.opened = func() {
		a.armed.Store(func() {
			reached <- struct{}{}
			<-gate
		})
	}
	a.crash()
	<-reached // the end of the run is about to be written
	err := a.server.Ready(t.Context())
	c.True(err != nil && strings.Contains(err.Error(), "1 are left"), "ready while a run is open: %v", err)
	close(gate)
	// The first request of the session waits for the run's end.
	list := a.do("GET", "/agents/p/sessions/"+a.session+"/branches/main/runs", nil).list()
	c.Equal(list[0]["error"].(object)["type"], any("RuntimeLost"))
	eventually(t, func() bool { return a.server.Ready(t.Context()) == nil })
}

// A run that cannot be settled now is tried again, and the hub reports that it is
// not ready.
func TestSettlingIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	a := newAsker(c, 0, permission)
	a.w.until("PERMISSION_REQUEST")
	var refused atomic.Bool
	_ = a.engine.Close()
	a.stop()
	a.opened = func() { refused.Store(true) }
	a.refuse = func() error {
		if refused.Load() {
			return errors.New("the disk is away")
		}
		return nil
	}
	a.start()
	eventually(t, func() bool {
		err := a.server.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "tries again")
	})
	refused.Store(false)
	eventually(t, func() bool { return a.server.Ready(t.Context()) == nil })
	list := a.do("GET", "/agents/p/sessions/"+a.session+"/branches/main/runs", nil).list()
	c.Equal(list[0]["error"].(object)["type"], any("RuntimeLost"))
}

// A remote producer that does not reconnect in time after a restart loses its run
// and its requests.
func TestRemoteRunIsLost(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	r.input("far", s, "main", "hi")
	w := p.work.named("input")
	ask := object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "?"}
	c.Equal(p.do("POST", p.at(w)+"/requests?runtimeRunId="+w["runtimeRunId"].(string), ask).status, 202)
	seq := len(r.history(s, "main"))
	r.config.ProducerGrace = 20 * time.Millisecond
	r.crash()
	watch := r.watch(p.at(w)+"/events/live?after=1", nil)
	end := watch.until("BRANCH_RUN_COMPLETED")
	c.Equal(end[len(end)-1]["errorType"], any("RuntimeLost"))
	c.Equal(types(r.history(s, "main"))[seq:], []string{"MESSAGE_TURN_ERROR", "BRANCH_RUN_COMPLETED"})
	c.Equal(string(r.do("GET", p.at(w)+"/requests", nil).raw), "[]")
	c.Equal(r.input("far", s, "main", "hi").status, 500)
}

// Right after a restart an input waits for a producer that was connected
// before.
func TestInputBeforeTheProducerIsBack(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	r.producer("far").work.close()
	s := r.session()
	r.restart()
	c.Equal(r.input("far", s, "main", "hi").status, 202)
	c.Equal(r.input("stranger", s, "main", "hi").status, 404)
	p := r.producer("far")
	w := p.work.named("input")
	c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
}

// A task that outlives its run is shown with the run that began it, and events that
// are too large for the index are read from the history.
func TestRunsFromTheIndex(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	d := newDoing(t)
	long := strings.Repeat("x", 20<<10)
	started := wire.ToolCallBackgroundTaskStarted{}
	started.TaskID, started.Name, started.StartedAt = "k1", "index", time.Now()
	faulted := wire.ToolCallBackgroundTaskFaulted{}
	faulted.TaskID, faulted.Name, faulted.FaultedAt, faulted.ExceptionType, faulted.ErrorMessage = "k1", "index", time.Now(), "E", long
	d.step("main", func(ctx context.Context, run *hpd.Run) error { return run.Publish(ctx, started) })
	d.step("main", func(ctx context.Context, run *hpd.Run) error { return run.Publish(ctx, faulted) })
	at := "/agents/p/sessions/" + d.session + "/branches/main/runs"
	for range 2 { // also from what the next process reads
		runs := d.do("GET", at, nil).list()
		c.Equal(len(runs), 2)
		task := runs[0]["backgroundTasks"].([]any)[0].(object)
		c.Equal([]any{task["status"], task["errorMessage"]}, []any{"faulted", long})
		c.Equal(runs[1]["backgroundTasks"], any([]any{}))
		for _, run := range runs {
			c.Equal(d.do("GET", at+"/"+run["runtimeRunId"].(string), nil).object(), run)
		}
		c.Equal(len(d.do("GET", "/agents/other/sessions/"+d.session+"/branches/main/runs", nil).list()), 0)
		d.restart()
	}
	for _, id := range []string{"none", strings.Repeat("0", 32), "a%2Fb"} {
		c.Equal(d.do("GET", at+"/"+id, nil).status, 404)
	}
}
