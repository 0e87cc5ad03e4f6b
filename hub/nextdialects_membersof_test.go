package hub_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// topic is an adapter of channels that take another channel's members.
type topic struct{ board }

func (topic) Manifest() channel.Manifest {
	return channel.Manifest{Type: "topic", Version: 1, KnobsSchema: []byte(`{}`), DefaultView: "full_transcript"}
}

func (topic) OnAccepted(*channel.Metadata, channel.State, *envelope.Envelope) channel.Effects {
	return channel.Effects{}
}

var withTopics = hub.Options{Adapters: append(adapter.All(), club{}, topic{}, board{})}

// room opens a club in a home, with members.
func (r *rig) room(home hub.Home, members ...*agent) string {
	r.t.Helper()
	opened, err := r.Open(ctx, hub.Opening{Creator: members[0].id, Type: "club", Dialect: "clubs", Home: home.ID})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range members {
		r.post(m, opened.ID, "club.join", `{}`)
	}
	return opened.ID
}

// topicOf opens a channel with the members of a room.
func (r *rig) topicOf(room string, creator *agent) string {
	r.t.Helper()
	opened, err := r.Open(ctx, hub.Opening{Creator: creator.id, Type: "topic", Home: hub.HomeOf(room), MembersOf: room})
	if err != nil {
		r.t.Fatal(err)
	}
	return opened.ID
}

// belongs reports whether an agent belongs to a channel. It checks that all ways to
// ask agree.
func (r *rig) belongs(a *agent, ch string) bool {
	r.t.Helper()
	in, err := r.Members(ctx, ch)
	if err != nil {
		r.t.Fatal(err)
	}
	as := r.As(&hub.Caller{Agents: []string{a.id}})
	_, posts := r.tryPost(a, ch, "topic.note", `{}`)
	f, follows := r.Follow(ctx, ch, hub.FollowOptions{As: a.id})
	if follows == nil {
		f.Close()
	}
	_, sees := as.Channel(ctx, ch)
	list, _, err := as.Channels(ctx, hub.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	listed := slices.ContainsFunc(list, func(m *channel.Metadata) bool { return m.ID == ch })
	view, err := r.Viewer(ctx, ch, a.id)
	if err != nil {
		r.t.Fatal(err)
	}
	reads, err := view(&envelope.Envelope{Channel: ch, Sender: a.id, Type: "topic.note", Seq: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	has := in.Has(a.id)
	if has != (posts == nil) || has != (follows == nil) || has != (sees == nil) || has != listed || has != reads {
		r.t.Errorf("%s: member %v, posts %v, follows %v, sees %v, listed %v, reads %v", a.name, has, posts, follows, sees, listed, reads)
	}
	for _, err := range []error{posts, follows, sees} {
		if err != nil && fault.CodeOf(err) != fault.AccessDenied {
			r.t.Errorf("%s: %v", a.name, err)
		}
	}
	return has
}

func TestMembersOfAnotherChannel(t *testing.T) {
	t.Parallel()
	stored(t, "who joins and leaves the room belongs to the thread or not", withTopics, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		room := r.room(r.home("agh", "w"), a, b)
		thread := r.topicOf(room, a)
		check := func(when string, want ...bool) {
			t.Helper()
			for range 2 {
				for i, who := range []*agent{a, b, c} {
					if got := r.belongs(who, thread); got != want[i] {
						t.Errorf("%s, %s belongs: %v", when, who.name, got)
					}
				}
				r.restart()
			}
		}
		check("at first", true, true, false)
		r.post(c, room, "club.join", `{}`)
		check("after carol joined", true, true, true)
		r.post(b, room, "club.leave", `{}`)
		check("after bob left", true, false, true)
	})
	stored(t, "a follower of the thread sees nothing more once it has left the room", withTopics, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		room := r.room(r.home("agh", "w"), a, b)
		thread := r.topicOf(room, a)
		f := r.follow(thread, hub.FollowOptions{As: b.id})
		defer f.Close()
		r.post(a, thread, "topic.note", `{"n":1}`)
		if got := r.read(f); !slices.Equal(got, []string{`1 {"n":1}`}) {
			t.Errorf("bob reads %v", got)
		}
		r.post(b, room, "club.leave", `{}`)
		r.post(a, thread, "topic.note", `{"n":2}`)
		if got := r.read(f); len(got) != 0 {
			t.Errorf("after he left bob reads %v", got)
		}
		r.post(b, room, "club.join", `{}`)
		r.post(a, thread, "topic.note", `{"n":3}`)
		if got := r.read(f); !slices.Equal(got, []string{`3 {"n":3}`}) {
			t.Errorf("back again bob reads %v", got)
		}
	})
	stored(t, "a task belongs to the thread if its owner belongs to the room", withTopics, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		thread := r.topicOf(r.room(r.home("agh", "w"), a), a)
		if err := r.ObserveTask(ctx, task.Task{ID: "t1", Owner: a.id, Channel: thread}, nil, hub.MirrorOff); err != nil {
			t.Error(err)
		}
		if err := r.ObserveTask(ctx, task.Task{ID: "t2", Owner: b.id, Channel: thread}, nil, hub.MirrorOff); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("bob's: %v", err)
		}
	})
	runs(t, "the thread does not wait for the room's lock", withTopics, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		room := r.room(r.home("agh", "w"), a, b)
		thread := r.topicOf(room, a)
		f := r.follow(thread, hub.FollowOptions{As: b.id})
		defer f.Close()
		r.post(a, thread, "topic.note", `{"n":1}`)
		release := r.hold()
		defer release()
		// The leave is ordered but not durable, so it does not affect the thread
		// yet.
		c := r.Admit(ctx, &envelope.Envelope{Channel: room, Sender: b.id, Type: "club.leave", Data: []byte(`{}`)}, nil)
		if got := r.read(f); len(got) != 1 {
			t.Errorf("while the room waits for the disk bob reads %v", got)
		}
		if in, err := r.Members(ctx, thread); err != nil || !in.Has(b.id) {
			t.Errorf("bob has left before that is durable: %v", err)
		}
		release()
		if _, err := c.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if in, err := r.Members(ctx, thread); err != nil || in.Has(b.id) {
			t.Errorf("bob has not left: %v", err)
		}
	})
}

