package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// file is a board that uses an envelope's task as an index key: "file.put" adds the
// entry, "file.all" also among all homes, "file.drop" removes it.
type file struct{ board }

func (file) Manifest() channel.Manifest {
	m := board{}.Manifest()
	m.Type = "file"
	return m
}

func (file) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) channel.Effects {
	switch e.Type {
	case "file.put", "file.all":
		value := []byte(e.To)
		if e.To == "huge" {
			value = make([]byte, 64<<10+1)
		}
		return channel.Effects{Index: []channel.IndexEntry{{Key: e.Task, Value: value, All: e.Type == "file.all"}}}
	case "file.drop":
		return channel.Effects{Unindex: []string{e.Task}}
	}
	return channel.Effects{}
}

var withFile = hub.Options{Adapters: append(adapter.All(), board{}, file{})}

func (r *rig) file(a *agent, ch, kind, key, value string) error {
	_, err := r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: kind, Task: key, To: value, Data: []byte(`{}`)}, nil)
	return err
}

// listEntries lists entries as "key=value", in pages of two.
func (r *rig) listEntries(q hub.EntryQuery) (list []string) {
	r.t.Helper()
	for q.Limit = 2; ; {
		page, err := r.Entries(ctx, q)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, entry := range page.Entries {
			list = append(list, entry.Key+"="+string(entry.Value))
		}
		if page.Next == "" {
			return list
		}
		if q.Reverse {
			q.Before = page.Next
		} else {
			q.After = page.Next
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	stored(t, "an adapter's entries are paged by home, and over all homes of a kind", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		put := func(ch, kind, key, value string) {
			if err := r.file(a, ch, kind, key, value); err != nil {
				t.Fatal(err)
			}
		}
		var homes []hub.Home
		for i := range 3 {
			home := r.home("hpd", fmt.Sprint("s", i))
			homes = append(homes, home)
			one, two := r.openWith("file", in(home), a, b), r.openWith("file", in(home), a, b)
			put(one, "file.put", "a/1", "one")
			put(two, "file.put", "a/1", "two")
			put(two, "file.put", "a/3", "gone")
			put(one, "file.put", "a/2", "old")
			put(one, "file.put", "a/2", "new")
			put(one, "file.put", "b/1", "b")
			put(two, "file.drop", "a/3", "")
			put(one, "file.all", fmt.Sprint("s/", 3-i), home.Name)
			put(two, "file.all", "s/9", "gone")
			put(two, "file.drop", "s/9", "")
		}
		elsewhere := r.openWith("file", in(r.home("agh", "w")), a, b)
		put(elsewhere, "file.all", "s/0", "w")
		alone := r.open("file", a, b)
		put(alone, "file.all", "s/0", "alone")
		inHome := []string{"a/1=one", "a/1=two", "a/2=new", "b/1=b", "s/2=s1"}
		for range 2 {
			for name, c := range map[string]struct {
				q    hub.EntryQuery
				want []string
			}{
				"home":          {hub.EntryQuery{Home: homes[1].ID}, inHome},
				"prefix":        {hub.EntryQuery{Home: homes[1].ID, Prefix: "a/"}, inHome[:3]},
				"after":         {hub.EntryQuery{Home: homes[1].ID, After: "a/1"}, inHome[2:]},
				"before":        {hub.EntryQuery{Home: homes[1].ID, Before: "a/2"}, inHome[:2]},
				"between":       {hub.EntryQuery{Home: homes[1].ID, After: "a/1", Before: "s/2"}, inHome[2:4]},
				"kind":          {hub.EntryQuery{Kind: "hpd"}, []string{"s/1=s2", "s/2=s1", "s/3=s0"}},
				"kind, prefix":  {hub.EntryQuery{Kind: "hpd", Prefix: "s/2"}, []string{"s/2=s1"}},
				"another kind":  {hub.EntryQuery{Kind: "agh"}, []string{"s/0=w"}},
				"without home":  {hub.EntryQuery{}, []string{"s/0=alone"}},
				"no such home":  {hub.EntryQuery{Home: strings.Repeat("0", 32)}, nil},
				"another type":  {hub.EntryQuery{Home: homes[1].ID, Type: "board"}, nil},
				"after and all": {hub.EntryQuery{Kind: "hpd", After: "s/1"}, []string{"s/2=s1", "s/3=s0"}},
			} {
				if c.q.Type == "" {
					c.q.Type = "file"
				}
				if got := r.listEntries(c.q); !slices.Equal(got, c.want) {
					t.Errorf("%s: %q, want %q", name, got, c.want)
				}
				c.q.Reverse = true
				slices.Reverse(c.want)
				if got := r.listEntries(c.q); !slices.Equal(got, c.want) {
					t.Errorf("%s, in reverse: %q, want %q", name, got, c.want)
				}
				slices.Reverse(c.want)
			}
			r.restart()
		}
		page, err := r.Entries(ctx, hub.EntryQuery{Type: "file", Kind: "agh"})
		if err != nil || page.Entries[0].Channel != elsewhere {
			t.Errorf("%+v, %v", page, err)
		}
	})
	runs(t, "an entry that is too large refuses its envelope", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("file", in(r.home("hpd", "s")), a, b)
		for _, bad := range [][2]string{{"k", "huge"}, {strings.Repeat("k", 513), "v"}, {"a\x00b", "v"}} {
			if err := r.file(a, ch, "file.put", bad[0], bad[1]); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%.10q: %v", bad, err)
			}
		}
		if got := r.log(ch); len(got) != 0 {
			t.Errorf("stored %v", got)
		}
		for _, q := range []hub.EntryQuery{{}, {Type: "file", Home: "x", Kind: "hpd"}} {
			if _, err := r.Entries(ctx, q); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}
