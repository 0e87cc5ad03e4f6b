package board

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/hub/internal/expect"
)

// Whatever is put and removed, lists in both directions, pages and counts are those of a
// board that goes over all channels.
func TestBoardEqualsAScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, model := New(), map[string]Entry{}
		agents := []string{"", "alice", "bob", "hana"}
		time := rapid.Int64Range(0, 20)
		for range rapid.IntRange(1, 2000).Draw(t, "changes") {
			id := fmt.Sprint("c", rapid.IntRange(0, 1500).Draw(t, "channel"))
			e := Entry{Agent: rapid.SampledFrom(agents).Draw(t, "agent")}
			if e.Agent != "" {
				e.Since, e.Due = expect.Instant(time.Draw(t, "since")), expect.Instant(time.Draw(t, "due"))
				e.Human = e.Agent == "hana"
			}
			for range rapid.IntRange(0, 2).Draw(t, "requests") {
				e.Requests++
				e.Dues = append(e.Dues, expect.Instant(time.Draw(t, "request due")))
			}
			if b.Put(id, e); e.empty() {
				delete(model, id)
			} else {
				model[id] = e
			}
		}
		now := expect.Instant(time.Draw(t, "now"))
		for _, q := range []Query{{}, {People: true}, {Agents: []string{"bob"}}, {Agents: []string{"bob", "hana"}}, {Until: now}, {Agents: []string{"alice"}, Until: now}} {
			for _, q.Newest = range []bool{false, true} {
				want := scan(model, q)
				q.Limit = rapid.IntRange(1, 300).Draw(t, "limit")
				var got []string
				for q.After = ""; ; {
					page, next := b.Turns(q)
					for _, turn := range page {
						got = append(got, turn.Place)
					}
					if q.After = next; next == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%+v: %d turns, want %d\n%v\n%v", q, len(got), len(want), got, want)
				}
			}
		}
		var want Counts
		for _, e := range model {
			want.Requests += e.Requests
			for _, due := range e.Dues {
				switch {
				case due < now:
					want.RequestsOverdue++
				case due < now+5:
					want.RequestsSoon++
				}
			}
			if e.Agent != "" {
				want.Turns++
			}
			if e.Human {
				want.OfPeople++
			}
			if e.Due != 0 && e.Due < now {
				want.Overdue++
			}
		}
		if got := b.Count(now, now+5); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for _, agent := range agents[1:] {
			turns, overdue, oldest := b.Waiting(agent, now)
			wantTurns, wantOverdue, wantOldest := 0, 0, expect.Instant(0)
			for _, e := range model {
				if e.Agent != agent {
					continue
				}
				if wantTurns++; wantTurns == 1 || e.Since < wantOldest {
					wantOldest = e.Since
				}
				if e.Due != 0 && e.Due < now {
					wantOverdue++
				}
			}
			if turns != wantTurns || overdue != wantOverdue || oldest != wantOldest {
				t.Fatalf("%s: %d turns, %d overdue, since %d; want %d, %d, %d", agent, turns, overdue, oldest, wantTurns, wantOverdue, wantOldest)
			}
		}
	})
}

// scan lists the places of turns by going over all channels.
func scan(model map[string]Entry, q Query) (places []string) {
	var keys []key
	for id, e := range model {
		at := dueKey(id, &e)
		if e.Agent == "" || q.People && !e.Human || q.Agents != nil && !slices.Contains(q.Agents, e.Agent) || q.Until != 0 && at.at >= q.Until {
			continue
		}
		keys = append(keys, at)
	}
	slices.SortFunc(keys, func(a, b key) int {
		c := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
		if q.Newest {
			return -c
		}
		return c
	})
	for _, k := range keys {
		places = append(places, k.place())
	}
	return places
}

// A list looks at no more entries than it is told to, whoever it is for.
func TestListLooksAtBoundedEntries(t *testing.T) {
	t.Parallel()
	b := New()
	for i := range 10_000 {
		b.Put(fmt.Sprint("c", i), Entry{Agent: fmt.Sprint("agent", i%2), Due: expect.Instant(1 + i)})
	}
	list, next := b.Turns(Query{Agents: []string{"agent1", "nobody"}, Limit: 100})
	if len(list) != 50 || next != (key{100, "c99"}).place() {
		t.Errorf("%d turns, then %q", len(list), next)
	}
}

// The memory of turns that were taken is not kept for the few that were not.
func TestOrderJoinsWhatIsLeft(t *testing.T) {
	t.Parallel()
	var o order
	for i := range 100_000 {
		o.put(key{expect.Instant(i), "c"})
	}
	for i := range 100_000 {
		if i%500 != 0 {
			o.remove(key{expect.Instant(i), "c"})
		}
	}
	if o.size != 200 || len(o.chunks) > 3 {
		t.Errorf("%d keys in %d chunks", o.size, len(o.chunks))
	}
}
