package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

func (r *rig) details(a *agent) hub.Details {
	r.t.Helper()
	d, err := r.Details(ctx, a.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// agentLog returns the sizes of an identity's stored records.
func (r *rig) agentLog(a *agent) []int {
	r.t.Helper()
	var sizes []int
	for entry, err := range journal.Records(ctx, r.stored, schema.Tenant("main").Agent(a.id), journal.ReadOptions{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		sizes = append(sizes, len(entry.Data))
	}
	return sizes
}

func filler(bytes int) *string {
	s := strings.Repeat("x", bytes)
	return &s
}

// Skill, resume and rule count together, and a refusal changes nothing.
func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	wide := func() *identity.Rule {
		rule := identity.DefaultRule()
		for n := range 100 {
			rule.Access.InboundFrom = append(rule.Access.InboundFrom, fmt.Sprintf("%03d%s", n, strings.Repeat("x", 700)))
		}
		return &rule
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "at most 65536 (limits.profile)") {
			t.Errorf("got %v", err)
		}
	}
	runs(t, "at registration", hub.Options{}, func(t *testing.T, r *rig) {
		for name, reg := range map[string]hub.Registration{
			"skill":  {Skill: filler(64 << 10)},
			"resume": {Resume: &identity.Resume{Summary: *filler(64 << 10)}},
			"rule":   {Rule: wide()},
			"sum":    {Skill: filler(32 << 10), Resume: &identity.Resume{Summary: *filler(32 << 10)}},
		} {
			reg.Passport = passport(name)
			_, err := r.Register(ctx, reg)
			refused(t, err)
		}
		if n := len(r.found(identity.Query{})); n != 0 {
			t.Errorf("%d were registered", n)
		}
		if _, err := r.Register(ctx, hub.Registration{Passport: passport("fits"), Skill: filler(63 << 10)}); err != nil {
			t.Error(err)
		}
	})
	runs(t, "when it is changed", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		if err := r.SetSkill(ctx, a.id, filler(40<<10)); err != nil {
			t.Fatal(err)
		}
		before := r.details(a)
		refused(t, r.SetResume(ctx, a.id, &identity.Resume{Summary: *filler(30 << 10)}))
		refused(t, r.SetRule(ctx, a.id, wide()))
		refused(t, r.SetSkill(ctx, a.id, filler(65<<10)))
		if diff := cmp.Diff(before, r.details(a)); diff != "" {
			t.Error(diff)
		}
		if err := r.SetSkill(ctx, a.id, nil); err != nil {
			t.Error(err)
		}
		if err := r.SetResume(ctx, a.id, &identity.Resume{Summary: *filler(30 << 10)}); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
	runs(t, "by the capabilities that are observed", hub.Options{Limits: hub.Limits{ProfileBytes: 2 << 10}}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed})
		err := r.RecordObservation(ctx, hub.Observation{Owner: a.id, Capability: *filler(2 << 10), Outcome: identity.Completed})
		if fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("got %v", err)
		}
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed})
		if got := r.resume(a).Observed; len(got) != 1 || got["ocr"].N != 2 {
			t.Errorf("observed %v", got)
		}
	})
	runs(t, "by the number of capabilities", hub.Options{Limits: hub.Limits{ProfileBytes: 1 << 20}}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		many := &identity.Resume{}
		for n := range identity.MaxCapabilities + 1 {
			many.ClaimedCapabilities = append(many.ClaimedCapabilities, fmt.Sprint(n))
		}
		if err := r.SetResume(ctx, a.id, many); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "at most 1024") {
			t.Errorf("got %v", err)
		}
	})
	stored(t, "what is stored already is read, and may shrink", hub.Options{Limits: hub.Limits{ProfileBytes: 1 << 20}}, func(t *testing.T, r *rig) {
		a := r.agent("alice", func(reg *hub.Registration) { reg.Skill = filler(300 << 10) })
		want := r.details(a)
		r.restart(func(o *hub.Options) { o.Limits.ProfileBytes = 0 })
		if diff := cmp.Diff(want, r.details(a), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		refused(t, r.SetResume(ctx, a.id, &identity.Resume{Summary: *filler(1 << 10)}))
		if err := r.SetSkill(ctx, a.id, filler(200<<10)); err != nil {
			t.Errorf("smaller: %v", err)
		}
		r.count(hub.Observation{Owner: a.id, Capability: "", Outcome: "running"})
	})
}

