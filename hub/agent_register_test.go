package hub_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

var ctx = context.Background()

func passport(name string) *identity.Passport {
	return &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}, Version: 1}
}

func (r *rig) tryRegister(p *identity.Passport) (hub.Profile, error) {
	return r.Register(ctx, hub.Registration{Passport: p})
}

// names lists the registered names.
func (r *rig) names(q identity.Query) []string {
	names := []string{}
	for _, p := range r.found(q) {
		names = append(names, p.Passport.Name)
	}
	return names
}

func claims(capabilities ...string) func(*hub.Registration) {
	return func(reg *hub.Registration) { reg.Resume.ClaimedCapabilities = capabilities }
}

func TestRegistration(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#26: a duplicate name is refused", hub.Options{}, func(t *spec.T, r *rig) {
		r.agent("quill")
		_, err := r.tryRegister(passport("quill"))
		t.ErrorContains(err, "already registered", "attach")
		t.Equal(fault.CodeOf(err), fault.Protocol)
	})
	holds(t, "ag2-hub#26: nothing new is stored or listed", hub.Options{}, func(t *spec.T, r *rig) {
		first := r.agent("quill", claims("ocr"))
		_, _ = r.tryRegister(passport("quill"))
		for range 2 {
			t.Equal(r.names(identity.Query{}), []string{"quill"})
			t.Equal(r.capabilities(), map[string][]string{"ocr": {first.id}})
			r.restart()
		}
	})
	holds(t, "ag2-hub#27: three simultaneous registrations of one name: exactly one wins", hub.Options{}, func(t *spec.T, r *rig) {
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { _, errs[i] = r.tryRegister(passport("quill")) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			t.ErrorContains(err, "already registered")
		}
		t.Equal(won, 1)
		t.Equal(r.names(identity.Query{}), []string{"quill"})
	})
	runs(t, "who loses a name to one that was never stored gets it", hub.Options{}, func(t *testing.T, r *rig) {
		r.agent("warm") // so that ids are reserved already
		r.engine.Faults().FailWrite()
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wg.Go(func() { _, errs[i] = r.tryRegister(passport("quill")) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("one should have won: %v, %v", errs[0], errs[1])
		}
	})
	holds(t, "ag2-hub#28: unregister then register: works, new agent_id", hub.Options{}, func(t *spec.T, r *rig) {
		old := r.agent("quill")
		t.NoError(r.Unregister(ctx, old.id))
		p, err := r.tryRegister(passport("quill"))
		t.NoError(err)
		t.True(p.ID() != old.id && envelope.ValidID(p.ID()), "a new id, not %s", p.ID())
		id, ok := r.FindAgent("quill")
		t.Equal(id, p.ID())
		t.True(ok, "found by name")
	})
	holds(t, "ag2-hub#29: passport, resume, rule, skill and cursors are gone", hub.Options{}, func(t *spec.T, r *rig) {
		skill := "# how"
		a, b := r.agent("alice"), r.agent("bob", claims("ocr"), func(reg *hub.Registration) { reg.Skill = &skill })
		ch := r.open("conversation", a, b)
		id := r.say(a, ch, "hello")
		t.NoError(r.Ack(ctx, b.id, ch, id))
		cursor, err := r.Cursor(ctx, b.id, ch)
		t.NoError(err)
		t.Equal(cursor, id)
		t.NoError(r.Unregister(ctx, b.id))
		for range 2 {
			_, err = r.AgentByID(b.id)
			t.Equal(fault.CodeOf(err), fault.NotFound)
			cursor, err = r.Cursor(ctx, b.id, ch)
			t.NoError(err)
			t.Equal(cursor, "")
			// Nothing of it is left in the store either.
			page, err := r.engine.Logs(ctx, journal.PartitionName{Tenant: "main", Partition: "directory"}, journal.LogsOptions{Family: "agent"})
			t.NoError(err)
			t.Equal(len(page.Logs), 1)
			t.Equal(page.Logs[0].Log.ID, a.id)
			r.restart()
		}
	})
	holds(t, "ag2-hub#29: a new hub knows neither agent nor capability", hub.Options{}, func(t *spec.T, r *rig) {
		b := r.agent("bob", claims("ocr"))
		t.NoError(r.Unregister(ctx, b.id))
		r.restart()
		t.Equal(r.names(identity.Query{}), []string{})
		t.Equal(r.capabilities(), map[string][]string{})
		_, ok := r.FindAgent("bob")
		t.False(ok, "bob is found")
	})
	holds(t, "ag2-hub#30 seed-000#5: posting from an unregistered id is not_found", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		before := r.types(ch)
		_, err := r.trySay(&agent{id: "alice"}, ch, "by name")
		t.ErrorContains(err, "sender not registered")
		t.Equal(fault.CodeOf(err), fault.NotFound)
		t.Equal(r.types(ch), before)
		r.say(a, ch, "by id")
		t.Equal(r.log(ch)[len(before)].Sender, a.id)
		t.NoError(r.Unregister(ctx, a.id))
		_, err = r.trySay(a, ch, "once more")
		t.ErrorContains(err, "sender not registered")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	holds(t, "ag2-hub#31: the log stays whole and the peer can post", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(b, ch, "from bob")
		before := r.log(ch)
		t.NoError(r.Unregister(ctx, b.id))
		t.Equal(r.log(ch), before)
		r.say(a, ch, "still here")
		t.Equal(len(r.log(ch)), len(before)+1)
		t.Equal(r.channel(ch).IDs(), []string{a.id, b.id})
	})
	holds(t, "ag2-hub#31: lookups of the id fail", hub.Options{}, func(t *spec.T, r *rig) {
		b := r.agent("bob")
		t.NoError(r.Unregister(ctx, b.id))
		_, err := r.Agent(b.id)
		t.Equal(fault.CodeOf(err), fault.NotFound)
		t.Equal(r.Name(b.id), b.id)
		t.Equal(fault.CodeOf(r.Unregister(ctx, b.id)), fault.NotFound)
	})
	keyed := hub.Options{Auth: identity.NewAuthRegistry(identity.None{}, identity.NewAPIKey(map[string]string{"quill": "tok-7"}, nil))}
	withToken := func(token string) *identity.Passport {
		p := passport("quill")
		p.Auth = identity.Auth{Scheme: identity.SchemeAPIKey, Claim: []byte(`{"token":"` + token + `"}`)}
		return p
	}
	holds(t, "ag2-hub#32: a bad claim is refused", keyed, func(t *spec.T, r *rig) {
		_, err := r.tryRegister(withToken("wrong"))
		t.Equal(fault.CodeOf(err), fault.AuthFailed)
		t.Equal(r.names(identity.Query{}), []string{})
	})
	holds(t, "ag2-hub#32: a good claim is stamped", keyed, func(t *spec.T, r *rig) {
		p := withToken("tok-7")
		p.AgentID, p.CreatedAt = "mine", time.Now().Add(-time.Hour)
		got, err := r.tryRegister(p)
		t.NoError(err)
		t.True(envelope.ValidID(got.ID()), "stamped id %q", got.ID())
		t.Equal(got.Passport.CreatedAt, time.Now().UTC())
		t.Equal(len(got.Passport.Auth.Claim), 0)
	})
	holds(t, "ag2-hub#33: unknown kind value is refused", hub.Options{}, func(t *spec.T, r *rig) {
		p := passport("quill")
		p.Kind = "robot"
		_, err := r.tryRegister(p)
		t.ErrorContains(err, "robot")
		t.Equal(fault.CodeOf(err), fault.Invalid)
		t.Equal(r.names(identity.Query{}), []string{})
	})
	holds(t, "ag2-hub#34: register_human stores kind:'human'", hub.Options{}, func(t *spec.T, r *rig) {
		h := r.human("hana")
		p, err := r.AgentByID(h.id)
		t.NoError(err)
		t.Equal(p.Passport.Kind, identity.Human)
		again := passport("hana")
		again.Kind = identity.Human
		_, err = r.tryRegister(again)
		t.ErrorContains(err, "already registered")
	})
	holds(t, "ag2-hub#35: list_agents(kind) separates agents", hub.Options{}, func(t *spec.T, r *rig) {
		r.agent("plain")
		r.human("hana")
		r.agent("named", func(reg *hub.Registration) { reg.Passport.Kind = identity.Agent })
		t.Equal(r.names(identity.Query{Kind: identity.Agent}), []string{"plain", "named"})
		t.Equal(r.names(identity.Query{Kind: identity.Human}), []string{"hana"})
		t.Equal(r.names(identity.Query{}), []string{"plain", "hana", "named"})
	})
	holds(t, "ag2-hub#36: find by name", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		id, ok := r.FindAgent("alice")
		t.Equal(id, a.id)
		t.True(ok, "alice is found")
		_, ok = r.FindAgent("bob")
		t.False(ok, "bob is found")
	})
	holds(t, "ag2-hub#36: the default rule", hub.Options{}, func(t *spec.T, r *rig) {
		got, err := r.tryRegister(passport("quill"))
		t.NoError(err)
		rule := identity.DefaultRule()
		t.Equal(got.Rule, &rule, cmp.AllowUnexported(identity.TTL{}))
	})
	holds(t, "ag2-hub#36: the rule of an unknown agent", hub.Options{}, func(t *spec.T, r *rig) {
		_, err := r.AgentByID("nobody")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	holds(t, "ag2-hub#37: capabilities are indexed and pruned", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", claims("ocr", "translate"))
		b := r.agent("bob", claims("ocr"))
		t.Equal(r.capabilities(), map[string][]string{"ocr": {a.id, b.id}, "translate": {a.id}})
		t.NoError(r.Unregister(ctx, a.id))
		t.Equal(r.capabilities(), map[string][]string{"ocr": {b.id}})
	})
	holds(t, "ag2-hub#103: an empty store has no agents, channels or tasks", hub.Options{}, func(t *spec.T, r *rig) {
		channels, next, err := r.Channels(ctx, hub.ListOptions{})
		t.NoError(err)
		t.Equal(len(channels), 0)
		t.Equal(next, "")
		t.Equal(r.names(identity.Query{}), []string{})
		tasks, _, err := r.Tasks(ctx, hub.TaskQuery{Limit: 100})
		t.NoError(err)
		t.Equal(len(tasks), 0)
	})
	holds(t, "ag2-hub#105: the default rule of who gave none, on a second hub", hub.Options{}, func(t *spec.T, r *rig) {
		got, err := r.tryRegister(passport("quill"))
		t.NoError(err)
		r.restart()
		p, err := r.AgentByID(got.ID())
		t.NoError(err)
		t.Equal(p.Rule.Version, int64(1))
		t.Equal(p.Rule.Limits.ChannelTTLDefault.String(), "2h")
		rule := identity.DefaultRule()
		t.Equal(p.Rule, &rule, cmp.AllowUnexported(identity.TTL{}))
	})
	holds(t, "ag2-hub#106: no skill on a second hub", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		r.restart()
		d, err := r.Details(ctx, a.id)
		t.NoError(err)
		t.True(d.Skill == nil, "skill is null")
	})
}
