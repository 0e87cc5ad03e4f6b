package hpd_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// A turn ends once, and events that are posted together are stored all or not
// at all.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (c *spec.T, p *remote, w, end object, history func() []string) {
		c = &spec.T{T: t}
		r := newRig(t, hpd.Config{})
		p = r.producer("far")
		s := r.session()
		r.input("far", s, "main", "hi")
		w = p.work.named("input")
		before := len(r.history(s, "main"))
		end = object{"type": "MESSAGE_TURN_FINISHED", "messageTurnId": w["messageTurnId"], "conversationId": s, "agentId": "far", "agentName": "far", "duration": "00:00:01"}
		return c, p, w, end, func() []string { return types(r.history(s, "main"))[before:] }
	}
	live := object{"type": "AGENT_TURN_FINISHED", "iteration": 1}
	other := func(end object) object {
		changed := object{}
		maps.Copy(changed, end)
		changed["messageTurnId"] = "another"
		return changed
	}

	t.Run("an end that is refused leaves nothing of its list, and the turn open", func(t *testing.T) {
		t.Parallel()
		c, p, w, end, history := begin(t)
		for _, key := range []string{"", "k"} {
			for _, list := range [][]object{{delta("a"), live, other(end)}, {end, live, end}} {
				got := p.publish(w, key, list...)
				c.Equal(got.status, 400)
				c.Contains(string(got.raw), "event 2")
			}
		}
		c.Equal(history(), []string{})
		c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
		c.Equal(history(), []string{"MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED"})
	})
	t.Run("a second end is refused with all of its list, a repeated one is not", func(t *testing.T) {
		t.Parallel()
		c, p, w, end, history := begin(t)
		c.Equal(p.publish(w, "k", delta("a"), live, end).status, 202)
		c.Equal(p.publish(w, "", end).status, 400)
		c.Equal(p.publish(w, "", delta("b"), live, end).status, 400)
		c.Equal(p.publish(w, "other", delta("b"), live, end).status, 400)
		c.Equal(string(p.publish(w, "k", delta("a"), live, end).raw), `{"accepted":3}`)
		p.crash()
		*p = *p.producer("far")
		c.Equal(p.publish(w, "k", delta("a"), live, end).status, 202)
		c.Equal(history(), []string{"TEXT_DELTA", "MESSAGE_TURN_FINISHED"})
	})
	t.Run("a turn that was interrupted has no end, and readers are told of the dropped one", func(t *testing.T) {
		t.Parallel()
		c, p, w, end, history := begin(t)
		watch := p.watch(p.at(w)+"/events/live", nil)
		c.Equal(p.do("POST", p.at(w)+"/interrupt", nil).status, 202)
		c.Equal(p.publish(w, "", delta("a"), end).status, 202)
		c.Equal(p.publish(w, "k", end).status, 202)
		c.Equal(p.do("POST", p.at(w)+"/events?runtimeRunId="+w["runtimeRunId"].(string), end).status, 202)
		c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
		seen := watch.until("BRANCH_RUN_COMPLETED")
		c.Equal(types(seen), []string{"INTERRUPTION_HANDLED", "TEXT_DELTA", "EVENT_DROPPED", "EVENT_DROPPED", "EVENT_DROPPED", "BRANCH_RUN_COMPLETED"})
		c.Equal(seen[2]["droppedEventType"], any("MESSAGE_TURN_FINISHED"))
		c.Equal(seen[2]["droppedEventFlowId"], w["messageTurnId"])
		c.Equal(history(), []string{"TEXT_DELTA", "BRANCH_RUN_COMPLETED"})
	})
}

// An acknowledged interruption survives a restart: the producer is notified, and
// the run is ended if the producer does not end it.
func TestInterruptionOfARemoteRunSurvives(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	r.input("far", s, "main", "hi")
	w := p.work.named("input")
	p.work.close()
	c.Equal(r.do("POST", p.at(w)+"/interrupt", object{"reason": "enough"}).status, 202)
	r.crash()
	p = r.producer("far")
	c.Equal(p.work.named("input")["resumed"], any(true))
	c.Equal(p.work.named("interrupt"), object{"runtimeRunId": w["runtimeRunId"], "reason": "enough"})
	c.Equal(p.do("POST", p.at(w)+"/requests?runtimeRunId="+w["runtimeRunId"].(string), object{"type": "CLARIFICATION_REQUEST", "requestId": "q", "sourceName": "s", "question": "?"}).status, 409)
	r.config.InterruptGrace = time.Millisecond
	r.crash()
	end := r.watch(p.at(w)+"/events/live?after=1", nil).until("BRANCH_RUN_COMPLETED")
	c.Equal(end[len(end)-1]["cancelled"], any(true))
	c.Equal(r.do("GET", p.at(w)+"/runs/"+w["runtimeRunId"].(string), nil).object()["status"], any("cancelled"))
	c.Equal(r.input("far", s, "main", "again").status, 202)
}

// An interruption that could not be stored is not answered with 202, and a repeated
// one is stored first.
func TestInterruptionIsStoredBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	r.input("far", r.session(), "main", "hi")
	w := p.work.named("input")
	p.work.close()
	r.refuse = func() error { return errors.New("the disk is away") }
	c.Equal(r.do("POST", p.at(w)+"/interrupt", object{"reason": "enough"}).status, 500)
	r.refuse = nil
	c.Equal(r.do("POST", p.at(w)+"/interrupt", object{"reason": "enough"}).status, 202)
	r.crash()
	p = r.producer("far")
	c.Equal(p.work.named("interrupt"), object{"runtimeRunId": w["runtimeRunId"], "reason": "enough"})
}

// The agent's id is escaped in a run's path, and the path finds the run.
func TestLocationOfARunOfAnyAgent(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}, DefaultAgent: "echo"})
	for _, agent := range []string{"plain", "a%20b%2Fc%3F%C3%A4"} {
		a := r.do("POST", "/agents/"+agent+"/sessions/"+r.session()+"/branches/main/inputs", object{"text": "hi"})
		c.Equal(a.status, 202)
		location := a.header.Get("Location")
		c.Contains(location, "/hpd/agents/"+agent+"/sessions/")
		c.Equal(r.do("GET", location[len("/hpd"):], nil).object()["runtimeRunId"], a.object()["runtimeRunId"])
	}
}
