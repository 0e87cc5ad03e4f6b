package ag2_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/hpd"
)

// branchOf is a session's main branch with an agent.
type branchOf struct {
	d             *dialects
	session, base string
}

func (d *dialects) branch(agent string) *branchOf {
	d.t.Helper()
	session := d.ask(d.hpd, http.StatusCreated, "POST", "/hpd/sessions", object{})["id"].(string)
	return &branchOf{d, session, "/hpd/agents/" + agent + "/sessions/" + session + "/branches/main"}
}

func (b *branchOf) input(text string) string {
	b.d.t.Helper()
	a := b.d.ask(b.d.hpd, http.StatusAccepted, "POST", b.base+"/inputs", object{"type": "USER_TEXT_INPUT", "text": text})
	return a["runtimeRunId"].(string)
}

// ended waits for the end of a run.
func (b *branchOf) ended(run string) object {
	b.d.t.Helper()
	var last object
	until(b.d.t, "the run has ended", func() bool {
		last = b.d.ask(b.d.hpd, http.StatusOK, "GET", b.base+"/runs/"+run, nil)
		return last["status"] != "active"
	})
	return last
}

// events returns the types of the branch's history.
func (b *branchOf) events() []string {
	b.d.t.Helper()
	w := httptest.NewRecorder()
	b.d.hpd.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hpd/sessions/"+b.session+"/branches/main/events", nil))
	var list []struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		b.d.t.Fatalf("%s: %v", w.Body, err)
	}
	types := []string{}
	for _, e := range list {
		types = append(types, e.Type)
	}
	return types
}

// An agent that is connected over AG2 is a producer for HPD.
func TestProducesForBranch(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{})
	p := d.dial()
	bob := p.register("bob")
	b := d.branch("bob")
	run := b.input("what time is it?")
	p.ack(p.notifiedOf("ag2.channel.invite"))
	asked := p.notifiedOf("ag2.msg.text")
	id, trigger := asked.Envelope["channel_id"].(string), asked.Envelope["envelope_id"].(string)
	var m shownChannel
	p.call("get_channel", object{"channel_id": id}, &m)
	if m.Manifest.Type != "conversation" || len(m.Participants) != 2 {
		t.Errorf("shown as %+v", m)
	}
	if !p.canSend(id, bob) || len(p.pending(bob)) != 1 {
		t.Error("the agent of the run is not asked")
	}
	p.post(id, bob, "ag2.msg.text", object{"text": "late"}, object{"causation_id": trigger})
	if got := b.ended(run); got["status"] != "completed" {
		t.Errorf("the run ended as %v", got)
	}
	want := []string{
		"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "MESSAGE_STARTED", "TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_COMPLETED",
		"TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED",
	}
	got := b.events()
	if from := slices.Index(got, "BRANCH_RUN_STARTED"); from < 0 || !slices.Equal(got[from:], want) {
		t.Errorf("the history is %v", got)
	}
	if p.canSend(id, bob) {
		t.Error("asked after the answer")
	}

	// Its failure is that of the run; a later text is too late.
	run = b.input("and now?")
	asked = p.notifiedOf("ag2.msg.text")
	trigger = asked.Envelope["envelope_id"].(string)
	p.call("report_turn_failure", object{"channel_id": id, "agent_id": bob, "envelope_id": trigger, "error": "no clock"}, nil)
	if got := b.ended(run); got["status"] != "failed" || !strings.Contains(fmt.Sprint(got["error"]), "no clock") {
		t.Errorf("the run ended as %v", got)
	}
	_, err := p.try("post_envelope", object{"envelope": env(id, bob, "ag2.msg.text", object{"text": "x"}, object{"causation_id": trigger})})
	if err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a late answer: %v", err)
	}
}