// An observation writes only itself, and now and then the whole record; reading
// returns everything, whatever was in memory.
func TestObservationsWriteLittle(t *testing.T) {
	t.Parallel()
	stored(t, "of a long resume", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice", func(reg *hub.Registration) {
			reg.Resume, reg.Skill = &identity.Resume{Version: 1, Summary: *filler(10 << 10)}, filler(10<<10)
		})
		const observations = 400
		model, samples := r.resume(a).Clone(), map[string]*identity.Samples{"ocr": {}, "draw": {}}
		for n := range observations {
			o := hub.Observation{Owner: a.id, Capability: []string{"ocr", "draw"}[n%2], Outcome: identity.Completed, LatencyMS: ms(int64(n * 37 % 101)), Task: fmt.Sprint(n)}
			r.count(o)
			model.Observe(o.Capability, o.Outcome, o.LatencyMS, samples[o.Capability], r.resume(a).LastUpdated)
			if n%150 == 149 {
				r.restart()
			}
		}
		if diff := cmp.Diff(model, r.resume(a), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		if skill := r.details(a).Skill; skill == nil || len(*skill) != 10<<10 {
			t.Error("the skill is gone")
		}
		total, whole := 0, 0
		for _, size := range r.agentLog(a)[1:] {
			total += size
			if size > 20<<10 {
				whole++
			}
		}
		if total > observations*1024 || whole == 0 {
			t.Errorf("%d observations wrote %d bytes, %d times the whole", observations, total, whole)
		}
	})
	runs(t, "of many capabilities, of which 64 have a median", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		for n := range 66 {
			r.count(hub.Observation{Owner: a.id, Capability: fmt.Sprint("c", n), Outcome: identity.Completed, LatencyMS: ms(3)})
		}
		r.restart()
		medians := 0
		for _, stat := range r.resume(a).Observed {
			if stat.N == 1 && stat.P50LatencyMS != nil {
				medians++
			}
		}
		if n := len(r.resume(a).Observed); n != 66 || medians != 64 {
			t.Errorf("%d capabilities, %d medians", n, medians)
		}
	})
}

// Observations in the format before they had a kind of their own are read.
func TestOldObservationsAreRead(t *testing.T) {
	t.Parallel()
	stored(t, "and counted on", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		samples := &identity.Samples{}
		samples.Add(10)
		samples.Add(30)
		kept, _ := samples.MarshalBinary()
		resume := &identity.Resume{Version: 3, Summary: "old", Observed: map[string]identity.ObservedStat{"ocr": {N: 2, Completed: 2, P50LatencyMS: ms(20)}}}
		data, err := identity.Marshal(schema.AgentRecord{Kind: schema.AgentResume, Resume: resume, Samples: map[string][]byte{"ocr": kept}})
		if err != nil {
			t.Fatal(err)
		}
		ticket, err := r.stored.Append(ctx, journal.Batch{Appends: []journal.Append{{Log: schema.Tenant("main").Agent(a.id), Records: []journal.Record{
			{Data: data}, {Data: []byte(`{"kind":"observed"}`), Take: []journal.Take{{Name: schema.ObservedClaim("t1")}}},
		}}}})
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.restart()
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, LatencyMS: ms(100), Task: "t1"})
		if got := r.resume(a); got.Summary != "old" || got.Observed["ocr"].N != 2 {
			t.Fatalf("got %+v", got)
		}
		r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed, LatencyMS: ms(100), Task: "t2"})
		if got := r.resume(a).Observed["ocr"]; got.N != 3 || *got.P50LatencyMS != 30 {
			t.Fatalf("got %+v, p50 %d", got, *got.P50LatencyMS)
		}
	})
}

