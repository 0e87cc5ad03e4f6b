package hub_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/hub"
)

// last returns the newest envelope of a channel.
func (r *rig) last(channelID string) *envelope.Envelope {
	r.t.Helper()
	log := r.log(channelID)
	return log[len(log)-1]
}

func TestSeedEnvelope(t *testing.T) {
	t.Parallel()
	holds(t, "seed-000#1: one envelope in the log, the same for every reader it is for", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		for i, to := range [][]*agent{nil, {b}, {b, c}, {}} {
			before := len(r.log(ch))
			b.clear()
			c.clear()
			var edit []func(*envelope.Envelope)
			if to != nil {
				edit = append(edit, audience(to...))
			} else {
				to = []*agent{b, c}
			}
			r.post(a, ch, "my.own", fmt.Sprintf(`{"n":%d}`, i), edit...)
			log := r.log(ch)
			t.Equal(len(log), before+1)
			stored := log[before]
			for _, reader := range []*agent{b, c} {
				told := []*envelope.Envelope{}
				if slices.Contains(to, reader) {
					told = append(told, stored)
				}
				t.Equal(reader.inbox(), told)
				for _, who := range []*agent{a, reader} {
					f := r.follow(ch, hub.FollowOptions{As: who.id})
					seen := slices.Contains(r.read(f), fmt.Sprintf(`%d {"n":%d}`, stored.Seq, i))
					f.Close()
					t.Equal(seen, who == a || slices.Contains(to, who))
				}
			}
		}
	})
	holds(t, "seed-000#2 seed-000#3: envelope_id is a string minted by the hub at admission", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		seen := map[string]bool{}
		mine := strings.Repeat("a", 32)
		for range 3 {
			ch := r.open("conversation", a, b)
			id := r.post(a, ch, envelope.TypeText, text("x"), func(e *envelope.Envelope) { e.ID = mine })
			t.True(id != mine, "the sender's own is overwritten")
			t.Equal(r.last(ch).ID, id)
			for _, e := range r.log(ch) {
				raw, err := hex.DecodeString(e.ID)
				t.NoError(err)
				t.Equal(len(raw), 16)
				t.Equal(strings.ToLower(e.ID), e.ID)
				t.False(seen[e.ID], "%s was given twice", e.ID)
				seen[e.ID] = true
			}
			r.restart() // the clock stands still
		}
	})
	holds(t, "seed-000#9: causation_id is null where the sender gives none", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		first := r.say(a, ch, "no cause")
		t.Equal(r.last(ch).Causation, "")
		r.post(b, ch, envelope.TypeText, text("a cause"), causing(first))
		t.Equal(r.last(ch).Causation, first)
	})
	holds(t, "seed-000#11: created_at is the empty string on an envelope not yet posted", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		t.True((&envelope.Envelope{}).CreatedAt.IsZero(), "an envelope not yet posted has no time")
		forged := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		now := time.Now().UTC()
		r.post(a, ch, envelope.TypeText, text("x"), func(e *envelope.Envelope) { e.CreatedAt = forged })
		t.Equal(r.last(ch).CreatedAt, now)
	})
	holds(t, "seed-000#13: sequence is the integer 0 on an envelope not yet posted", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		t.Equal((&envelope.Envelope{}).Seq, uint64(0))
		r.post(a, ch, envelope.TypeText, text("x"), func(e *envelope.Envelope) { e.Seq = 99 })
		t.Equal(r.last(ch).Seq, uint64(4))
	})
	ttl := int64(3600)
	whole := envelope.Envelope{
		Type: "my.own", Task: "task-1", Causation: "cause", Trace: "trace", Key: "key", Depth: 2, TTL: &ttl,
		Priority: envelope.Urgent, Data: []byte(` { "n" : 9007199254740993 , "x":[ ] } `), Ext: []byte(`{"e":1}`),
		Origin: envelope.Origin{Dialect: "agh", ID: "f", Hops: 1}, Foreign: []byte("signed"),
	}
	holds(t, "seed-000#20 seed-000#63: the hub changes nothing but what it stamps", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		sent := whole.Clone()
		sent.Channel, sent.Sender, sent.Audience = ch, a.id, []string{b.id, "ghost", a.id}
		want := sent.Clone()
		_, err := r.Post(ctx, sent, nil)
		t.NoError(err)
		stamped := cmpopts.IgnoreFields(envelope.Envelope{}, "ID", "Seq", "CreatedAt")
		t.Equal(r.last(ch), want, stamped)
		inbox := b.inbox()
		t.Equal(inbox[len(inbox)-1], want, stamped)
		r.restart()
		t.Equal(r.last(ch), want, stamped)
	})
	holds(t, "seed-000#61: a hand-built envelope is accepted", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		e := whole.Clone()
		e.Channel, e.Sender, e.Audience = ch, a.id, []string{b.id}
		id, err := r.Post(ctx, e, nil)
		t.NoError(err)
		t.Equal(r.last(ch).ID, id)
	})
	holds(t, "seed-000#62: there is no allow-list for event_type", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		types := []string{"review", "myapp.review", "ag2.mine", "日本", " ", strings.Repeat("x", 1000)}
		for _, kind := range types {
			r.post(a, ch, kind, `{}`)
		}
		t.Equal(r.types(ch)[3:], types)
	})
	holds(t, "seed-000#64: a custom type is logged, delivered and no turn", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		r.say(a, ch, "your turn, bob")
		before := r.state(ch)
		r.post(c, ch, "my.own", `{"n":1}`)
		t.Equal(r.last(ch).Type, "my.own")
		for _, who := range []*agent{a, b} {
			inbox := who.inbox()
			t.Equal(inbox[len(inbox)-1].Type, "my.own")
		}
		t.Equal(r.state(ch), before)
	})
	for _, kind := range []string{"consulting", "conversation", "discussion"} {
		holds(t, "seed-000#25: a packet is logged and delivered, and is no turn of a "+kind, hub.Options{}, func(t *spec.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.open(kind, a, b)
			before := r.state(ch)
			a.clear()
			r.post(b, ch, envelope.TypePacket, `{"routing":{"kind":"text"},"context_updates":{},"body":"hi"}`)
			t.Equal(r.last(ch).Type, "ag2.packet")
			t.Equal(a.inbox(), []*envelope.Envelope{r.last(ch)})
			t.Equal(r.state(ch), before)
			t.Equal(r.channel(ch).State, channel.Active)
		})
	}
	holds(t, "seed-000#80: it reaches all, or the one it is for", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		for _, who := range []*agent{b, c} {
			who.clear()
		}
		r.post(a, ch, "my.all", `{}`)
		r.post(a, ch, "my.one", `{}`, audience(c))
		t.Equal(b.received(), []string{"my.all"})
		t.Equal(c.received(), []string{"my.all", "my.one"})
	})
	holds(t, "seed-000#73 seed-000#74: each channel has its own write-ahead log, readable by channel id", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		var ids [2][]string
		for i := range 10 {
			ids[i%2] = append(ids[i%2], r.say(a, []string{one, two}[i%2], fmt.Sprint(i)))
		}
		for i, ch := range []string{one, two} {
			var read []string
			for _, e := range r.log(ch)[3:] {
				t.Equal(e.Channel, ch)
				read = append(read, e.ID)
			}
			t.Equal(read, ids[i])
		}
		t.Equal(len(r.log("unknown")), 0)
	})
	holds(t, "seed-000#78: any JSON event_data round-trips through the store unchanged", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		payloads := []string{
			`{}`, `{"a":[],"b":{}}`, `{"n":9007199254740993}`, `{"n":1e400,"f":1.0,"z":-0}`, `{"日本":"\ud83d\ude00 \u0000"}`,
			`{"deep":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`, ` { "spaces" : 1 } `,
		}
		for _, data := range payloads {
			r.post(a, ch, "my.own", data)
		}
		r.restart()
		for i, e := range r.log(ch)[3:] {
			t.Equal(string(e.Data), payloads[i])
		}
	})
	holds(t, "seed-000#59: priority never changes a channel's order", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		box := hub.NewInbox(0)
		t.NoError(r.Bind(b.id, box))
		var ids []string
		for i, p := range []envelope.Priority{envelope.Background, envelope.Urgent, envelope.Normal, envelope.Urgent} {
			ids = append(ids, r.post(a, ch, envelope.TypeText, text(fmt.Sprint(i)), func(e *envelope.Envelope) { e.Priority = p }))
		}
		var logged, read []string
		for _, e := range r.log(ch)[3:] {
			logged = append(logged, e.ID)
			n, err := box.Next(ctx)
			t.NoError(err)
			read = append(read, n.Envelope.ID)
		}
		t.Equal(logged, ids)
		t.Equal(read, ids)
	})
	holds(t, "ag2-channels#21: restart restores turn_count and last_speaker_id", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "1")
		r.say(b, ch, "2")
		id := r.say(b, ch, "3")
		r.restart()
		t.Equal(r.state(ch), fmt.Sprintf(`{"turn_count":3,"last_speaker_id":%q,"last_envelope_id":%q}`, b.id, id))
	})
	holds(t, "ag2-channels#1: a new hub has four adapters at version 1", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		for _, kind := range []string{"consulting", "conversation", "discussion", "workflow"} {
			edit := knobs(`{"graph":` + everyone(a.id) + `}`)
			m := r.channel(r.openWith(kind, edit, a, b))
			t.Equal(m.Manifest.Key(), channel.Key{Type: kind, Version: 1})
		}
		t.Equal(len(adapter.All()), 4)
	})
}