// lists returns the agents that have a channel in their lists of all and of open
// channels.
func (r *rig) lists(ch string, agents ...*agent) (all, open []string) {
	r.t.Helper()
	for _, a := range agents {
		if slices.Contains(r.listAll(hub.ListOptions{Agent: a.id}), ch) {
			all = append(all, a.name)
		}
		if slices.Contains(r.listAll(hub.ListOptions{Agent: a.id, Open: true}), ch) {
			open = append(open, a.name)
		}
	}
	return all, open
}

func TestListsFollowMembers(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, r *rig, ch string, agents []*agent, all, open []string) {
		t.Helper()
		for range 2 {
			gotAll, gotOpen := r.lists(ch, agents...)
			if !slices.Equal(gotAll, all) || !slices.Equal(gotOpen, open) {
				t.Errorf("listed for %v, open for %v; want %v and %v", gotAll, gotOpen, all, open)
			}
			r.restart()
		}
	}
	stored(t, "where members are folded, joins and leaves are followed, and the end", withTopics, func(t *testing.T, r *rig) {
		agents := []*agent{r.agent("alice"), r.agent("bob"), r.agent("carol")}
		a, b, c := agents[0], agents[1], agents[2]
		ch := r.room(r.home("agh", "w"), a, b)
		both := []string{"alice", "bob"}
		check(t, r, ch, agents, both, both)
		r.post(c, ch, "club.note", `{}`) // a guest
		check(t, r, ch, agents, both, both)
		r.post(b, ch, "club.leave", `{}`)
		r.post(c, ch, "club.join", `{}`)
		others := []string{"alice", "carol"}
		check(t, r, ch, agents, others, others)
		r.end(ch, "over")
		check(t, r, ch, agents, others, nil)
	})
	stored(t, "the end is followed without the adapter, too", withTopics, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		ch := r.room(r.home("agh", "w"), a)
		r.restart(func(o *hub.Options) { o.Adapters = adapter.All() })
		r.end(ch, "over")
		check(t, r, ch, []*agent{a}, []string{"alice"}, nil)
	})
	stored(t, "a thread is in the lists of those who spoke or were addressed, while they belong", withTopics, func(t *testing.T, r *rig) {
		var agents []*agent
		for i := range 6 {
			agents = append(agents, r.agent(fmt.Sprint("a", i)))
		}
		room := r.room(r.home("agh", "w"), agents[:5]...)
		ch := r.topicOf(room, agents[0])
		check(t, r, ch, agents, nil, nil)
		r.post(agents[0], ch, "topic.note", `{}`)
		r.post(agents[0], ch, "topic.note", `{}`, directed(agents[1]))
		r.post(agents[1], ch, "topic.note", `{}`, func(e *envelope.Envelope) { e.Audience = []string{agents[2].id, agents[5].id, "nobody"} })
		want := []string{"a0", "a1", "a2"} // a5 is not a member
		check(t, r, ch, agents, want, want)
		r.post(agents[1], room, "club.leave", `{}`)
		want = []string{"a0", "a2"}
		check(t, r, ch, agents, want, want)
		r.end(ch, "over")
		check(t, r, ch, agents, want, nil)
	})
}

// counting counts the reads of logs.
type counting struct {
	journal.Engine
	reads atomic.Int64
}

func (c *counting) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	c.reads.Add(1)
	return c.Engine.Read(ctx, log, o)
}

func TestAttachReadsNoOtherDialectsChannels(t *testing.T) {
	t.Parallel()
	runs(t, "nor threads in which the identity said nothing", withTopics, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("agh", "w")
		room := r.room(home, a, b)
		for range 30 {
			r.room(home, a, b)
			r.post(a, r.topicOf(room, a), "topic.note", `{}`)
		}
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hello")
		r.Close()
		engine := &counting{Engine: r.stored}
		h, err := hub.Open(ctx, engine, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		before := engine.reads.Load()
		inbox := hub.NewInbox(0)
		if err := h.BindReplaying(ctx, b.id, inbox, ""); err != nil {
			t.Fatal(err)
		}
		if n := engine.reads.Load() - before; n > 12 {
			t.Errorf("an attach took %d reads", n)
		}
		n, err := inbox.Next(ctx)
		if err != nil || n.Channel.ID != ch {
			t.Errorf("replayed %+v, %v", n, err)
		}
	})
}
