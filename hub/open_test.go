package hub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func (r *rig) listed() []string {
	r.t.Helper()
	ids := []string{}
	list, _, err := r.Channels(ctx, hub.ListOptions{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}

// answer posts an invitee's answer to its invitation.
func (r *rig) answer(a *agent, channelID, answer string) {
	r.t.Helper()
	if _, err := r.Post(ctx, invitation(a, channelID, answer), nil); err != nil {
		r.t.Fatal(err)
	}
}

// opening opens a channel in the background and returns its id once it exists.
func (r *rig) opening(kind string, edit func(*hub.Opening), creator *agent, others ...*agent) (id string, result func() (hub.Opened, error)) {
	r.t.Helper()
	type answer struct {
		opened hub.Opened
		err    error
	}
	answers := make(chan answer, 1)
	before := r.listed()
	go func() {
		opened, err := r.tryOpen(kind, edit, creator, others...)
		answers <- answer{opened, err}
	}()
	r.settle()
	after := r.listed()
	if len(after) != len(before)+1 {
		r.t.Fatalf("no channel came: %v", after)
	}
	return after[len(after)-1], func() (hub.Opened, error) { a := <-answers; return a.opened, a.err }
}

// terse is a conversation that its participants end without a reason.
type terse struct{ conversation.Adapter }

func (terse) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) channel.Effects {
	switch e.Type {
	case "my.end":
		return channel.Effects{Next: channel.Closed}
	case "my.late":
		return channel.Effects{Next: channel.Expired}
	}
	return channel.Effects{}
}

func rule(edit func(*identity.Rule)) func(*hub.Registration) {
	return func(reg *hub.Registration) { edit(reg.Rule) }
}

func TestOpening(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#48 ag2-channels#2: after opening: active, no acks pending, three envelopes", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		opened, err := r.tryOpen("consulting", nil, a, b)
		t.NoError(err)
		t.Equal(opened.State, channel.Active)
		t.Equal(len(opened.PendingAcks), 0)
		t.Equal(r.types(opened.ID), []string{envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeOpened})
	})
	holds(t, "seed-000#30 seed-000#31: EV_CHANNEL_INVITE is ag2.channel.invite", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		log := r.log(ch)
		t.Equal(log[0].Type, "ag2.channel.invite")
		t.Equal(log[1].Type, "ag2.channel.invite")
		t.Equal([][]string{log[0].Audience, log[1].Audience}, [][]string{{b.id}, {c.id}})
		acks := map[string]int{}
		for _, e := range log {
			if e.Type == "ag2.channel.invite.ack" {
				acks[e.Sender]++
			}
		}
		t.Equal(acks, map[string]int{b.id: 1, c.id: 1})
		t.Equal(a.received(), []string{envelope.TypeOpened})
		t.Equal(b.received(), []string{envelope.TypeInvite, envelope.TypeOpened})
	})
	holds(t, "seed-000#34: once, and only after the last ack", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol").ignoreInvites()
		ch, result := r.opening("discussion", nil, a, b, c)
		t.Equal(r.channel(ch).State, channel.Pending)
		t.Equal(r.channel(ch).PendingAcks, []string{c.id})
		t.Equal(r.types(ch), []string{envelope.TypeInvite, envelope.TypeInvite, envelope.TypeInviteAck})
		r.answer(c, ch, envelope.TypeInviteAck)
		_, err := result()
		t.NoError(err)
		r.answer(c, ch, envelope.TypeInviteAck)
		t.Equal(r.types(ch), []string{
			envelope.TypeInvite, envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteAck,
			"ag2.channel.opened", envelope.TypeInviteAck,
		})
	})
	holds(t, "ag2-channels#3: discussion of five: four invites, four acks, one opened", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("a")
		others := []*agent{r.agent("b"), r.agent("c"), r.agent("d"), r.agent("e")}
		ch := r.open("discussion", a, others...)
		count := map[string]int{}
		for _, kind := range r.types(ch) {
			count[kind]++
		}
		t.Equal(count, map[string]int{envelope.TypeInvite: 4, envelope.TypeInviteAck: 4, envelope.TypeOpened: 1})
		order := []string{a.id}
		for _, other := range others {
			order = append(order, other.id)
		}
		t.Equal(r.state(ch), `{"participant_order":["`+strings.Join(order, `","`)+`"],"expected_next_speaker":"`+a.id+
			`","last_speaker_id":null,"last_envelope_id":null,"turn_count":0}`)
		turn, ok, err := r.Expected(ctx, ch)
		t.NoError(err)
		t.True(ok, "someone is expected")
		t.Equal(turn, channel.Turn{Agent: a.id})
	})
	holds(t, "ag2-hub#49 ag2-channels#6: unknown, duplicate or missing participants are refused", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for _, tc := range []struct {
			o    hub.Opening
			code fault.Code
			want string
		}{
			{hub.Opening{Creator: a.id, Type: "conversation", Participants: []string{"ghost"}}, fault.NotFound, "ghost"},
			{hub.Opening{Creator: "ghost", Type: "conversation", Participants: []string{b.id}}, fault.NotFound, "ghost"},
			{hub.Opening{Creator: a.id, Type: "conversation", Participants: []string{b.id, b.id}}, fault.Protocol, "listed twice"},
			{hub.Opening{Creator: a.id, Type: "conversation", Participants: []string{a.id, b.id, a.id}}, fault.Protocol, "listed twice"},
			{hub.Opening{Creator: a.id, Type: "conversation"}, fault.Protocol, "at least one"},
			{hub.Opening{Creator: a.id, Type: "discussion", Participants: []string{a.id}}, fault.Protocol, "at least 2"},
			{hub.Opening{Creator: a.id, Type: "seance", Participants: []string{b.id}}, fault.NotFound, "no adapter"},
			{hub.Opening{Creator: a.id, Type: "conversation", Version: 2, Participants: []string{b.id}}, fault.NotFound, "no adapter"},
		} {
			_, err := r.Hub.Open(ctx, tc.o)
			t.ErrorContains(err, tc.want)
			t.Equal(fault.CodeOf(err), tc.code)
		}
		t.Equal(r.listed(), []string{})
		t.Equal(r.audit("channel_created"), []map[string]any{})
		t.Equal(b.received(), []string{})
	})
	holds(t, "ag2-hub#50: an invitee that blocks the creator is access_denied", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice")
		b := r.agent("bob", rule(func(r *identity.Rule) { r.Access.InboundFrom = []string{"carol", "d*"} }))
		before := time.Now()
		_, err := r.tryOpen("conversation", nil, a, b)
		t.ErrorContains(err, "does not accept inbound")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
		t.Equal(time.Since(before), time.Duration(0))
		t.Equal(r.listed(), []string{})
	})
	holds(t, "ag2-hub#51 ag2-channels#5: no ack in time is a protocol error and closes the channel", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		ch, result := r.opening("conversation", nil, a, b)
		_, err := result()
		t.ErrorContains(err, "ack timeout")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		m := r.channel(ch)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "invite_timeout")
		t.Equal(time.Since(m.CreatedAt), 25*time.Second)
		t.Equal(m.ClosedAt, time.Now().UTC())
	})
	holds(t, "ag2-channels#4 seed-000#32: one rejecting invitee closes the channel", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol").ignoreInvites()
		ch, result := r.opening("discussion", nil, a, b, c)
		r.answer(c, ch, "ag2.channel.invite.reject")
		_, err := result()
		t.ErrorContains(err, "closed during handshake", "rejected")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		m := r.channel(ch)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "invite_rejected")
		t.Equal(m.RejectedBy, []string{c.id})
	})
	holds(t, "seed-000#37 seed-000#39: a failed opening is closed with a reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		ch, result := r.opening("conversation", nil, a, b)
		r.answer(b, ch, envelope.TypeInviteReject)
		_, _ = result()
		late, result := r.opening("conversation", nil, a, b)
		_, _ = result()
		for id, reason := range map[string]string{ch: "invite_rejected", late: "invite_timeout"} {
			log := r.log(id)
			last := log[len(log)-1]
			t.Equal(last.Type, "ag2.channel.closed")
			t.Equal(string(last.Data), `{"reason":"`+reason+`","channel_id":"`+id+`"}`)
			t.Equal(r.channel(id).CloseReason, reason)
		}
	})
	holds(t, "ag2-hub#52: creator and invitees get opened", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		for _, who := range []*agent{a, b, c} {
			inbox := who.inbox()
			last := inbox[len(inbox)-1]
			t.Equal(last.Type, envelope.TypeOpened)
			t.Equal(last.Sender, a.id)
			t.Equal(string(last.Data), `{"channel_id":"`+ch+`"}`)
		}
	})
	holds(t, "ag2-hub#52: a creator that may not send to itself still opens", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Access.OutboundTo = []string{"bob"} }))
		ch := r.open("conversation", a, r.agent("bob"))
		t.Equal(r.channel(ch).State, channel.Active)
		t.Equal(a.received(), []string{envelope.TypeOpened})
	})
	runs(t, "an invitation that the creator may not send fails the opening", hub.Options{}, func(t *testing.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Access.OutboundTo = []string{"carol"} }))
		b := r.agent("bob")
		_, err := r.tryOpen("conversation", nil, a, b)
		if fault.CodeOf(err) != fault.AccessDenied {
			t.Fatalf("got %v", err)
		}
		m := r.channel(r.listed()[0])
		if m.State != channel.Closed || m.CloseReason != "invite_failed" || !slices.Equal(b.received(), []string{envelope.TypeClosed}) {
			t.Errorf("%v %q, bob got %v", m.State, m.CloseReason, b.received())
		}
	})
	ttl := func(s string) func(*hub.Opening) {
		return func(o *hub.Opening) { t := identity.TextTTL(s); o.TTL = &t }
	}
	holds(t, "ag2-hub#53: TTL default from the rule drives expires_at", byHand, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Limits.ChannelTTLDefault = identity.TextTTL("15m") }))
		b := r.agent("bob")
		for want, edit := range map[time.Duration]func(*hub.Opening){
			15 * time.Minute: nil,
			2 * time.Hour:    ttl("2h"),
			90 * time.Second: func(o *hub.Opening) { t := identity.SecondsTTL(90); o.TTL = &t },
		} {
			m := r.channel(r.openWith("conversation", edit, a, b))
			t.Equal(m.ExpiresAt, m.CreatedAt.Add(want))
		}
		for _, never := range []string{"0", "0s", ""} {
			t.True(r.channel(r.openWith("conversation", ttl(never), a, b)).ExpiresAt.IsZero(), "%q never expires", never)
		}
		zero := func(o *hub.Opening) { t := identity.SecondsTTL(0); o.TTL = &t }
		t.True(r.channel(r.openWith("conversation", zero, a, b)).ExpiresAt.IsZero(), "0 never expires")
		c := r.agent("carol", rule(func(r *identity.Rule) { r.Limits.ChannelTTLDefault = identity.TextTTL("0") }))
		t.True(r.channel(r.open("conversation", c, b)).ExpiresAt.IsZero(), "by its rule it never expires")
		_, err := r.tryOpen("conversation", ttl("fast"), a, b)
		t.ErrorContains(err, "fast")
	})
	holds(t, "ag2-hub#55: max_concurrent_channels blocks the next until one closes", hub.Options{}, func(t *spec.T, r *rig) {
		a := r.agent("alice", rule(func(r *identity.Rule) { r.Limits.MaxConcurrentChannels = 2 }))
		b := r.agent("bob")
		first, second := r.open("conversation", a, b), r.open("conversation", a, b)
		_, err := r.tryOpen("conversation", nil, a, b)
		t.ErrorContains(err, "max_concurrent_channels")
		t.Equal(fault.CodeOf(err), fault.AccessDenied)
		t.Equal(len(r.listed()), 2)
		r.end(first, "")
		r.open("conversation", a, b)
		for range 5 {
			r.open("conversation", b, a) // bob has no limit
		}
		t.Equal(len(r.listed()), 8)
		r.end(second, "")
		r.open("conversation", a, b) // channels that bob opened do not count
	})
	holds(t, "ag2-hub#57: closing a pending channel releases its creator", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob").ignoreInvites()
		ch, result := r.opening("conversation", nil, a, b)
		before := time.Now()
		r.end(ch, "changed my mind")
		_, err := result()
		t.ErrorContains(err, "closed during handshake", "changed my mind")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(time.Since(before), time.Duration(0))
	})
	two := 2
	for name, tc := range map[string]struct {
		answers []string
		state   channel.Lifecycle
	}{
		"opens at the required number":         {[]string{envelope.TypeInviteAck, envelope.TypeInviteAck}, channel.Active},
		"a reject within reach changes it not": {[]string{envelope.TypeInviteReject, envelope.TypeInviteAck, envelope.TypeInviteAck}, channel.Active},
		"out of reach it closes":               {[]string{envelope.TypeInviteReject, envelope.TypeInviteReject}, channel.Closed},
		"one is not enough":                    {[]string{envelope.TypeInviteAck}, channel.Pending},
	} {
		runs(t, "required_acks: "+name, hub.Options{}, func(t *testing.T, r *rig) {
			a := r.agent("a")
			others := []*agent{r.agent("b").ignoreInvites(), r.agent("c").ignoreInvites(), r.agent("d").ignoreInvites()}
			ch, _ := r.opening("discussion", func(o *hub.Opening) { o.RequiredAcks = &two }, a, others...)
			for i, answer := range tc.answers {
				r.answer(others[i], ch, answer)
			}
			if got := r.channel(ch).State; got != tc.state {
				t.Errorf("state %v, want %v", got, tc.state)
			}
		})
	}
	runs(t, "required_acks: nobody needs to be waited for", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("a"), r.agent("b").ignoreInvites()
		none := 0
		ch := r.openWith("conversation", func(o *hub.Opening) { o.RequiredAcks = &none }, a, b)
		r.say(a, ch, "are you there?")
		r.answer(b, ch, envelope.TypeInviteAck)
		r.say(b, ch, "yes")
		r.pass(time.Hour / 2)
		want := []string{envelope.TypeInvite, envelope.TypeOpened, envelope.TypeText, envelope.TypeInviteAck, envelope.TypeText}
		if got := r.types(ch); !slices.Equal(got, want) || r.channel(ch).State != channel.Active {
			t.Errorf("the log is %q, the channel %v", got, r.channel(ch).State)
		}
	})
	holds(t, "ag2-hub#91 seed-000#36: explicit close stores the reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for given, want := range map[string]string{"done": "done", "": "explicit_close"} {
			ch := r.open("conversation", a, b)
			m := r.end(ch, given)
			t.Equal(m.CloseReason, want)
			t.Equal(r.channel(ch).State, channel.Closed)
			t.Equal(r.channel(ch).CloseReason, want)
			log := r.log(ch)
			t.Equal(log[len(log)-1].Type, envelope.TypeClosed)
			t.Equal(string(log[len(log)-1].Data), `{"reason":"`+want+`","channel_id":"`+ch+`"}`)
			again := r.end(ch, "later")
			t.Equal(again.CloseReason, want)
			t.Equal(len(r.log(ch)), len(log))
		}
	})
	holds(t, "ag2-channels#20: an explicit close keeps its reason and refuses sends", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "that is all")
		r.end(ch, "done")
		m := r.channel(ch)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "done")
		before := r.log(ch)
		for _, who := range []*agent{a, b} {
			_, err := r.trySay(who, ch, "one more thing")
			t.ErrorContains(err, "closed")
			t.Equal(fault.CodeOf(err), fault.Protocol)
		}
		t.Equal(r.log(ch), before)
	})
	holds(t, "ag2-hub#92 ag2-channels#10: consulting closes itself after the reply", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		r.say(a, ch, "why?")
		r.say(b, ch, "because")
		t.Equal(r.types(ch)[3:], []string{envelope.TypeText, envelope.TypeText, envelope.TypeClosed})
		m := r.channel(ch)
		t.Equal(m.State, channel.Closed)
		t.Equal(m.CloseReason, "consulting_complete")
		t.Equal(string(r.log(ch)[5].Data), `{"reason":"consulting_complete","channel_id":"`+ch+`"}`)
	})
	holds(t, "seed-000#39: an adapter that ends the channel without saying why", hub.Options{Adapters: []channel.Adapter{terse{}}}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for kind, state := range map[string]channel.Lifecycle{"my.end": channel.Closed, "my.late": channel.Expired} {
			ch := r.open("conversation", a, b)
			r.post(a, ch, kind, `{}`)
			t.Equal(r.channel(ch).State, state)
			t.Equal(r.channel(ch).CloseReason, "adapter_ended")
			t.Equal(string(r.last(ch).Data), `{"reason":"adapter_ended","channel_id":"`+ch+`"}`)
		}
	})
	holds(t, "seed-000#35: the hub posts closed when an adapter ends the channel", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		r.say(a, ch, "why?")
		r.say(b, ch, "because")
		t.Equal(r.types(ch)[5], "ag2.channel.closed")
		t.Equal(a.received(), []string{envelope.TypeOpened, envelope.TypeText, envelope.TypeClosed})
		t.Equal(b.received(), []string{envelope.TypeInvite, envelope.TypeOpened, envelope.TypeText, envelope.TypeClosed})
	})
}