// The tasks of an agent that is connected over AG2 are background tasks of the run:
// those that the hub observes for it, and those that its client posts itself.
func TestTasksOfBranch(t *testing.T) {
	t.Parallel()
	const started, completed, faulted, cancelled = "TOOL_CALL_BACKGROUND_TASK_STARTED", "TOOL_CALL_BACKGROUND_TASK_COMPLETED",
		"TOOL_CALL_BACKGROUND_TASK_FAULTED", "TOOL_CALL_BACKGROUND_TASK_CANCELLED"
	d := newDialects(t, options{}, hpd.Config{})
	p := d.dial()
	bob := p.register("bob")
	b := d.branch("bob")
	run := b.input("how deep is it?")
	p.ack(p.notifiedOf("ag2.channel.invite"))
	asked := p.notifiedOf("ag2.msg.text")
	id, trigger := asked.Envelope["channel_id"].(string), asked.Envelope["envelope_id"].(string)
	observe := func(task string) {
		p.call("observe_task", object{"metadata": object{"task_id": task, "owner_id": bob, "state": "running", "channel_id": id, "spec": object{"title": "sound " + task}}}, nil)
	}
	observe("t1")
	p.call("update_task", object{"task_id": "t1", "state": "completed", "result": "4 m"}, nil)
	observe("t2")
	p.call("update_task", object{"task_id": "t2", "state": "failed", "error": "no line"}, nil)
	observe("t3")
	own := func(kind string, data object) {
		data["task_id"] = "t4"
		p.post(id, bob, "ag2.task."+kind, data, object{"causation_id": trigger, "task_id": "t4"})
	}
	own("started", object{"spec": object{"title": "ask the pilot"}})
	own("progress", object{"progress": object{"asked": 1}}) // HPD shows it live, and does not store it
	own("cancelled", object{"reason": "no pilot"})
	p.post(id, bob, "ag2.msg.text", object{"text": "4 m"}, object{"causation_id": trigger})
	got := b.ended(run)
	if got["status"] != "completed" {
		t.Fatalf("the run ended as %v", got)
	}
	var kinds []string
	for _, kind := range b.events() {
		if strings.HasPrefix(kind, "TOOL_") {
			kinds = append(kinds, kind)
		}
	}
	if diff := cmp.Diff([]string{started, completed, started, faulted, started, started, cancelled}, kinds); diff != "" {
		t.Error(diff)
	}
	shown := func(run object) (states []string) {
		for _, one := range run["backgroundTasks"].([]any) {
			task := one.(object)
			states = append(states, fmt.Sprint(task["taskId"], " ", task["status"], " ", task["errorMessage"]))
		}
		return states
	}
	if diff := cmp.Diff([]string{"t1 completed <nil>", "t2 faulted no line", "t3 started <nil>", "t4 cancelled <nil>"}, shown(got)); diff != "" {
		t.Error(diff)
	}
	// A task that outlives its run ends in that run; the agent of another run
	// cannot begin one.
	p.call("update_task", object{"task_id": "t3", "state": "completed", "result": "5 m"}, nil)
	if got := shown(b.ended(run)); got[2] != "t3 completed <nil>" {
		t.Errorf("after the run: %v", got)
	}
	observe("t5")
	if _, err := p.try("post_envelope", object{"envelope": env(id, bob, "ag2.task.started", object{"task_id": "t6"}, nil)}); err == nil {
		t.Error("a task is begun in a branch without a run")
	}
	if got := shown(b.ended(run)); len(got) != 4 {
		t.Errorf("after the run: %v", got)
	}
	// Its own client reads them as it wrote them.
	var read []string
	for _, e := range p.wal(id) {
		if after, ok := strings.CutPrefix(e.Type, "ag2.task."); ok {
			read = append(read, strings.TrimSpace(fmt.Sprintf("%s %v %v", after, e.Data["task_id"], ofTask(e.Data))))
		}
	}
	want := []string{"started t1 sound t1", "completed t1 4 m", "started t2 sound t2", "failed t2 no line", "started t3 sound t3", "started t4 ask the pilot", "cancelled t4 no pilot", "completed t3 5 m"}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Error(diff)
	}
}

// ofTask returns the content of an event of a task.
func ofTask(data object) any {
	if spec, ok := data["spec"].(object); ok {
		return spec["title"]
	}
	for _, name := range []string{"result", "error"} {
		if text, ok := data[name]; ok {
			return text
		}
	}
	return ""
}

