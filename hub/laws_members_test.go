package hub_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// TestLawListsAreTheMembers checks that a room's members are those who joined last,
// and that each agent's lists hold its rooms, and of the threads of a room those in
// which it spoke or was addressed. Agents join, leave, speak and are addressed, and
// the hub stops or the power fails at any time.
func TestLawListsAreTheMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			o := withTopics
			o.EvictAfter = time.Minute
			r := newRig(quiet{t, rt}, o)
			defer r.stop()
			w := newClubWorld(rt, r)
			for range rapid.IntRange(1, 20).Draw(rt, "steps") {
				w.step()
				w.check()
			}
			if err := r.stored.RebuildIndex(ctx); err != nil {
				rt.Fatal(err)
			}
			w.check()
		})
	})
}

// clubWorld is a room with threads, and the model of their members.
type clubWorld struct {
	*rig
	rt      *rapid.T
	people  []*agent
	room    string
	in      map[*agent]bool
	threads []string
	touched map[string]map[*agent]bool // by thread: who spoke or was addressed
	ended   map[string]bool
}

func newClubWorld(rt *rapid.T, r *rig) *clubWorld {
	w := &clubWorld{rig: r, rt: rt, in: map[*agent]bool{}, touched: map[string]map[*agent]bool{}, ended: map[string]bool{}}
	for _, name := range []string{"alice", "bob", "carol"} {
		w.people = append(w.people, r.agent(name))
	}
	w.room = r.room(r.home("agh", "w"), w.people[0])
	w.in[w.people[0]] = true
	for range 2 {
		id := r.topicOf(w.room, w.people[0])
		w.threads, w.touched[id] = append(w.threads, id), map[*agent]bool{}
	}
	return w
}

func (w *clubWorld) anyone(label string) *agent {
	return w.people[rapid.IntRange(0, len(w.people)-1).Draw(w.rt, label)]
}

func (w *clubWorld) step() {
	who := w.anyone("who")
	thread := rapid.SampledFrom(w.threads).Draw(w.rt, "thread")
	switch rapid.IntRange(0, 6).Draw(w.rt, "step") {
	case 0, 1:
		kind := "club.join"
		if w.in[who] {
			kind = "club.leave"
		}
		w.post(who, w.room, kind, `{}`)
		w.in[who] = !w.in[who]
	case 2, 3:
		w.speak(who, thread)
	case 4:
		w.end(thread, "over")
		w.ended[thread] = true
	case 5:
		w.crash()
	case 6:
		w.restart()
	}
}

// speak posts to a thread, addressed to an agent that may not belong to it.
func (w *clubWorld) speak(who *agent, thread string) {
	to := w.anyone("to")
	_, err := w.Post(ctx, &envelope.Envelope{Channel: thread, Sender: who.id, Type: "topic.note", To: to.id, Data: []byte(`{}`)}, nil)
	if accepted := w.in[who] && !w.ended[thread]; accepted != (err == nil) {
		w.rt.Fatalf("%s belongs %v, ended %v: %v", who.name, w.in[who], w.ended[thread], err)
	}
	if err == nil {
		w.touched[thread][who], w.touched[thread][to] = true, true
	}
}

func (w *clubWorld) check() {
	in, err := w.Members(ctx, w.room)
	if err != nil {
		w.rt.Fatal(err)
	}
	for _, who := range w.people {
		if in.Has(who.id) != w.in[who] {
			w.rt.Fatalf("%s belongs: %v, want %v", who.name, in.Has(who.id), w.in[who])
		}
		var all, open []string
		if w.in[who] {
			all, open = []string{w.room}, []string{w.room}
			for _, thread := range w.threads {
				if w.touched[thread][who] {
					all = append(all, thread)
					if !w.ended[thread] {
						open = append(open, thread)
					}
				}
			}
		}
		for name, c := range map[string]struct {
			o    hub.ListOptions
			want []string
		}{
			"all": {hub.ListOptions{Agent: who.id}, all}, "open": {hub.ListOptions{Agent: who.id, Open: true}, open},
		} {
			if got := w.listAll(c.o); !slices.Equal(got, c.want) {
				w.rt.Fatalf("%s of %s: %s, want %s", name, who.name, strings.Join(got, " "), strings.Join(c.want, " "))
			}
		}
	}
}
