package thread_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var adapter = thread.New(thread.Options{MaxWork: 20})

const place = `{"workspace_id":"ws","channel":"dock","thread_id":"thread_tide"}`

func metadata() *channel.Metadata { return adaptertest.Metadata(adapter, place, "ada", "bob", "cyd") }

func open(t *spec.T) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, metadata())
	t.NoError(err)
	return p
}

// agents are who stands behind the peers of these tests.
var agents = map[string]string{"a.s1": "ada", "b.s1": "bob", "c.s1": "cyd", "": ""}

// message makes a record: kind, id, from, to, work, ts, body.
func message(kind, id, from, to, workID string, ts int64, body string) *envelope.Envelope {
	ext := fmt.Sprintf(`{"from":%q,"ts":%d`, from, ts)
	if to != "" {
		ext += fmt.Sprintf(`,"to":%q`, to)
	}
	if workID != "" {
		ext += fmt.Sprintf(`,"work_id":%q`, workID)
	}
	e := adaptertest.Envelope(agents[from], "agh."+kind, body)
	e.Key, e.To, e.Ext = from+"/"+id, agents[to], []byte(ext+"}")
	e.Origin = envelope.Origin{Dialect: "agh", ID: id}
	return e
}

func say(id, from, to, workID string, ts int64) *envelope.Envelope {
	return message("say", id, from, to, workID, ts, `{"text":"`+id+`"}`)
}

func trace(id, from, to, state string) *envelope.Envelope {
	return message("trace", id, from, to, "work_1", 20, `{"state":"`+state+`"}`)
}

func receipt(id, from, to, status string) *envelope.Envelope {
	return message("receipt", id, from, to, "work_1", 20, `{"for_id":"m","status":"`+status+`"}`)
}

// of returns the state of work_1.
func of(p *adaptertest.Play) string {
	w, _ := p.State.(*work.Conversation).Works.Get("work_1")
	return w.State.String()
}

// begun opens work_1 between a and b, and brings it into a state.
func begun(t *spec.T, state string) *adaptertest.Play {
	t.Helper()
	p := open(t)
	t.NoError(p.Post(say("m1", "a.s1", "b.s1", "work_1", 10)))
	if state != "submitted" {
		t.NoError(p.Post(trace("m2", "b.s1", "a.s1", state)))
	}
	t.Equal(of(p), state)
	return p
}

// refused posts what must not pass, and requires that nothing changed.
func refused(t *spec.T, p *adaptertest.Play, e *envelope.Envelope, code fault.Code, why fault.Reason) {
	t.Helper()
	before := p.State
	err := p.Post(e)
	t.Equal(fault.CodeOf(err), code)
	t.Equal(fault.ReasonOf(err), why)
	t.True(p.State == before, "a refusal changed the state")
}

var openStates = []string{"submitted", "working", "needs_input"}

