package hub_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// club is an adapter whose members are folded: an agent that joins belongs until it
// leaves. Members read everything said since they joined, guests may speak, and
// only its own dialect opens it.
type club struct{ board }

type clubState struct {
	members string // ids, each followed by a space
	since   map[string]uint64
}

func (club) Manifest() channel.Manifest {
	return channel.Manifest{Type: "club", Version: 1, KnobsSchema: []byte(`{}`), DefaultView: "full_transcript"}
}
func (club) Dialect() string                                  { return "clubs" }
func (club) Initial(*channel.Metadata) (channel.State, error) { return clubState{}, nil }

func (club) Fold(s channel.State, e *envelope.Envelope) channel.State {
	c := s.(clubState)
	switch e.Type {
	case "club.join":
		since := map[string]uint64{e.Sender: e.Seq}
		maps.Copy(since, c.since)
		return clubState{c.members + e.Sender + " ", since}
	case "club.leave":
		return clubState{strings.Replace(c.members, e.Sender+" ", "", 1), c.since}
	}
	return s
}

func (club) OnAccepted(*channel.Metadata, channel.State, *envelope.Envelope) channel.Effects {
	return channel.Effects{}
}

func (club) Members(_ *channel.Metadata, s channel.State) channel.Members {
	return channel.NewMembers(strings.Fields(s.(clubState).members)...)
}

func (club) Admits(_ *channel.Metadata, _ channel.State, _ channel.Members, _ string) bool {
	return true
}

func (club) Recipients(_ *channel.Metadata, _ channel.State, in channel.Members, e *envelope.Envelope) (to []string) {
	in.Each(func(agent string) bool {
		if agent != e.Sender {
			to = append(to, agent)
		}
		return true
	})
	return to
}

func (club) Visible(_ *channel.Metadata, s channel.State, _ channel.Members, e *envelope.Envelope, agent string) bool {
	return e.Seq >= s.(clubState).since[agent]
}

var withClub = hub.Options{Adapters: append(adapter.All(), club{}, board{})}

func (r *rig) openClub(creator *agent) string {
	r.t.Helper()
	opened, err := r.Open(ctx, hub.Opening{Creator: creator.id, Type: "club", Dialect: "clubs"})
	if err != nil {
		r.t.Fatal(err)
	}
	return opened.ID
}

func TestFoldedMembers(t *testing.T) {
	t.Parallel()
	runs(t, "who joined is told and reads from then on, who left does not", withClub, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.openClub(a)
		r.post(a, ch, "club.join", `{}`)
		r.post(a, ch, "club.note", `{"n":1}`)
		r.post(b, ch, "club.join", `{}`)
		r.post(a, ch, "club.note", `{"n":2}`)
		f := r.follow(ch, hub.FollowOptions{As: b.id})
		defer f.Close()
		if got, want := r.read(f), []string{`3 {}`, `4 {"n":2}`}; !slices.Equal(got, want) {
			t.Errorf("bob reads %v, not %v", got, want)
		}
		if _, err := r.Follow(ctx, ch, hub.FollowOptions{As: c.id}); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("carol, who never joined: %v", err)
		}
		r.post(c, ch, "club.note", `{"guest":true}`) // admitted, but not a member
		r.post(b, ch, "club.leave", `{}`)
		r.post(a, ch, "club.note", `{"n":3}`)
		if got, want := r.read(f), []string{`5 {"guest":true}`}; len(got) > 1 || len(got) == 1 && got[0] != want[0] {
			t.Errorf("after he left bob reads %v", got)
		}
		if got := r.read(f); len(got) != 0 {
			t.Errorf("and later %v", got)
		}
		if got := b.received(); slices.Contains(got, "club.leave") || len(got) != 2 {
			t.Errorf("bob was told %v", got)
		}
	})
	runs(t, "members are the same after a restart", withClub, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openClub(a)
		r.post(b, ch, "club.join", `{}`)
		r.restart()
		f := r.follow(ch, hub.FollowOptions{As: b.id})
		defer f.Close()
		if got := r.read(f); len(got) != 1 {
			t.Errorf("bob reads %v", got)
		}
	})
}

