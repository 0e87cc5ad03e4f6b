package hub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// count records an observation.
func (r *rig) count(o hub.Observation) {
	r.t.Helper()
	if err := r.RecordObservation(context.Background(), o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) resume(a *agent) *identity.Resume {
	r.t.Helper()
	d, err := r.Details(context.Background(), a.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.Resume
}

func (r *rig) capabilities() map[string][]string {
	r.t.Helper()
	all, err := r.Capabilities(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func (r *rig) found(q identity.Query) []hub.Profile {
	r.t.Helper()
	list, err := r.Agents(context.Background(), hub.AgentQuery{Query: q, Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func ms(n int64) *int64 { return &n }

func TestCapabilities(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#38: empty at first, then ids sorted for each capability", hub.Options{}, func(t *spec.T, r *rig) {
		t.Equal(r.capabilities(), map[string][]string{})
		r.restart()
		t.Equal(r.capabilities(), map[string][]string{})
		a, b, c := r.agent("a", claims("ocr", "draw")), r.agent("b", claims("ocr")), r.agent("c", claims("ocr"))
		want := map[string][]string{"draw": {a.id}, "ocr": {a.id, b.id, c.id}}
		t.Equal(r.capabilities(), want)
		r.restart()
		t.Equal(r.capabilities(), want)
	})
	holds(t, "ag2-hub#38: adding and removing claims updates what a second hub answers", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a", claims("ocr")), r.agent("b")
		t.NoError(r.SetResume(context.Background(), b.id, &identity.Resume{ClaimedCapabilities: []string{"ocr", "sing"}}))
		t.NoError(r.SetResume(context.Background(), a.id, &identity.Resume{}))
		r.restart()
		t.Equal(r.capabilities(), map[string][]string{"ocr": {b.id}, "sing": {b.id}})
	})
	find := func(r *rig, capability string) []string {
		ids := []string{}
		for _, p := range r.found(identity.Query{Capability: capability}) {
			ids = append(ids, p.ID())
		}
		return ids
	}
	holds(t, "ag2-hub#39: set_resume is visible to capability search at once, and so is a dropped claim", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		t.Equal(find(r, "ocr"), []string{})
		t.NoError(r.SetResume(context.Background(), a.id, &identity.Resume{ClaimedCapabilities: []string{"ocr"}}))
		t.Equal(find(r, "ocr"), []string{a.id})
		t.NoError(r.SetResume(context.Background(), a.id, &identity.Resume{}))
		t.Equal(find(r, "ocr"), []string{})
	})
	holds(t, "ag2-hub#39: last_updated becomes non-empty", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		t.True(r.resume(a).LastUpdated.IsZero(), "no mutation yet")
		r.pass(time.Second)
		t.NoError(r.SetResume(context.Background(), a.id, &identity.Resume{}))
		t.Equal(r.resume(a).LastUpdated, time.Now().UTC())
	})
	holds(t, "ag2-hub#46: a query matches the summary's text", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a", func(reg *hub.Registration) { reg.Resume.Summary = "Reads Scans of invoices" })
		r.agent("scans", claims("scans"))
		found := r.found(identity.Query{Text: "scans"})
		t.Equal(len(found), 1)
		t.Equal(found[0].ID(), a.id)
		t.Equal(len(r.found(identity.Query{Text: "scams"})), 0)
	})
	holds(t, "ag2-hub#41: an observed capability makes the agent findable under it", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a", claims("draw"))
		r.agent("b")
		t.Equal(find(r, "ocr"), []string{})
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed})
		t.Equal(find(r, "ocr"), []string{a.id})
		t.Equal(r.capabilities(), map[string][]string{"draw": {a.id}, "ocr": {a.id}})
	})
}