// everyone returns a graph in which all speak in turn.
func everyone(first string) string {
	return fmt.Sprintf(`{"initial_speaker":%q,"transitions":[{"when":{"name":"always","args":{}},"then":{"name":"round_robin","args":{}}}]}`, first)
}

// pipeline opens a workflow in which a, b and c speak once each.
func (r *rig) pipeline(a, b, c *agent) string {
	r.t.Helper()
	g, err := graph.NewSequence([]string{a.id, b.id, c.id})
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := g.MarshalJSON()
	if err != nil {
		r.t.Fatal(err)
	}
	return r.openWith("workflow", knobs(`{"graph":`+string(data)+`}`), a, b, c)
}

func TestSeedWorkflow(t *testing.T) {
	t.Parallel()
	holds(t, "seed-002#20 seed-002#21: pipeline run, one invite and one ack for each target", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c")
		ch := r.pipeline(a, b, c)
		invites, acks := map[string]int{}, map[string]int{}
		for _, e := range r.log(ch) {
			switch e.Type {
			case envelope.TypeInvite:
				t.Equal(len(e.Audience), 1)
				invites[e.Audience[0]]++
			case envelope.TypeInviteAck:
				acks[e.Sender]++
			}
		}
		want := map[string]int{b.id: 1, c.id: 1}
		t.Equal(invites, want)
		t.Equal(acks, want)
	})
	holds(t, "seed-002#22: pipeline run, the creator gets opened after the last ack", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c").ignoreInvites()
		graph := knobs(`{"graph":` + everyone(a.id) + `}`)
		ch, result := r.opening("workflow", graph, a, b, c)
		t.Equal(len(a.received()), 0)
		r.answer(c, ch, envelope.TypeInviteAck)
		_, err := result()
		t.NoError(err)
		t.Equal(a.received(), []string{envelope.TypeOpened})
	})
	holds(t, "seed-002#24 seed-002#25: whom the turn goes to has received the text", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c")
		ch := r.pipeline(a, b, c)
		for _, turn := range [][2]*agent{{a, b}, {b, c}} {
			r.say(turn[0], ch, "from "+turn[0].name)
			expected, _, err := r.Expected(ctx, ch)
			t.NoError(err)
			t.Equal(expected, channel.Turn{Agent: turn[1].id, Trigger: r.last(ch).ID})
			inbox := turn[1].inbox()
			t.Equal(inbox[len(inbox)-1], r.last(ch))
		}
	})
	for _, next := range []channel.Lifecycle{channel.Closing, channel.Closed} {
		leaves := hub.Options{Adapters: []channel.Adapter{leaving{next: next}}}
		holds(t, "seed-002#18: one closing envelope where the adapter answers "+next.String(), leaves, func(t *spec.T, r *rig) {
			a, b := r.agent("a"), r.agent("b")
			ch := r.open("conversation", a, b)
			before := r.types(ch)
			r.say(a, ch, "bye")
			t.Equal(r.types(ch), append(before, envelope.TypeText, envelope.TypeClosed))
			t.Equal(string(r.last(ch).Data), `{"reason":"said bye","channel_id":"`+ch+`"}`)
			t.Equal(r.channel(ch).State, channel.Closed)
		})
	}
	holds(t, "seed-002#108: at once, also a supervisor's in the middle of a round", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, s := r.agent("a"), r.agent("b"), r.agent("s")
		ch := r.inRound(a, b, s, "").channel
		before := r.types(ch)
		start := time.Now()
		for _, who := range []*agent{a, s} {
			r.post(who, ch, envelope.TypeContextSet, `{"set":{"k":"`+who.name+`"}}`)
			t.Contains(r.state(ch), `"context_vars":{"k":"`+who.name+`"}`)
		}
		t.Equal(r.types(ch), append(before, envelope.TypeContextSet, envelope.TypeContextSet))
		t.Equal(time.Since(start), time.Duration(0))
	})
	holds(t, "seed-002#27: pipeline run, a, b and c each receive the closing envelope", hub.Options{}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c")
		ch := r.pipeline(a, b, c)
		for _, who := range []*agent{a, b, c} {
			r.say(who, ch, "from "+who.name)
		}
		for _, who := range []*agent{a, b, c} {
			inbox := who.inbox()
			end := inbox[len(inbox)-1]
			t.Equal(end.Type, envelope.TypeClosed)
			t.Equal(string(end.Data), `{"reason":"sequence_complete","channel_id":"`+ch+`"}`)
			if who != c {
				t.Equal(string(inbox[len(inbox)-2].Data), text("from c"))
			}
		}
	})
	holds(t, "seed-002#29: ag2.session.* strings are never emitted", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a"), r.agent("b").ignoreInvites()
		ch, result := r.opening("conversation", nil, a, b)
		r.answer(b, ch, "ag2.session.invite.ack")
		_, err := result()
		t.NoError(err)
		r.post(a, ch, "ag2.session.closed", `{}`)
		for _, list := range [][]string{r.types(ch), a.received(), b.received()} {
			for _, kind := range list {
				t.False(strings.HasPrefix(kind, "ag2.session."), "emitted %s", kind)
			}
		}
		t.Equal(r.types(ch)[3], envelope.TypeClosed)
		t.Equal(r.channel(ch).State, channel.Active)
	})
	holds(t, "seed-002#43: terminate ends the channel with its reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.openWith("workflow", knobs(fmt.Sprintf(`{"graph":{"initial_speaker":%q,"transitions":[],"default_target":{"name":"terminate","args":{"reason":"enough"}}}}`, a.id)), a, b)
		before := r.types(ch)
		r.say(a, ch, "the only turn")
		t.Equal(r.types(ch), append(before, envelope.TypeText, envelope.TypeClosed))
		t.Equal(string(r.last(ch).Data), `{"reason":"enough","channel_id":"`+ch+`"}`)
		t.Equal(r.channel(ch).State, channel.Closed)
	})
	loud := func() *graph.Registry {
		reg := graph.NewRegistry(graph.Limits{})
		if err := reg.RegisterCondition(shouts{}); err != nil {
			panic(err)
		}
		return reg
	}
	holds(t, "seed-002#77: a custom condition routes as before after a restart", hub.Options{Adapters: adapter.AllWith(workflow.Options{Registry: loud()})}, func(t *spec.T, r *rig) {
		a, b, c := r.agent("a"), r.agent("b"), r.agent("c")
		ch := r.openWith("workflow", knobs(fmt.Sprintf(`{"graph":{"initial_speaker":%[1]q,"transitions":[
			{"when":{"name":"shouts","args":{}},"then":{"name":"agent","args":{"agent_id":%[3]q}}}],
			"default_target":{"name":"agent","args":{"agent_id":%[2]q}}}}`, a.id, b.id, c.id)), a, b, c)
		r.say(a, ch, "quiet")
		turn, _, err := r.Expected(ctx, ch)
		t.NoError(err)
		t.Equal(turn.Agent, b.id)
		r.restart(func(o *hub.Options) { o.Adapters = adapter.AllWith(workflow.Options{Registry: loud()}) })
		r.say(b, ch, "LOUD!")
		turn, _, err = r.Expected(ctx, ch)
		t.NoError(err)
		t.Equal(turn.Agent, c.id)
	})
	holds(t, "seed-002#80: the creator takes part without being listed", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		m := r.channel(r.openWith("workflow", knobs(`{"graph":`+everyone(a.id)+`}`), a, b))
		t.Equal(m.IDs(), []string{a.id, b.id})
		p, ok := m.Participant(a.id)
		t.True(ok, "the creator takes part")
		t.Equal(p.Role, channel.Initiator)
	})
	holds(t, "seed-002#81: the graph is stored under knobs and survives a restart", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		stored := ` { "graph" : ` + everyone(a.id) + ` , "context_vars":{"n":9007199254740993} } `
		ch := r.openWith("workflow", knobs(stored), a, b)
		t.Equal(string(r.channel(ch).Knobs), strings.TrimSpace(stored))
		r.restart()
		t.Equal(string(r.channel(ch).Knobs), strings.TrimSpace(stored))
	})
	holds(t, "seed-002#86: an agent's explicit close ends with its reason", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("a"), r.agent("b")
		ch := r.openWith("workflow", knobs(`{"graph":`+everyone(a.id)+`}`), a, b)
		r.say(a, ch, "hi")
		r.end(ch, "had enough")
		t.Equal(string(r.last(ch).Data), `{"reason":"had enough","channel_id":"`+ch+`"}`)
		t.Equal(r.channel(ch).CloseReason, "had enough")
	})
}

// leaving is a conversation that the first text ends.
type leaving struct {
	conversation.Adapter
	next channel.Lifecycle
}

func (l leaving) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) channel.Effects {
	if e.Type != envelope.TypeText {
		return channel.Effects{}
	}
	return channel.Effects{Next: l.next, Reason: "said bye"}
}

// shouts is true for texts that end with an exclamation mark.
type shouts struct{}

func (shouts) Name() string { return "shouts" }

func (shouts) Evaluate(_ *graph.Facts, t *graph.Turn) bool {
	return strings.Contains(string(t.Data), `!"`)
}
