package transcripttest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

func (f *fixture) list(t *testing.T, q transcript.Query) []string {
	t.Helper()
	return f.titles(t, site, anna, q)
}

// titles returns the agents of the listed sessions, which tests name them by.
func (f *fixture) titles(t *testing.T, scope transcript.Scope, owner transcript.Owner, q transcript.Query) []string {
	t.Helper()
	sessions, err := f.store.List(f.ctx, scope, owner, q)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, s := range sessions {
		list = append(list, s.AgentSlug)
	}
	return list
}

func testList(t *testing.T, f *fixture) {
	same(t, "nothing", f.list(t, transcript.Query{}), []string{})
	add := func(name string, scope transcript.Scope, owner transcript.Owner, context string) string {
		f.advance(time.Second)
		return f.create(t, scope, owner, transcript.Create{AgentSlug: name, Context: context})
	}
	id := add("a", site, anna, "chat")
	add("x", other, anna, "chat")
	add("y", site, bot, "chat")
	add("z", site, transcript.User(8), "chat")
	add("b", site, anna, "rest")
	add("c", site, anna, "chat")
	f.update(t, id, transcript.Update{Messages: rows("hi")})

	same(t, "newest first, of that workspace and owner", f.list(t, transcript.Query{}), []string{"c", "b", "a"})
	same(t, "of another workspace", f.titles(t, other, anna, transcript.Query{}), []string{"x"})
	same(t, "of another owner", f.titles(t, site, bot, transcript.Query{}), []string{"y"})
	same(t, "by context", f.list(t, transcript.Query{Context: "chat"}), []string{"c", "a"})
	same(t, "by agent", f.list(t, transcript.Query{AgentSlug: "b"}), []string{"b"})
	same(t, "by both", f.list(t, transcript.Query{AgentSlug: "b", Context: "chat"}), []string{})
	limit := func(n int) *int { return &n }
	same(t, "limited", f.list(t, transcript.Query{Limit: limit(2)}), []string{"c", "b"})
	same(t, "limit 0 is 1", f.list(t, transcript.Query{Limit: limit(0)}), []string{"c"})
	same(t, "a negative limit is 1", f.list(t, transcript.Query{Limit: limit(-5)}), []string{"c"})
	same(t, "from an offset", f.list(t, transcript.Query{Offset: 1}), []string{"b", "a"})
	same(t, "a negative offset is 0", f.list(t, transcript.Query{Offset: -3}), []string{"c", "b", "a"})
	same(t, "offset and limit", f.list(t, transcript.Query{Offset: 1, Limit: limit(1)}), []string{"b"})
	same(t, "past the end", f.list(t, transcript.Query{Offset: 3}), []string{})

	sessions, err := f.store.List(f.ctx, site, anna, transcript.Query{})
	if err != nil || len(sessions[2].Messages) != 0 {
		t.Errorf("messages are listed unasked: %v", err)
	}
	sessions, err = f.store.List(f.ctx, site, anna, transcript.Query{IncludeMessages: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "messages, when asked for", texts(sessions[2]), []string{"hi"})
	for i := range 60 {
		f.create(t, other, bot, transcript.Create{AgentSlug: fmt.Sprint(i)})
	}
	same(t, "50 by default", len(f.titles(t, other, bot, transcript.Query{})), 50)
}

// Pages by cursor neither shift nor overlap while sessions come and go, also
// among sessions of one moment.
func testPages(t *testing.T, f *fixture) {
	ids := map[string]string{}
	for i := range 6 {
		name := fmt.Sprint(i)
		ids[name] = f.create(t, site, anna, transcript.Create{AgentSlug: name})
	}
	two := 2
	page := func(after string) ([]string, string) {
		t.Helper()
		sessions, err := f.store.List(f.ctx, site, anna, transcript.Query{Limit: &two, After: after})
		if err != nil {
			t.Fatal(err)
		}
		names, cursor := []string{}, ""
		for _, s := range sessions {
			names = append(names, s.AgentSlug)
			cursor = s.Cursor
		}
		return names, cursor
	}
	names, cursor := page("")
	same(t, "created last comes first", names, []string{"5", "4"})
	f.create(t, site, anna, transcript.Create{AgentSlug: "new"})
	if _, err := f.store.Delete(f.ctx, ids["4"]); err != nil { // the cursor's own session
		t.Fatal(err)
	}
	names, cursor = page(cursor)
	same(t, "the second page", names, []string{"3", "2"})
	if _, err := f.store.Delete(f.ctx, ids["1"]); err != nil {
		t.Fatal(err)
	}
	names, cursor = page(cursor)
	same(t, "the third page", names, []string{"0"})
	names, _ = page(cursor)
	same(t, "the end", names, []string{})
	same(t, "by offset", f.list(t, transcript.Query{Offset: 1, Limit: &two}), []string{"5", "3"})

	f.advance(-time.Hour)
	f.create(t, site, anna, transcript.Create{AgentSlug: "earlier"})
	same(t, "by the time of creation", f.list(t, transcript.Query{}), []string{"new", "5", "3", "2", "0", "earlier"})
}

func testRecentPending(t *testing.T, f *fixture) {
	pending := func(q transcript.PendingQuery) string {
		t.Helper()
		s, err := f.store.RecentPending(f.ctx, site, anna, q)
		if errors.Is(err, transcript.ErrNotFound) {
			return "none"
		}
		if err != nil {
			t.Fatal(err)
		}
		return s.AgentSlug
	}
	same(t, "of nothing", pending(transcript.PendingQuery{}), "none")
	old := f.create(t, site, anna, transcript.Create{AgentSlug: "old"})
	f.create(t, site, bot, transcript.Create{AgentSlug: "bot's"})
	f.create(t, other, anna, transcript.Create{AgentSlug: "elsewhere"})
	f.create(t, site, anna, transcript.Create{AgentSlug: "rest", Context: "rest"})
	same(t, "an empty one", pending(transcript.PendingQuery{}), "old")
	same(t, "by context", pending(transcript.PendingQuery{Context: "rest"}), "rest")
	f.advance(600 * time.Second)
	same(t, "at the window's end", pending(transcript.PendingQuery{}), "old")
	f.advance(time.Second)
	same(t, "past the window", pending(transcript.PendingQuery{}), "none")
	same(t, "in a wider window", pending(transcript.PendingQuery{Window: time.Hour}), "old")

	f.advance(time.Second)
	fresh := f.create(t, site, anna, transcript.Create{AgentSlug: "new", Metadata: value.New().Set("token_id", value.Int(5))})
	f.update(t, fresh, transcript.Update{Messages: rows("a"), Metadata: value.New().Set("token_id", value.Int(5))})
	same(t, "only the newest counts", pending(transcript.PendingQuery{Window: time.Hour}), "none")
	token, err := f.store.Acquire(f.ctx, fresh, time.Minute)
	if err != nil || token == "" {
		t.Fatalf("%q %v", token, err)
	}
	same(t, "a locked one", pending(transcript.PendingQuery{}), "new")
	same(t, "of its token", pending(transcript.PendingQuery{TokenID: "5"}), "new")
	same(t, "of another token", pending(transcript.PendingQuery{TokenID: "6"}), "none")
	f.advance(time.Minute)
	same(t, "an expired lock", pending(transcript.PendingQuery{}), "none")
	if _, err := f.store.Delete(f.ctx, fresh); err != nil {
		t.Fatal(err)
	}
	same(t, "what is left", pending(transcript.PendingQuery{Window: time.Hour}), "old")
	_ = old
}

func testLock(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	acquire := func(ttl time.Duration) string {
		t.Helper()
		token, err := f.store.Acquire(f.ctx, id, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	release := func(token string) bool {
		t.Helper()
		ok, err := f.store.Release(f.ctx, id, token)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if token, err := f.store.Acquire(f.ctx, "nope", time.Minute); token != "" || err != nil {
		t.Errorf("of an unknown session: %q %v", token, err)
	}
	if ok, err := f.store.Release(f.ctx, "nope", "x"); ok || err != nil {
		t.Errorf("of an unknown session: %v %v", ok, err)
	}
	same(t, "what was never locked", []bool{release(""), release("x")}, []bool{false, false})

	first := acquire(time.Minute)
	if first == "" {
		t.Fatal("a free lock is refused")
	}
	same(t, "a second one", acquire(time.Minute), "")
	same(t, "other tokens", []bool{release("x"), release("")}, []bool{false, false})
	same(t, "a second one still", acquire(time.Minute), "")
	f.update(t, id, transcript.Update{Messages: rows("a")}) // updates do not look at locks
	same(t, "its own", []bool{release(first), release(first)}, []bool{true, false})

	stale := acquire(time.Minute)
	f.advance(time.Minute - 1)
	same(t, "just before the end", acquire(time.Minute), "")
	f.advance(1)
	current := acquire(time.Minute)
	if current == "" || current == stale {
		t.Fatalf("an expired lock is not taken over: %q", current)
	}
	same(t, "a stale token", release(stale), false)
	same(t, "the new lock holds", acquire(time.Minute), "")
	same(t, "the current one", release(current), true)

	// No lifetime is shorter than a second; none given is five minutes.
	acquire(time.Millisecond)
	f.advance(time.Second - 1)
	same(t, "within a second", acquire(time.Minute), "")
	f.advance(1)
	if acquire(0) == "" {
		t.Error("a second is over, and the lock is not free")
	}
	f.advance(300*time.Second - 1)
	same(t, "within five minutes", acquire(0), "")
	f.advance(1)
	last := acquire(-time.Hour)
	if last == "" {
		t.Error("five minutes are over, and the lock is not free")
	}
	f.advance(time.Hour)
	same(t, "an expired lock that nobody took", release(last), true)
}

// Of many that contend, exactly one wins, also for an expired lock.
func testLockContest(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	for range 2 {
		var winners atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if token, err := f.store.Acquire(f.ctx, id, time.Second); err == nil && token != "" {
					winners.Add(1)
				}
			})
		}
		wg.Wait()
		same(t, "winners", winners.Load(), int32(1))
		f.advance(time.Second)
	}
}