func TestWork(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#72 seed-001#107: a directed say opens work in its thread", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m1", "a.s1", "b.s1", "work_1", 10)))
		w, _ := p.State.(*work.Conversation).Works.Get("work_1")
		t.Equal(w, work.Work{Opener: "a.s1", Target: "b.s1", State: work.Submitted, OpenedAt: 10, LastAt: 10})
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Claims, []string{"work/work_1"})
		t.NoError(p.Post(say("m2", "a.s1", "b.s1", "work_1", 12))) // a new id continues it
		w, _ = p.State.(*work.Conversation).Works.Get("work_1")
		t.Equal(w, work.Work{Opener: "a.s1", Target: "b.s1", State: work.Submitted, OpenedAt: 10, LastAt: 12})
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[1]).Claims, []string(nil))
	})
	spec.Check(t, "agh-network#73: a directed capability opens work", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(message("capability", "m1", "a.s1", "b.s1", "work_1", 10, `{"capability":{"id":"x","summary":"s","outcome":"o"}}`)))
		t.Equal(of(p), "submitted")
	})
	spec.Check(t, "agh-network#74: a say to nobody, or to oneself, opens no work", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m0", "a.s1", "", "", 1)))
		refused(t, p, say("m1", "a.s1", "", "work_1", 10), fault.Invalid, "")
		refused(t, p, say("m1", "a.s1", "a.s1", "work_1", 10), fault.Invalid, "")
		t.Equal(of(p), "")
	})
	spec.Check(t, "agh-network#75: either member may trace any later state of open work", func(t *spec.T) {
		for _, from := range openStates {
			for _, to := range []string{"working", "needs_input", "completed", "failed", "canceled"} {
				for _, actor := range [][2]string{{"a.s1", "b.s1"}, {"b.s1", "a.s1"}} {
					p := begun(t, from)
					t.NoError(p.Post(trace("m9", actor[0], actor[1], to)))
					t.Equal(of(p), to)
				}
			}
		}
	})
	spec.Check(t, "agh-network#76: a trace back to submitted is refused and changes nothing", func(t *spec.T) {
		for _, state := range openStates {
			p := begun(t, state)
			refused(t, p, trace("m9", "b.s1", "a.s1", "submitted"), fault.Protocol, fault.WorkStep)
			refused(t, p, trace("m9", "b.s1", "a.s1", "asleep"), fault.Protocol, fault.WorkStep)
			t.Equal(of(p), state)
		}
	})
	spec.Check(t, "agh-network#77: a message moves work that needs input to working", func(t *spec.T) {
		for _, kind := range []string{"say", "capability"} {
			for state, want := range map[string]string{"needs_input": "working", "submitted": "submitted", "working": "working"} {
				p := begun(t, state)
				t.NoError(p.Post(message(kind, "m9", "a.s1", "b.s1", "work_1", 30, `{"text":"x"}`)))
				t.Equal(of(p), want)
			}
		}
	})
	spec.Check(t, "agh-network#78: a receipt that ends nothing leaves the state", func(t *spec.T) {
		for _, status := range []string{"accepted", "duplicate", "expired", "unsupported"} {
			for _, state := range openStates {
				p := begun(t, state)
				t.NoError(p.Post(receipt("m9", "b.s1", "a.s1", status)))
				t.Equal(of(p), state)
			}
		}
	})
	spec.Check(t, "agh-network#79: a receipt that rejects or cancels ends the work", func(t *spec.T) {
		for status, want := range map[string]string{"rejected": "failed", "canceled": "canceled"} {
			p := begun(t, "working")
			t.NoError(p.Post(receipt("m9", "b.s1", "a.s1", status)))
			w, _ := p.State.(*work.Conversation).Works.Get("work_1")
			t.Equal(w.State.String(), want)
			t.Equal(w.TerminalAt, int64(20))
			t.Equal(p.State.(*work.Conversation).OpenWork, 0)
		}
	})
	spec.Check(t, "agh-network#80: the first end wins, and a second one is refused as closed", func(t *spec.T) {
		p := begun(t, "working")
		t.NoError(p.Post(receipt("m8", "a.s1", "b.s1", "canceled")))
		refused(t, p, trace("m9", "b.s1", "a.s1", "canceled"), fault.Protocol, fault.WorkClosed)
		refused(t, p, trace("m9", "b.s1", "a.s1", "completed"), fault.Protocol, fault.WorkClosed)
		t.Equal(of(p), "canceled")
	})
	spec.Check(t, "agh-network#81: no trace reopens work that has ended", func(t *spec.T) {
		for _, end := range []string{"completed", "failed", "canceled"} {
			p := begun(t, end)
			for _, state := range openStates {
				refused(t, p, trace("m9", "b.s1", "a.s1", state), fault.Protocol, fault.WorkClosed)
			}
			t.Equal(of(p), end)
		}
	})
	spec.Check(t, "agh-network#82: a say after the end is refused as closed", func(t *spec.T) {
		p := begun(t, "completed")
		refused(t, p, say("m9", "a.s1", "b.s1", "work_1", 30), fault.Protocol, fault.WorkClosed)
		refused(t, p, receipt("m9", "a.s1", "b.s1", "accepted"), fault.Protocol, fault.WorkClosed)
	})
	spec.Check(t, "agh-network#83: the work's name is taken for its conversation", func(t *spec.T) {
		p := begun(t, "submitted")
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[0]).Claims, []string{work.WorkClaim("work_1")})
	})
	spec.Check(t, "agh-network#84: a third party, or another target, does not touch the work", func(t *spec.T) {
		p := begun(t, "needs_input")
		refused(t, p, trace("m9", "c.s1", "a.s1", "completed"), fault.Protocol, fault.WorkActor)
		refused(t, p, receipt("m9", "c.s1", "a.s1", "rejected"), fault.Protocol, fault.WorkActor)
		refused(t, p, say("m9", "c.s1", "a.s1", "work_1", 30), fault.Protocol, fault.WorkActor)
		refused(t, p, say("m9", "a.s1", "c.s1", "work_1", 30), fault.Protocol, fault.WorkActor)
		refused(t, p, say("m9", "a.s1", "", "work_1", 30), fault.Invalid, "")
		t.Equal(of(p), "needs_input")
		// A third party learns nothing of how the work stands.
		ended := begun(t, "completed")
		refused(t, ended, say("m9", "c.s1", "a.s1", "work_1", 30), fault.Protocol, fault.WorkActor)
	})
	spec.Check(t, "agh-network#85: a receipt or trace for unknown work is refused", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(say("m0", "a.s1", "", "", 1)))
		refused(t, p, trace("m1", "a.s1", "b.s1", "working"), fault.Protocol, fault.WorkUnknown)
		refused(t, p, receipt("m1", "a.s1", "b.s1", "canceled"), fault.Protocol, fault.WorkUnknown)
		empty := open(t)
		refused(t, empty, trace("m1", "a.s1", "b.s1", "working"), fault.Protocol, fault.WorkUnknown)
	})
	spec.Check(t, "agh-network#86: an undirected trace moves the work and is told to nobody", func(t *spec.T) {
		p := begun(t, "submitted")
		e := trace("m9", "b.s1", "", "working")
		t.NoError(p.Post(e))
		t.Equal(of(p), "working")
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e), []string(nil))
	})
	spec.Check(t, "agh-network#88: both sides fold the same", func(t *spec.T) {
		rapid.Check(t.T, func(r *rapid.T) {
			ours, theirs := begunOn(r), begunOn(r)
			for range rapid.IntRange(0, 8).Draw(r, "messages") {
				e := draw(r)
				a, b := ours.Post(e), theirs.Post(e)
				if (a == nil) != (b == nil) || ours.JSON() != theirs.JSON() {
					r.Fatalf("apart after %s: %v, %v", e.Ext, a, b)
				}
			}
		})
		t.True(true, "they agree")
	})
	spec.Check(t, "agh-network#128: a refused step leaves nothing", func(t *spec.T) {
		p := begun(t, "completed")
		log, before := len(p.Log), p.JSON()
		t.True(p.Post(say("m9", "a.s1", "b.s1", "work_1", 30)) != nil, "it is refused")
		t.Equal(len(p.Log), log)
		t.Equal(p.JSON(), before)
	})
	spec.Check(t, "seed-001#93: work rules hold exactly with a work_id", func(t *spec.T) {
		p := begun(t, "completed")
		t.NoError(p.Post(say("m8", "a.s1", "b.s1", "", 30)))
		refused(t, p, say("m9", "a.s1", "b.s1", "work_1", 30), fault.Protocol, fault.WorkClosed)
		t.Equal(of(p), "completed")
	})
	t.Run("work is bounded", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		for i := range 20 {
			c.NoError(p.Post(say(fmt.Sprint("m", i), "a.s1", "b.s1", fmt.Sprint("work_", i), 10)))
		}
		err := p.Post(say("m", "a.s1", "b.s1", "work_x", 10))
		c.Equal(fault.CodeOf(err), fault.TooLarge)
		c.ErrorContains(err, "agh.limits.work")
		c.NoError(p.Post(say("m", "b.s1", "a.s1", "work_7", 11)))
		c.Equal(p.State.(*work.Conversation).OpenWork, 20)
	})
}