func TestOpenedAtOnce(t *testing.T) {
	t.Parallel()
	runs(t, "it has no participant but its creator, and no end", withClub, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		opened, err := r.Open(ctx, hub.Opening{Creator: a.id, Type: "board"})
		if err != nil {
			t.Fatal(err)
		}
		if ids := opened.IDs(); !slices.Equal(ids, []string{a.id}) || !opened.ExpiresAt.IsZero() {
			t.Errorf("participants %v, ends %v", ids, opened.ExpiresAt)
		}
		r.pass(3 * time.Hour) // the default of a rule is two hours
		if m := r.channel(opened.ID); m.State != channel.Active {
			t.Errorf("after three hours it is %v", m.State)
		}
	})
	runs(t, "it ends when its opening says so", withClub, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		hour := identity.TextTTL("1h")
		ch := r.openWith("board", func(o *hub.Opening) { o.TTL = &hour }, a)
		r.pass(59 * time.Minute)
		if m := r.channel(ch); m.State != channel.Active {
			t.Errorf("before its hour it is %v", m.State)
		}
		r.pass(2 * time.Minute)
		if m := r.channel(ch); m.State != channel.Expired {
			t.Errorf("after its hour it is %v", m.State)
		}
	})
	runs(t, "where members are folded it may have none", withClub, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		if m := r.channel(r.openClub(a)); len(m.Participants) != 0 || m.Creator != a.id {
			t.Errorf("participants %v, creator %s", m.IDs(), m.Creator)
		}
	})
	runs(t, "a type of one dialect is opened by no other", withClub, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		for _, dialect := range []string{"", "ag2"} {
			_, err := r.Open(ctx, hub.Opening{Creator: a.id, Type: "club", Dialect: dialect})
			if fault.CodeOf(err) != fault.Protocol || !strings.Contains(err.Error(), "clubs") {
				t.Errorf("opened by %q: %v", dialect, err)
			}
		}
		ch := r.openClub(a)
		for dialect, want := range map[string]int{"": 1, "clubs": 1, "ag2": 0} {
			list, _, err := r.Channels(ctx, hub.ListOptions{Dialect: dialect})
			if err != nil || len(list) != want {
				t.Errorf("%q lists %d channels (%v), not %d: %s", dialect, len(list), err, want, ch)
			}
		}
	})
	runs(t, "ending one whose adapter is not loaded writes nothing into its history", withClub, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		ch := r.openClub(a)
		r.post(a, ch, "club.note", `{}`)
		r.restart(func(o *hub.Options) { o.Adapters = adapter.All() })
		if _, err := r.CloseChannel(ctx, ch, "over"); err != nil {
			t.Fatal(err)
		}
		if got := r.types(ch); !slices.Equal(got, []string{"club.note"}) {
			t.Errorf("its history is %v", got)
		}
	})
}

func TestLiveEnvelopes(t *testing.T) {
	t.Parallel()
	live := func(r *rig, from *agent, ch, data string) {
		r.t.Helper()
		if err := r.SendLive(ctx, &envelope.Envelope{Channel: ch, Sender: from.id, Type: "x.live", Data: []byte(data)}, nil); err != nil {
			r.t.Fatal(err)
		}
	}
	runs(t, "one waits for its own channel, not for others", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.open("conversation", a, b), r.open("conversation", a, b)
		f := r.follow(one, hub.FollowOptions{FromNow: true})
		defer f.Close()
		g := r.follow(two, hub.FollowOptions{FromNow: true})
		defer g.Close()
		release := r.hold()
		defer release()
		r.Admit(ctx, &envelope.Envelope{Channel: two, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"held"}`)}, nil)
		live(r, a, one, `{"n":1}`)
		live(r, a, two, `{"n":2}`)
		if got := r.read(f); !slices.Equal(got, []string{`live after 3 {"n":1}`}) {
			t.Errorf("while another channel's batch waits for the disk: %v", got)
		}
		if got := r.read(g); len(got) != 0 {
			t.Errorf("behind its own batch: %v", got)
		}
		release()
		if got := r.read(g); !slices.Equal(got, []string{`4 {"text":"held"}`, `live after 4 {"n":2}`}) {
			t.Errorf("afterwards: %v", got)
		}
	})
	runs(t, "what a follower loses is counted, and a strict one is ended", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		lenient := r.follow(ch, hub.FollowOptions{FromNow: true, Queue: 4})
		defer lenient.Close()
		strict := r.follow(ch, hub.FollowOptions{FromNow: true, Queue: 4, Strict: true})
		defer strict.Close()
		roomy := r.follow(ch, hub.FollowOptions{FromNow: true, Queue: 4, Strict: true})
		defer roomy.Close()
		for range 4 {
			live(r, a, ch, `{}`)
		}
		if got := r.read(roomy); len(got) != 4 {
			t.Errorf("a strict follower that keeps up reads %v", got)
		}
		live(r, a, ch, `{"fifth":true}`)
		if got := r.read(lenient); !slices.Equal(got, []string{`live after 3 {"fifth":true}`}) {
			t.Errorf("the lenient one reads %v", got)
		}
		if _, _, err := strict.TryNext(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("the strict one: %v", err)
		}
		if lost := r.Stats().LiveLost; lost != 8 {
			t.Errorf("%d live events are counted as lost, not 8", lost)
		}
	})
	runs(t, "a strict follower of stored events is ended too, but not in its replay", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		say := func(times int) {
			for range times {
				r.say(a, ch, "hi")
			}
		}
		say(20)
		lenient := r.follow(ch, hub.FollowOptions{FromNow: true, Queue: 4})
		defer lenient.Close()
		watching := r.follow(ch, hub.FollowOptions{FromNow: true, Queue: 4, Strict: true})
		defer watching.Close()
		replaying := r.follow(ch, hub.FollowOptions{Queue: 4, Strict: true})
		defer replaying.Close()
		if _, _, err := replaying.TryNext(ctx); err != nil {
			t.Fatal(err)
		}
		say(10)
		if _, _, err := watching.TryNext(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("10 behind with a queue of 4: %v", err)
		}
		if got := r.read(lenient); len(got) != 10 {
			t.Errorf("the lenient one reads %v", got)
		}
		if got := r.read(replaying); len(got) < 29 {
			t.Errorf("the replaying one reads %v", got)
		}
		say(10)
		if _, _, err := replaying.TryNext(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("10 behind after it had caught up: %v", err)
		}
	})
	runs(t, "a queue is bounded in bytes too", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		f := r.follow(ch, hub.FollowOptions{FromNow: true, Strict: true, Bytes: 100})
		defer f.Close()
		for range 2 {
			live(r, a, ch, `{"x":"`+strings.Repeat("y", 60)+`"}`)
		}
		if _, _, err := f.TryNext(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("121 bytes in a queue of 100: %v", err)
		}
	})
}
