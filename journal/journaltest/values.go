package journaltest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var valueCases = []testCase{
	{"the last write of a value wins", valueWrites},
	{"a value is compared and set", valueCompareAndSet},
	{"a lazy value is visible at once", lazyVisible},
	{"a lazy value may be lost and is never torn", lazyCrash},
	{"values are listed", valueList},
	{"values are removed by their prefix, however many", valuesRemoved},
}

func key(name string) journal.ValueKey { return journal.ValueKey{Partition: home, Name: name} }

func setting(name, data string) journal.Batch {
	return journal.Batch{Values: []journal.ValueWrite{{Key: key(name), Data: []byte(data)}}}
}

func valueWrites(t *testing.T, open Open) {
	r := start(t, open, Options{})
	equal(t, r.value(key("v")), journal.ValueState{})
	r.commit(setting("v", "one"))
	ticket := r.commit(setting("v", "two"))
	want := journal.Value{Data: []byte("two"), Version: ticket.Offset()}
	equal(t, r.value(key("v")), journal.ValueState{Durable: want, Ordered: want})
	equal(t, r.value(journal.ValueKey{Partition: other, Name: "v"}), journal.ValueState{})
	r.reopen()
	equal(t, r.value(key("v")), journal.ValueState{Durable: want, Ordered: want})
	r.commit(journal.Batch{Values: []journal.ValueWrite{{Key: key("v"), Delete: true}}})
	equal(t, r.value(key("v")), journal.ValueState{})
	empty := r.commit(setting("v", ""))
	equal(t, r.value(key("v")).Durable.Version, empty.Offset())
	r.reopen()
	equal(t, r.value(key("v")).Durable.Version, empty.Offset())
}

func valueCompareAndSet(t *testing.T, open Open) {
	r := start(t, open, Options{})
	set := func(data string, expect uint64) journal.Batch {
		b := setting("v", data)
		b.Values[0].Expect = journal.Exactly(expect)
		return b
	}
	first := r.commit(set("1", 0))
	conflict := r.refused(set("x", 0), journal.ValueConflict)
	equal(t, conflict.Value, key("v"))
	equal(t, conflict.Actual, first.Offset())
	equal(t, conflict.LostTo.Offset(), first.Offset())
	reached, release := r.HoldSync()
	defer release()
	second := r.order(set("2", first.Offset()))
	r.await(reached, "a sync")
	state := r.value(key("v"))
	equal(t, string(state.Durable.Data), "1")
	equal(t, string(state.Ordered.Data), "2")
	equal(t, state.Pending, second)
	conflict = r.refused(set("x", first.Offset()), journal.ValueConflict)
	equal(t, conflict.LostTo, second)
	gone := set("", second.Offset())
	gone.Values[0].Delete = true
	r.order(gone)
	third := r.order(set("3", 0))
	pending(t, second, third)
	release()
	need(t, third.Wait(r.ctx))
	equal(t, string(r.value(key("v")).Durable.Data), "3")
	_ = r.refused(set("x", second.Offset()), journal.ValueConflict)
}

func lazyVisible(t *testing.T, open Open) {
	r := start(t, open, Options{})
	_, release := r.HoldSync()
	defer release()
	ticket := r.order(setting("cursor", "durable"))
	lazily := func(data string, expect journal.Expect) error {
		return r.PutLazy(r.ctx, journal.ValueWrite{Key: key("cursor"), Data: []byte(data), Expect: expect})
	}
	need(t, lazily("1", journal.Exactly(0)))
	equal(t, r.lazy(key("cursor")), "1")
	equal(t, r.value(key("cursor")).Durable, journal.Value{})
	v, err := r.LazyValue(r.ctx, key("cursor"))
	need(t, err)
	if err := lazily("x", journal.Exactly(v.Version+1)); err == nil {
		t.Fatal("a lazy value was set against its expectation")
	}
	need(t, lazily("2", journal.Exactly(v.Version)))
	need(t, r.PutLazy(r.ctx,
		journal.ValueWrite{Key: key("a"), Data: []byte("a")}, journal.ValueWrite{Key: key("b"), Data: []byte("b")}))
	need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key("a"), Delete: true}))
	equal(t, r.lazy(key("cursor")), "2")
	pending(t, ticket)
	release()
	need(t, ticket.Wait(r.ctx))
	equal(t, r.lazy(key("cursor")), "2")
	r.reopen() // a clean close loses nothing
	equal(t, r.lazy(key("cursor")), "2")
	equal(t, string(r.value(key("cursor")).Durable.Data), "durable")
	equal(t, r.lazy(key("a")), "")
	equal(t, r.lazy(key("b")), "b")
}