func begunOn(r *rapid.T) *adaptertest.Play {
	p, err := adaptertest.Open(adapter, metadata())
	if err == nil {
		err = p.Post(say("m1", "a.s1", "b.s1", "work_1", 10))
	}
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// draw makes any record, right or wrong.
func draw(r *rapid.T) *envelope.Envelope {
	peers := []string{"a.s1", "b.s1", "c.s1", ""}
	kind := rapid.SampledFrom([]string{"say", "say", "capability", "receipt", "trace", "trace"}).Draw(r, "kind")
	body := rapid.SampledFrom([]string{
		`{"text":"é"}`, `{"state":"working"}`, `{"state":"needs_input"}`, `{"state":"completed"}`, `{"state":"submitted"}`, `{"status":"rejected"}`,
		`{"status":"accepted"}`, `{"status":"canceled"}`, `{"capability":{"summary":"s"}}`, `{}`, `[]`, `5`,
	}).Draw(r, "body")
	return message(kind, rapid.StringMatching(`m[0-9]`).Draw(r, "id"), rapid.SampledFrom(peers).Draw(r, "from"), rapid.SampledFrom(peers).Draw(r, "to"),
		rapid.SampledFrom([]string{"", "work_1", "work_1", "work_2"}).Draw(r, "work"), rapid.Int64Range(0, 40).Draw(r, "ts"), body)
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.ExerciseFolds(t, adaptertest.Folder{Adapter: adapter, Metadata: metadata, Draw: draw})
	t.Run("work never leaves its end, and open work is counted", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			p := begunOn(r)
			for range rapid.IntRange(0, 20).Draw(r, "messages") {
				before := p.State.(*work.Conversation)
				_ = p.Post(draw(r))
				after, open := p.State.(*work.Conversation), 0
				for id, w := range after.Works.All() {
					if old, ok := before.Works.Get(id); ok && old.State.Terminal() && old != w {
						r.Fatalf("%s moved from %s to %s", id, old.State, w.State)
					}
					if !w.State.Terminal() {
						open++
					}
				}
				if open != after.OpenWork {
					r.Fatalf("%d open, %d counted", open, after.OpenWork)
				}
			}
		})
	})
}