// A search returns the same whether or not a resume is short enough to be searched
// in memory.
func TestSearchesOfLongResumes(t *testing.T) {
	t.Parallel()
	stored(t, "by capability and text", hub.Options{Limits: hub.Limits{ProfileCache: 1}}, func(t *testing.T, r *rig) {
		long := func(reg *hub.Registration) {
			reg.Resume = &identity.Resume{Version: 1, Summary: *filler(5 << 10) + " Needle"}
			for n := range identity.MaxCapabilities {
				reg.Resume.ClaimedCapabilities = append(reg.Resume.ClaimedCapabilities, fmt.Sprint("c", n))
			}
		}
		a, b := r.agent("alice", long), r.agent("bob", claims("c7"))
		r.agent("carol")
		for range 2 {
			for _, tc := range []struct {
				q    identity.Query
				want []string
			}{
				{identity.Query{Capability: "c7"}, []string{a.id, b.id}},
				{identity.Query{Capability: "c1023"}, []string{a.id}},
				{identity.Query{Capability: "c1024"}, nil},
				{identity.Query{Text: "needle"}, []string{a.id}},
				{identity.Query{Capability: "c7", Text: "needle"}, []string{a.id}},
				{identity.Query{Text: "needle", Kind: identity.Human}, nil},
			} {
				var got []string
				for _, p := range r.found(tc.q) {
					got = append(got, p.ID())
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%+v: %s", tc.q, diff)
				}
			}
			r.restart()
		}
	})
}

// reads counts the pages that are read from a journal.
type reads struct {
	journal.Engine
	pages atomic.Int64
}

func (r *reads) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	r.pages.Add(1)
	return r.Engine.Read(ctx, log, o)
}

// However many identities there are, memory holds only as many skills and resumes
// as limits.profile_cache allows: each of the others is read on demand, and
// admission needs none of them.
func TestProfilesOfManyAreNotHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine, err := mem.Open(mem.Options{Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		counted := &reads{Engine: engine}
		h, err := hub.Open(ctx, counted, hub.Options{Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler), Limits: hub.Limits{ProfileCache: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { h.Close(); _ = engine.Close() }()
		const many, fit = 400, 16 // of 64 KiB
		var ids []string
		for i := range many {
			p, err := h.Register(ctx, hub.Registration{Passport: passport(fmt.Sprint("n", i)), Skill: filler(62 << 10)})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, p.Passport.AgentID)
		}
		asked := func(of []string) int64 {
			before := counted.pages.Load()
			for _, id := range of {
				if d, err := h.Details(ctx, id); err != nil || d.Skill == nil || len(*d.Skill) != 62<<10 {
					t.Fatalf("details of %s: %v", id, err)
				}
			}
			return counted.pages.Load() - before
		}
		if n := asked(ids); n < many-fit {
			t.Errorf("%d profiles were read for %d identities: the rest is held", n, many)
		}
		if n := asked(ids[many-4:]); n != 0 {
			t.Errorf("%d of the four newest were read again", n)
		}
		before := counted.pages.Load()
		if _, err := h.Open(ctx, hub.Opening{Creator: ids[0], Type: "discussion", Participants: ids[1:3], RequiredAcks: new(int)}); err != nil {
			t.Fatal(err)
		}
		if n := counted.pages.Load() - before; n != 0 {
			t.Errorf("opening a channel read %d pages", n)
		}
	})
}

// Readers of details that are being changed or removed see one state or none.
func TestDetailsWhileTheyChange(t *testing.T) {
	t.Parallel()
	runs(t, "read by many", hub.Options{Limits: hub.Limits{ProfileCache: 8 << 10}}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				last := int64(0)
				for range 200 {
					d, err := r.Details(ctx, a.id)
					if fault.CodeOf(err) == fault.NotFound {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if d.Resume.Version < last || d.Resume.Observed["ocr"].N != d.Resume.Version-1 {
						t.Errorf("version %d after %d: %+v", d.Resume.Version, last, d.Resume.Observed)
					}
					last = d.Resume.Version
				}
			})
		}
		for range 200 {
			r.count(hub.Observation{Owner: a.id, Capability: "ocr", Outcome: identity.Completed})
		}
		if err := r.Unregister(ctx, a.id); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}