func TestObservation(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#40: each outcome counts, and n totals", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		for i, outcome := range []identity.Outcome{
			identity.Completed, identity.Failed, identity.Completed, identity.Expired, identity.Completed, identity.Failed,
		} {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: outcome, Task: fmt.Sprint(i)})
		}
		want := map[string]identity.ObservedStat{"ocr": {N: 6, Completed: 3, Failed: 2, Expired: 1}}
		t.Equal(r.resume(a).Observed, want)
		t.Equal(r.resume(a).Version, int64(7))
		r.restart()
		t.Equal(r.resume(a).Observed, want)
	})
	holds(t, "ag2-hub#40: one sample yields that sample, several their median, across a restart", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		latency := func(n int64) *int64 {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, LatencyMS: &n})
			return r.resume(a).Observed["ocr"].P50LatencyMS
		}
		t.Equal(latency(840), ms(840))
		t.Equal(latency(40), ms(440))
		r.restart()
		t.Equal(latency(100), ms(100))
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed})
		t.Equal(r.resume(a).Observed["ocr"].P50LatencyMS, ms(100))
	})
	holds(t, "ag2-hub#40: the median is that of the last 1,024", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		for range identity.MaxSamples {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, LatencyMS: ms(1)})
		}
		for range identity.MaxSamples/2 + 1 {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, LatencyMS: ms(9)})
		}
		t.Equal(r.resume(a).Observed["ocr"].P50LatencyMS, ms(9))
	})
	holds(t, "ag2-hub#42: a non-terminal outcome changes nothing", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		before := *r.resume(a)
		for _, outcome := range []identity.Outcome{"created", "running", "odd"} {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: outcome, Task: "1"})
		}
		t.Equal(*r.resume(a), before)
		t.Equal(len(r.audit("resume_set")), 0)
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, Task: "1"})
		t.Equal(r.resume(a).Observed["ocr"].N, int64(1))
	})
	holds(t, "ag2-hub#43: the same task id counts once, a different one again", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		for _, task := range []string{"1", "1", "2", "1", "2"} {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, Task: task})
			r.restart()
		}
		t.Equal(r.resume(a).Observed["ocr"].N, int64(2))
		t.Equal(r.resume(a).Version, int64(3))
	})
	holds(t, "ag2-hub#44: a cancelled outcome raises n", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Cancelled, Task: "1"})
		t.Equal(r.resume(a).Observed, map[string]identity.ObservedStat{"ocr": {N: 1}})
	})
	runs(t, "is audited and told", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("a")
		r.ear.clear()
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Failed})
		ev := r.ear.agents[0]
		if ev.Kind != "observation_recorded" || ev.Agent != a.id || ev.Capability != "ocr" || ev.Outcome != identity.Failed || ev.Resume.Version != 2 {
			t.Fatalf("told %+v", ev)
		}
	})
	runs(t, "of an unknown owner is ignored", hub.Options{}, func(t *testing.T, r *rig) {
		r.count(hub.Observation{Owner: "nobody", Capability: "ocr", Outcome: identity.Failed})
		if got := r.audit(); len(got) != 0 {
			t.Fatalf("audited %v", got)
		}
	})
	runs(t, "from many sides at once counts a task once", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("a")
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() {
				o := hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, Task: fmt.Sprint(n % 8), LatencyMS: ms(5)}
				if err := r.RecordObservation(context.Background(), o); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := r.resume(a).Observed["ocr"]; got.N != 8 || *got.P50LatencyMS != 5 {
			t.Fatalf("got %+v", got)
		}
	})
	runs(t, "that was not stored can be counted again", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("a")
		o := hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, Task: "1", LatencyMS: ms(7)}
		r.engine.Faults().FailWrite()
		if err := r.RecordObservation(context.Background(), o); err == nil {
			t.Fatal("stored")
		}
		r.count(o)
		r.count(o)
		if got := r.resume(a).Observed["ocr"]; got.N != 1 || *got.P50LatencyMS != 7 {
			t.Fatalf("got %+v", got)
		}
	})
}