func lazyCrash(t *testing.T, open Open) {
	r := start(t, open, Options{})
	written := map[string]bool{"": true}
	for i := range 20 {
		data := bytes.Repeat(fmt.Appendf(nil, "%02d", i), 1000)
		written[string(data)] = true
		need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key("cursor"), Data: data}))
		if i%7 == 0 {
			r.commit(batch(to(alpha, "x")))
		}
	}
	equal(t, len(r.lazy(key("cursor"))), 2000)
	r.crash()
	if got := r.lazy(key("cursor")); !written[got] {
		t.Fatalf("after the crash the lazy value is %q, which nobody wrote", got)
	}
	equal(t, len(r.texts(alpha)), 3)
}

func valueList(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for _, name := range []string{"c/2", "c/1", "d/1", "c/3", "b"} {
		r.commit(setting(name, "="+name))
		need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key(name), Data: []byte("~" + name)}))
	}
	r.commit(journal.Batch{Values: []journal.ValueWrite{
		{Key: journal.ValueKey{Partition: other, Name: "c/9"}, Data: []byte("not ours")},
	}})
	list := func(opts journal.ValuesOptions) (out []string, more bool) {
		page, err := r.Values(r.ctx, home, opts)
		need(t, err)
		for _, v := range page.Values {
			out = append(out, v.Name+string(v.Data))
		}
		return out, page.More
	}
	got, more := list(journal.ValuesOptions{Prefix: "c/"})
	equal(t, got, []string{"c/1=c/1", "c/2=c/2", "c/3=c/3"})
	equal(t, more, false)
	got, more = list(journal.ValuesOptions{Limits: journal.Limits{Entries: 2}})
	equal(t, got, []string{"b=b", "c/1=c/1"})
	equal(t, more, true)
	got, more = list(journal.ValuesOptions{After: "c/1", Lazy: true, Limits: journal.Limits{Entries: 3}})
	equal(t, got, []string{"c/2~c/2", "c/3~c/3", "d/1~d/1"})
	equal(t, more, false)
	need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key("c/3"), Delete: true}))
	got, _ = list(journal.ValuesOptions{Prefix: "c/", Lazy: true})
	equal(t, got, []string{"c/1~c/1", "c/2~c/2"})
}

func valuesRemoved(t *testing.T, open Open) {
	r := start(t, open, Options{})
	const n = 2500
	for i := 0; i < n; i += 500 {
		var writes []journal.ValueWrite
		for k := i; k < i+500; k++ {
			writes = append(writes, journal.ValueWrite{Key: key(fmt.Sprintf("cursor/a/%04d", k)), Data: []byte("x")})
		}
		r.commit(journal.Batch{Values: writes})
		need(t, r.PutLazy(r.ctx, writes...))
	}
	r.commit(setting("cursor/b", "stays"))
	need(t, r.PutLazy(r.ctx, journal.ValueWrite{Key: key("cursor/b"), Data: []byte("stays")}))
	need(t, journal.RemoveValues(r.ctx, r.Engine, home, "cursor/a/"))
	check := func() {
		t.Helper()
		for _, lazy := range []bool{false, true} {
			page, err := r.Values(r.ctx, home, journal.ValuesOptions{Lazy: lazy, Prefix: "cursor/"})
			need(t, err)
			equal(t, len(page.Values), 1)
			equal(t, page.Values[0].Name, "cursor/b")
		}
	}
	check()
	r.commit(setting("next", "batch"))
	r.crash()
	check()
	need(t, journal.RemoveValues(r.ctx, r.Engine, home, "cursor/a/"))
}