// An agent that does not accept its invitation has no producer.
func TestInvitationToBranchIsNotAnswered(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{InviteTimeout: 50 * time.Millisecond})
	p := d.dial()
	p.register("bob")
	b := d.branch("bob")
	if got := b.ended(b.input("anyone?")); got["status"] != "failed" || !strings.Contains(fmt.Sprint(got["error"]), "NoProducer") {
		t.Errorf("the run ended as %v", got)
	}
}

// An AG2 agent that is joined to a room is asked for work there, and its answer
// belongs to that work.
func TestAnswersUnderWork(t *testing.T) {
	t.Parallel()
	for surface, container := range map[string]object{
		"thread": {"thread_id": "thread_tide"}, "direct": {"thread_id": nil, "direct_id": "direct_" + strings.Repeat("0", 32)},
	} {
		t.Run(surface, func(t *testing.T) {
			t.Parallel()
			d := newDialects(t, options{}, hpd.Config{})
			p := d.dial()
			bob := p.register("bob")
			tug := d.join("tug", "tug.s01")
			d.join("bob", "bob.s01")
			ask := object{"surface": surface, "to": "bob.s01", "work_id": "work_1"}
			maps.Copy(ask, container)
			d.tell(tug, "how high?", ask)
			asked := p.notifiedOf("ag2.msg.text")
			id := asked.Envelope["channel_id"].(string)
			p.post(id, bob, "ag2.msg.text", object{"text": "3 m"}, object{"causation_id": asked.Envelope["envelope_id"]})
			waiting := d.ask(d.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+tug, nil)["messages"].([]any)
			if len(waiting) != 1 {
				t.Fatalf("tug is told %v", waiting)
			}
			m := waiting[0].(object)
			got := []any{m["kind"], m["from"], m["to"], m["work_id"], m["body"].(object)["text"], m["ext"].(object)["parley.hops"]}
			if diff := cmp.Diff([]any{"say", "bob.s01", "tug.s01", "work_1", "3 m", 1.0}, got); diff != "" {
				t.Error(diff)
			}

			// Work that has ended accepts no answer, so the text is sent without
			// it.
			d.tell(tug, "and now?", ask)
			asked = p.notifiedOf("ag2.msg.text")
			end := object{"kind": "trace", "body": object{"state": "canceled"}}
			maps.Copy(end, ask)
			d.tell(tug, "", end)
			p.post(id, bob, "ag2.msg.text", object{"text": "still 3 m"}, object{"causation_id": asked.Envelope["envelope_id"]})
			waiting = d.ask(d.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+tug, nil)["messages"].([]any)
			if last := waiting[len(waiting)-1].(object); last["work_id"] != nil || last["body"].(object)["text"] != "still 3 m" {
				t.Errorf("tug is told %v", last)
			}
		})
	}
}

// An identity that is joined to an AGH room, where its inbox is read, continues to
// read at its AG2 connection.
func TestAGHBindsNobodyAway(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{})
	p := d.dial()
	alice, bob := p.register("alice"), p.register("bob")
	before, _ := d.hub.Bound(bob)
	tug := d.join("tug", "tug.s01")
	session := d.join("bob", "bob.s01")
	d.tell(tug, "bob?", object{"to": "bob.s01", "work_id": "work_1"})
	for _, want := range []string{"ag2.channel.invite", "ag2.channel.opened", "ag2.msg.text"} {
		if n := p.notified(); n.Recipient != bob || n.Envelope["event_type"] != want {
			t.Fatalf("told %v, want %s", n, want)
		}
	}
	inbox := d.ask(d.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+session, nil)
	if after, _ := d.hub.Bound(bob); before == "" || after != before {
		t.Errorf("bob read at %v, and reads at %v: %v", before, after, inbox)
	}
	ch := p.open("conversation", alice, map[string]*peer{bob: p})
	p.say(ch, alice, "Are you still here?")
	if n := p.notifiedOf("ag2.msg.text"); n.Recipient != bob || n.Envelope["channel_id"] != ch {
		t.Errorf("told %v", n)
	}
}
