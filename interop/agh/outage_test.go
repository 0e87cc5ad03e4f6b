package agh

import (
	"slices"
	"syscall"
	"testing"

	"github.com/parley-hub/parley/interop/agh/peer"
)

// work opens work of a remote peer for a hosted one.
func openWork(t *testing.T, p *peer.Peer, to *hosted, id string) peer.Envelope {
	t.Helper()
	e := say(t, p, peer.Envelope{"to": to.id, "work_id": id})
	to.takes(e.Text("id"))
	return e
}

func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	h := overServer(t, nats)
	crane, tug := h.join("crane", "crane.s01"), h.peer("tug.s02")
	h.sees(tug.ID, true)
	opened := openWork(t, tug, crane, "work_1")

	t.Log("while the broker is away, what a hosted peer says is kept")
	nats.kill()
	eventually(t, "the hub notices", func() bool { return h.status()["status"] == "disconnected" })
	done := crane.send(200, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": tug.ID, "work_id": "work_1", "reply_to": opened.Text("id"), "body": obj{"state": "completed"}})
	if h.work("work_1") != "completed" {
		t.Errorf("it is %s", h.work("work_1"))
	}
	nats.start(t)
	hear(t, tug, "what was said meanwhile", withID(done))
	if tug.Work("work_1") != "completed" {
		t.Errorf("tug has it %s", tug.Work("work_1"))
	}
	eventually(t, "the hub runs", func() bool { return h.status()["status"] == "running" })
	after := say(t, tug, nil)
	crane.takes(after.Text("id"))
	if got := tug.Heard(withID(done)); len(got) != 1 {
		t.Errorf("published %d times", len(got))
	}
}

func TestHubRestarts(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := overServer(t, startNATS(t))
			crane, tug := h.join("crane", "crane.s01"), h.peer("tug.s02")
			h.sees(tug.ID, true)
			opened := openWork(t, tug, crane, "work_1")
			waits := say(t, tug, peer.Envelope{"to": crane.id, "work_id": "work_1"})
			eventually(t, "it waits", func() bool { return slices.Contains(crane.inbox(), waits.Text("id")) })
			before := h.messages("threads/thread_tide")

			h.end(signal)
			h.start(t)
			greeted := len(tug.Heard(func(e peer.Envelope) bool { return e.Text("kind") == "greet" && e.Text("from") == crane.id }))
			t.Log("the same peer is there again, with its session, its inbox and its work")
			eventually(t, "crane greets again", func() bool {
				return len(tug.Heard(func(e peer.Envelope) bool { return e.Text("kind") == "greet" && e.Text("from") == crane.id })) > greeted
			})
			if h.work("work_1") != "submitted" || !slices.Equal(h.messages("threads/thread_tide"), before) {
				t.Errorf("it is %s; the thread has %v", h.work("work_1"), h.messages("threads/thread_tide"))
			}
			if got := crane.inbox(); !slices.Contains(got, waits.Text("id")) {
				t.Errorf("crane's inbox has %v", got)
			}
			t.Log("what was said before is a duplicate")
			say(t, tug, peer.Envelope{"to": crane.id, "work_id": "work_1", "id": opened.Text("id")})
			if r := hear(t, tug, "that it is a duplicate", answerTo(opened.Text("id"))); r.Body("status") != "duplicate" {
				t.Errorf("got %v", r)
			}
			h.sees(tug.ID, true)
			done := crane.send(200, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": tug.ID, "work_id": "work_1", "body": obj{"state": "completed"}})
			hear(t, tug, "the end", withID(done))
			if tug.Work("work_1") != "completed" || h.work("work_1") != "completed" {
				t.Errorf("it ended as %s and %s", h.work("work_1"), tug.Work("work_1"))
			}
		})
	}
}

func TestPartitionHeals(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	between := startProxy(t, nats.address)
	p := startHub(t, "--nats-url", "nats://"+natsToken+"@"+between.listener.Addr().String())
	h := &hub{t, p, "nats://" + nats.address, natsToken}
	crane, tug := h.join("crane", "crane.s01"), h.peer("tug.s02")
	h.sees(tug.ID, true)
	openWork(t, tug, crane, "work_1")

	between.cut <- true
	eventually(t, "the hub notices", func() bool { return h.status()["status"] == "disconnected" })
	t.Log("both go on, each on its side")
	lost := say(t, tug, peer.Envelope{"to": crane.id, "work_id": "work_1", "body": obj{"text": "is anybody there?"}})
	first := crane.send(200, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": tug.ID, "work_id": "work_1", "body": obj{"state": "working"}})
	second := crane.send(200, obj{"surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "I hear nobody."}})
	h.sees(tug.ID, false)
	if got := tug.Heard(withID(first)); got != nil {
		t.Errorf("heard over a cut line: %v", got)
	}

	between.cut <- false
	t.Log("what was kept arrives once, and what was lost is said again under its id")
	hear(t, tug, "the trace", withID(first))
	hear(t, tug, "the notice", withID(second))
	h.sees(tug.ID, true)
	say(t, tug, peer.Envelope{"to": crane.id, "work_id": "work_1", "id": lost.Text("id"), "body": obj{"text": "is anybody there?"}})
	crane.takes(lost.Text("id"))
	done := crane.send(200, obj{"kind": "trace", "surface": "thread", "thread_id": "thread_tide", "to": tug.ID, "work_id": "work_1", "body": obj{"state": "completed"}})
	hear(t, tug, "the end", withID(done))
	if tug.Work("work_1") != "completed" || h.work("work_1") != "completed" {
		t.Errorf("it ended as %s and %s", h.work("work_1"), tug.Work("work_1"))
	}
	for _, id := range []string{first, second, done} {
		if got := tug.Heard(withID(id)); len(got) != 1 {
			t.Errorf("%s was published %d times", id, len(got))
		}
	}
}

func TestTwoHubs(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	north, south := overServer(t, nats), overServer(t, nats)
	crane, derrick := north.join("crane", "crane.s01"), south.join("derrick", "derrick.s04")
	north.sees(derrick.id, true)
	south.sees(crane.id, true)
	in := obj{"surface": "thread", "thread_id": "thread_tide", "work_id": "work_1"}
	with := func(members obj) obj {
		all := obj{}
		for _, o := range []obj{in, members} {
			for name, value := range o {
				all[name] = value
			}
		}
		return all
	}
	derrick.takes(crane.send(200, with(obj{"to": derrick.id})))
	crane.takes(derrick.send(200, with(obj{"to": crane.id, "kind": "trace", "body": obj{"state": "needs_input"}})))
	derrick.takes(crane.send(200, with(obj{"to": derrick.id})))
	crane.takes(derrick.send(200, with(obj{"to": crane.id, "kind": "trace", "body": obj{"state": "completed"}})))
	if north.work("work_1") != "completed" || south.work("work_1") != "completed" {
		t.Errorf("it ended as %s and %s", north.work("work_1"), south.work("work_1"))
	}
	if a, b := north.messages("threads/thread_tide"), south.messages("threads/thread_tide"); len(a) != 4 || !slices.Equal(a, b) {
		t.Errorf("north has %v, south %v", a, b)
	}
}
