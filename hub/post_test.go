package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func (r *rig) tryPost(a *agent, channelID, eventType, data string, edit ...func(*envelope.Envelope)) (string, error) {
	e := &envelope.Envelope{Channel: channelID, Sender: a.id, Type: eventType, Data: []byte(data)}
	for _, finish := range edit {
		finish(e)
	}
	return r.Post(ctx, e, nil)
}

func audience(to ...*agent) func(*envelope.Envelope) {
	return func(e *envelope.Envelope) {
		e.Audience = []string{}
		for _, a := range to {
			e.Audience = append(e.Audience, a.id)
		}
	}
}

// texts returns the texts that an agent received.
func (a *agent) texts() []string {
	got := []string{}
	for _, e := range a.inbox() {
		if e.Type == envelope.TypeText {
			got = append(got, string(e.Data))
		}
	}
	return got
}

func text(s string) string { return `{"text":"` + s + `"}` }

func TestPosting(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#58: an unknown channel", hub.Options{}, func(t *spec.T, r *rig) {
		_, err := r.trySay(r.agent("alice"), "nowhere", "hi")
		t.ErrorContains(err, "channel not found")
		t.Equal(fault.CodeOf(err), fault.NotFound)
	})
	holds(t, "ag2-hub#58: an ended channel", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		closed := r.open("conversation", a, b)
		r.end(closed, "")
		expired := r.openWith("conversation", func(o *hub.Opening) { s := identity.SecondsTTL(60); o.TTL = &s }, a, b)
		r.pass(2 * time.Minute)
		for id, want := range map[string]string{closed: "closed", expired: "expired"} {
			before := r.types(id)
			_, err := r.trySay(a, id, "hi")
			t.ErrorContains(err, want)
			t.Equal(fault.CodeOf(err), fault.Protocol)
			t.Equal(r.types(id), before)
		}
	})
	holds(t, "seed-000#4: channel_id is a string given by the sender", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		for _, id := range []string{"", "nowhere"} {
			_, err := r.trySay(a, id, "hi")
			t.ErrorContains(err, "channel not found")
		}
		t.Equal(r.listed(), []string{})
		n, err := r.Length(ctx, "nowhere")
		t.NoError(err)
		t.Equal(n, uint64(0))
	})
	holds(t, "ag2-hub#59: access check precedes channel lookup", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Access.OutboundTo = []string{"carol"} }))
		b := r.agent("bob")
		_, err := r.tryPost(a, "nowhere", envelope.TypeText, text("hi"), audience(b))
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
	})
	holds(t, "ag2-hub#60: outbound_to allows matching names and denies others", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Access.OutboundTo = []string{"b[oa]b", "me?"} }))
		b := r.agent("bob")
		c := r.agent("carol")
		ch := r.open("conversation", c, a)
		_, err := r.tryPost(a, ch, envelope.TypeText, text("hi"), audience(b))
		t.NoError(err)
		before := r.types(ch)
		_, err = r.tryPost(a, ch, envelope.TypeText, text("hi"), audience(b, c))
		t.ErrorContains(err, "outbound_to", "carol")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
		t.Equal(r.types(ch), before)
		r.say(a, ch, "a broadcast is not checked")
	})
	holds(t, "ag2-hub#61: self in the audience is always allowed", hub.Options{}, func(t *spec.T, r *rig) {
		b := r.agent("bob")
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Access.OutboundTo = []string{} }))
		ch := r.open("conversation", b, a)
		_, err := r.tryPost(a, ch, envelope.TypeText, text("note to self"), audience(a))
		t.NoError(err)
		t.Equal(a.texts(), []string{text("note to self")})
		t.Equal(b.texts(), []string{})
	})
	holds(t, "ag2-hub#62: inbound_from tightened mid-channel hides the post", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		rule := identity.DefaultRule()
		rule.Access.InboundFrom = []string{"nobody"}
		t.NoError(r.SetRule(ctx, b.id, &rule))
		r.say(a, ch, "unheard")
		t.Equal(string(r.log(ch)[3].Data), text("unheard"))
		t.Equal(b.texts(), []string{})
	})
	depth := func(n int) func(*envelope.Envelope) { return func(e *envelope.Envelope) { e.Depth = n } }
	holds(t, "ag2-hub#63: depth at the cap is accepted, above it denied", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Limits.DelegationDepth = 3 }))
		b := r.agent("bob", rule(func(r *identity.Rule) { r.Limits.DelegationDepth = 0 }))
		ch := r.open("conversation", a, b)
		_, err := r.tryPost(a, ch, envelope.TypeText, text("3"), depth(3))
		t.NoError(err)
		_, err = r.tryPost(a, ch, envelope.TypeText, text("4"), depth(4))
		t.ErrorContains(err, "delegation_depth")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
		_, err = r.tryPost(b, ch, envelope.TypeText, text("1000"), depth(1000))
		t.NoError(err)
		t.Equal(len(r.log(ch)), 5)
	})
	small := rule(func(r *identity.Rule) { r.Limits.Inbox.MaxPending = 2 })
	holds(t, "ag2-hub#64: a full inbox refuses the post until the recipient posts", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", small)
		ch := r.open("conversation", a, b)
		r.say(a, ch, "1")
		r.say(a, ch, "2")
		before := r.types(ch)
		_, err := r.trySay(a, ch, "3")
		t.ErrorContains(err, "inbox at capacity")
		t.Equal(fault.CodeOf(err), fault.InboxFull)
		t.Equal(r.types(ch), before)
		r.say(b, ch, "got it")
		r.say(a, ch, "3")
		_, err = r.trySay(a, ch, "4")
		t.ErrorContains(err, "inbox at capacity")
	})
	// burst posts without waiting for the disk, and counts the accepted posts.
	burst := func(r *rig, a *agent, ch string, posts int) (stored, full int) {
		release := r.hold()
		var list []*hub.Pending
		for range posts {
			list = append(list, r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(text("x"))}, nil))
		}
		release()
		for _, p := range list {
			switch _, err := p.Wait(ctx); {
			case err == nil:
				stored++
			case fault.CodeOf(err) == fault.InboxFull:
				full++
			}
		}
		return stored, full
	}
	holds(t, "ag2-hub#64: posts that follow each other closely", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", small)
		ch := r.open("conversation", a, b)
		stored, full := burst(r, a, ch, 5)
		t.Equal([]int{stored, full}, []int{2, 3})
		t.Equal(r.Pending(b.id), int64(2))
		r.say(b, ch, "got it")
		stored, full = burst(r, a, ch, 5)
		t.Equal([]int{stored, full}, []int{1, 4})
	})
	runs(t, "whoever is away takes no place", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", small)
		ch := r.open("conversation", a, b)
		r.away(b)
		if stored, full := burst(r, a, ch, 5); stored != 5 || full != 0 {
			t.Errorf("%d were stored, %d refused", stored, full)
		}
		r.back(b, r.say(a, ch, "again"))
		if stored, full := burst(r, a, ch, 5); stored != 2 || full != 3 {
			t.Errorf("back again, %d were stored, %d refused", stored, full)
		}
	})
	runs(t, "a refusal gives its places back", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob", small), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		for range 5 {
			if _, err := r.trySay(c, ch, "out of turn"); fault.CodeOf(err) != fault.Protocol {
				t.Fatal(err)
			}
		}
		r.say(a, ch, "1")
		if got := r.Pending(b.id); got != 1 {
			t.Errorf("%d are pending", got)
		}
		r.post(c, ch, "app.note", `{}`)
		if _, err := r.tryPost(c, ch, "app.note", `{}`); fault.CodeOf(err) != fault.InboxFull {
			t.Errorf("one too many is answered with %v", err)
		}
	})
	holds(t, "ag2-hub#56: inbox capacity never blocks invites, acks, opened or closed", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice", small), r.agent("bob", small), r.agent("carol")
		for _, full := range []*agent{a, b} { // the one who acks, and the one who is acked
			ch := r.open("conversation", c, full)
			r.say(c, ch, "1")
			r.say(c, ch, "2")
			_, err := r.trySay(c, ch, "3")
			t.ErrorContains(err, "inbox at capacity")
			full.clear()
		}
		ch := r.open("conversation", a, b)
		r.end(ch, "")
		t.Equal(r.types(ch), []string{envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeOpened, envelope.TypeClosed})
		t.Equal(a.received(), []string{envelope.TypeOpened, envelope.TypeClosed})
		t.Equal(b.received(), []string{envelope.TypeInvite, envelope.TypeOpened, envelope.TypeClosed})
	})
	holds(t, "ag2-hub#65: unregistering clears the pending counter", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob", small)
		ch := r.open("conversation", a, b)
		r.say(a, ch, "1")
		t.Equal(r.Pending(b.id), int64(1))
		t.NoError(r.Unregister(ctx, b.id))
		t.Equal(r.Pending(b.id), int64(0))
		again := r.agent("bob")
		t.Equal(r.Pending(again.id), int64(0))
	})
	holds(t, "ag2-hub#66 ag2-channels#9: adapter rejection appends nothing to the WAL", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		before := r.log(ch)
		_, err := r.trySay(b, ch, "me first")
		t.ErrorContains(err, "expects first send from initiator")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(r.log(ch), before)
	})
	holds(t, "ag2-channels#11: after close any post is refused", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		r.say(a, ch, "why?")
		r.say(b, ch, "because")
		before := r.log(ch)
		for _, who := range []*agent{a, b} {
			for _, kind := range []string{
				envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet, "my.own",
				envelope.TypeTaskProgress, envelope.TypeInviteAck, envelope.TypeClosed,
			} {
				_, err := r.tryPost(who, ch, kind, `{"text":"but"}`)
				t.ErrorContains(err, "closed")
				t.Equal(fault.CodeOf(err), fault.Protocol)
			}
		}
		t.Equal(r.log(ch), before)
	})
	holds(t, "ag2-channels#24: out-of-turn text names who is expected", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		for i, next := range []*agent{a, b, c, a} {
			before := r.log(ch)
			for _, who := range []*agent{a, b, c} {
				if who == next {
					continue
				}
				_, err := r.trySay(who, ch, "out of turn")
				t.ErrorContains(err, "expects '"+next.id+"' to speak")
				t.Equal(fault.CodeOf(err), fault.Protocol)
			}
			t.Equal(r.log(ch), before)
			r.say(next, ch, fmt.Sprint(i))
		}
	})
	holds(t, "ag2-hub#67 ag2-channels#22: parallel posts on one channel all get in, with unique ids", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		var wg sync.WaitGroup
		ids := make([]string, 5)
		for i := range ids {
			wg.Go(func() { ids[i] = r.say(a, ch, fmt.Sprint(i)) })
		}
		wg.Wait()
		var logged []string
		for _, e := range r.log(ch)[3:] {
			logged = append(logged, e.ID)
		}
		slices.Sort(ids)
		t.Equal(logged, ids)
		t.Equal(len(slices.Compact(ids)), 5)
	})
	holds(t, "ag2-hub#68 seed-000#15: parallel posts on different channels stay separate", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		channels := []string{r.open("conversation", a, b), r.open("conversation", a, b)}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { r.say(a, channels[i%2], fmt.Sprint(i%2)) })
		}
		wg.Wait()
		for i, ch := range channels {
			log := r.log(ch)
			t.Equal(len(log), 13)
			for n, e := range log {
				t.Equal(e.Seq, uint64(n+1))
				if n >= 3 {
					t.Equal(string(e.Data), text(fmt.Sprint(i)))
				}
			}
		}
	})
	holds(t, "ag2-hub#69: unknown audience ids: accepted, known ones served", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		_, err := r.tryPost(a, ch, envelope.TypeText, text("hi"), func(e *envelope.Envelope) { e.Audience = []string{"ghost", b.id} })
		t.NoError(err)
		t.Equal(b.texts(), []string{text("hi")})
		t.Equal(r.log(ch)[3].Audience, []string{"ghost", b.id})
		t.Equal(r.ear.heard()[5:], []string{"posted ag2.msg.text"}) // and no failure
	})
	holds(t, "ag2-hub#70 ag2-channels#130: a missing adapter or state refuses posts", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		kept, before := r.channel(ch), r.log(ch)
		r.restart(func(o *hub.Options) { o.Adapters = adapter.All()[:1] })
		_, err := r.trySay(a, ch, "hi")
		t.ErrorContains(err, "no registered adapter")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(r.channel(ch), kept)
		for _, ad := range adapter.All() {
			r.UseAdapter(ad)
		}
		_, err = r.trySay(a, ch, "hi")
		t.ErrorContains(err, "no adapter state")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(r.channel(ch), kept)
		t.Equal(r.log(ch), before)
		r.restart(func(o *hub.Options) { o.Adapters = adapter.All() })
		r.say(a, ch, "hi")
	})
	holds(t, "ag2-hub#71: a custom denial reaches the sender", hub.Options{Arbiter: stern{}}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		_, err := r.trySay(a, ch, "hi")
		t.ErrorContains(err, "not on my watch")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
	})
	holds(t, "ag2-hub#71: allow-all overrides rules, and a swap holds at once", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Limits.DelegationDepth = 1 }))
		ch := r.open("conversation", a, r.agent("bob"))
		_, err := r.tryPost(a, ch, envelope.TypeText, text("deep"), depth(9))
		t.ErrorContains(err, "delegation_depth")
		r.SetArbiter(hub.AllowAll{})
		_, err = r.tryPost(a, ch, envelope.TypeText, text("deep"), depth(9))
		t.NoError(err)
		r.SetArbiter(stern{})
		_, err = r.trySay(a, ch, "hi")
		t.ErrorContains(err, "not on my watch")
	})
	holds(t, "ag2-hub#71: allow-all overrides every rule", hub.Options{Arbiter: hub.AllowAll{}}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) {
			r.Access.OutboundTo, r.Access.ChannelTypes.Initiate = []string{}, []string{}
			r.Limits.MaxConcurrentChannels = 1
		}))
		b := r.agent("bob", small, rule(func(r *identity.Rule) {
			r.Access.InboundFrom, r.Access.ChannelTypes.Accept = []string{}, []string{}
		}))
		r.open("conversation", a, b)
		ch := r.open("conversation", a, b)
		for _, said := range []string{"1", "2", "3"} {
			r.post(a, ch, envelope.TypeText, text(said), audience(b))
		}
		t.Equal(b.texts(), []string{text("1"), text("2"), text("3")})
	})
	holds(t, "ag2-hub#72 ag2-channels#16: a stranger's text in a conversation is refused", hub.Options{TrustClients: true}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("conversation", a, b)
		_, err := r.trySay(c, ch, "may I?")
		t.ErrorContains(err, "only accepts sends from participants")
		t.Equal(fault.CodeOf(err), fault.Protocol)
	})
	runs(t, "an outsider is denied whatever it posts, unless clients are trusted", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("conversation", a, b)
		before := r.types(ch)
		for _, kind := range []string{envelope.TypeText, "my.own", envelope.TypeTaskStarted, envelope.TypeInviteAck, "ag2.channel.closed"} {
			if _, err := r.tryPost(c, ch, kind, `{}`); fault.CodeOf(err) != fault.AccessDenied {
				t.Errorf("%s: got %v", kind, err)
			}
		}
		if got := r.types(ch); !slices.Equal(got, before) {
			t.Errorf("logged %v", got)
		}
	})
	runs(t, "a connection acts only for what it proved", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		_, err := r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{}`)}, actsFor(b.id))
		if fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("got %v", err)
		}
	})
	holds(t, "seed-000#7 seed-000#8: event_type is given by the sender", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		before := r.types(ch)
		_, err := r.tryPost(a, ch, "", `{}`)
		t.ErrorContains(err, "event_type is empty")
		for _, data := range []string{`[]`, `"x"`, `1`, `true`, `null`, ``, `{`, `{"a":1,}`} {
			_, err := r.tryPost(a, ch, "my.own", data)
			t.ErrorContains(err, "event_data is not a JSON object")
			t.Equal(fault.CodeOf(err), fault.Invalid)
		}
		t.Equal(r.types(ch), before)
	})
	holds(t, "seed-000#17: a refused post leaves no sequence and no record", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("discussion", a, b)
		_, err := r.trySay(b, ch, "out of turn")
		t.ErrorContains(err, "expects")
		r.say(a, ch, "in turn")
		log := r.log(ch)
		t.Equal(log[len(log)-1].Seq, uint64(4))
		t.Equal(len(log), 4)
	})
}

// stern denies every text.
type stern struct{ hub.Rules }

func (stern) AuthorizeSend(_ hub.Profile, e *envelope.Envelope, _ []hub.Profile) error {
	if e.Type == envelope.TypeText {
		return errors.New("not on my watch")
	}
	return nil
}
