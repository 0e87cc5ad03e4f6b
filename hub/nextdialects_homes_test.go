package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// home returns a home. It creates the home if necessary.
func (r *rig) home(kind, name string) hub.Home {
	r.t.Helper()
	home, err := r.Home(ctx, kind, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return home
}

// in returns an edit for openWith.
func in(home hub.Home) func(*hub.Opening) { return func(o *hub.Opening) { o.Home = home.ID } }

// listAll lists channels in pages of two.
func (r *rig) listAll(o hub.ListOptions) []string {
	r.t.Helper()
	var ids []string
	for o.Limit = 2; ; {
		list, next, err := r.Channels(ctx, o)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		if o.After = next; next == "" {
			return ids
		}
	}
}

func TestHomes(t *testing.T) {
	t.Parallel()
	stored(t, "a home is made once, whoever asks first, and found by its name", withBoard, func(t *testing.T, r *rig) {
		ids := make([]string, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				home, err := r.Home(ctx, "hpd", "session")
				if err != nil {
					t.Error(err)
				}
				ids[i] = home.ID
			})
		}
		wg.Wait()
		if slices.Sort(ids); ids[0] != ids[7] || !envelope.ValidID(ids[0]) {
			t.Errorf("made %v", ids)
		}
		made := r.home("hpd", "session")
		other := r.home("agh", "session")
		if other.ID == made.ID {
			t.Error("two kinds share a home")
		}
		r.restart()
		found, err := r.FindHome(ctx, "hpd", "session")
		if err != nil || !found.CreatedAt.Equal(made.CreatedAt) || found.ID != made.ID || found.Kind != "hpd" || found.Name != "session" {
			t.Errorf("found %+v, %v; made %+v", found, err, made)
		}
		if byID, err := r.HomeByID(ctx, made.ID); err != nil || byID.Name != "session" {
			t.Errorf("by id: %+v, %v", byID, err)
		}
		if _, err := r.FindHome(ctx, "hpd", "nobody"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a name that nobody has: %v", err)
		}
		for _, kind := range []string{"", "A/B", strings.Repeat("k", 33)} {
			if _, err := r.Home(ctx, kind, "x"); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("kind %q: %v", kind, err)
			}
		}
		if _, err := r.Home(ctx, "hpd", ""); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("no name: %v", err)
		}
		if _, err := r.Home(ctx, "hpd", strings.Repeat("n", 20<<10)); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("a long name: %v", err)
		}
	})
	stored(t, "homes of a kind are listed by age, in pages", withBoard, func(t *testing.T, r *rig) {
		var want []string
		for i := range 5 {
			want = append(want, r.home("hpd", fmt.Sprint("s", i)).Name)
			r.home("agh", fmt.Sprint("w", i))
		}
		list := func(newest bool) (names []string) {
			page := hub.HomePage{Limit: 2, Newest: newest}
			for {
				homes, next, err := r.Homes(ctx, "hpd", page)
				if err != nil {
					t.Fatal(err)
				}
				for _, home := range homes {
					names = append(names, home.Name)
				}
				if page.After = next; next == "" {
					return names
				}
			}
		}
		if got := list(false); !slices.Equal(got, want) {
			t.Errorf("listed %v", got)
		}
		slices.Reverse(want)
		if got := list(true); !slices.Equal(got, want) {
			t.Errorf("newest first %v", got)
		}
	})
	stored(t, "channels of a home share its partition, and are posted to, read and followed as others", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "session")
		one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
		if !channel.ValidID(one) || !strings.HasPrefix(one, home.ID+".") || hub.HomeOf(one) != home.ID || one == two {
			t.Fatalf("ids %s and %s", one, two)
		}
		first := r.post(a, one, "board.note", `{"n":1}`)
		r.post(a, two, "board.note", `{"n":2}`)
		f := r.follow(one, hub.FollowOptions{As: b.id})
		ev, err := f.Next(ctx)
		if err != nil || ev.Envelope.ID != first {
			t.Fatalf("followed %+v, %v", ev, err)
		}
		f.Close()
		second := r.post(b, one, "board.note", `{"n":3}`)
		for range 2 {
			resumed := r.follow(one, hub.FollowOptions{As: b.id, After: ev.Position})
			next, err := resumed.Next(ctx)
			if err != nil || next.Envelope.ID != second {
				t.Fatalf("resumed at %+v, %v", next, err)
			}
			resumed.Close()
			if r.state(one) != "2" || r.state(two) != "1" || len(r.log(one)) != 2 || len(r.log(two)) != 1 {
				t.Errorf("states %s and %s", r.state(one), r.state(two))
			}
			r.restart()
		}
		var families []string
		logs, err := r.stored.Logs(ctx, journal.PartitionName{Tenant: "main", Partition: "home/" + home.ID}, journal.LogsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, log := range logs.Logs {
			families = append(families, log.Log.Family)
		}
		slices.Sort(families)
		if want := []string{"audit", "history", "history", "meta", "meta", "side", "side"}; !slices.Equal(families, want) {
			t.Errorf("the home's partition holds %v", families)
		}
		if lines := r.audit("channel_created"); len(lines) != 2 || lines[0]["channel_id"] != one {
			t.Errorf("audit %v", lines)
		}
		if err := r.ReportTurnFailure(ctx, one, a.id, first, "ValueError", "no"); err != nil {
			t.Fatal(err)
		}
		head, err := r.stored.Head(ctx, journal.LogName{Tenant: "main", Partition: "home/" + home.ID, Family: "audit", ID: "-"})
		if err != nil || head.Durable.Seq != 3 {
			t.Errorf("the home's audit has %d records, %v", head.Durable.Seq, err)
		}
		r.end(one, "done")
		if _, err := r.tryPost(a, one, "board.note", `{}`); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("after its end: %v", err)
		}
		r.post(a, two, "board.note", `{"n":4}`)
	})
	stored(t, "lists by age hold channels with and without a home", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		h1, h2 := r.home("hpd", "one"), r.home("hpd", "two")
		labelled := func(home string) func(*hub.Opening) {
			return func(o *hub.Opening) { o.Home, o.Labels = home, map[string]string{"team": "red"} }
		}
		var want []string
		for i := range 6 {
			home := []string{"", h2.ID, h1.ID}[i%3]
			want = append(want, r.openWith("board", labelled(home), a, b))
		}
		for name, o := range map[string]hub.ListOptions{
			"all": {}, "member": {Agent: b.id}, "open": {Agent: b.id, Open: true}, "label": {Label: []hub.Label{{Key: "team", Value: "red"}}},
		} {
			if got := r.listAll(o); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			o.Newest = true
			got := r.listAll(o)
			if slices.Reverse(got); !slices.Equal(got, want) {
				t.Errorf("%s, newest first: %v, want %v", name, got, want)
			}
		}
		r.end(want[1], "done")
		if got := r.listAll(hub.ListOptions{Agent: b.id, Open: true}); slices.Contains(got, want[1]) || len(got) != 5 {
			t.Errorf("open ones after an end: %v", got)
		}
	})
	stored(t, "each participant has a cursor in each channel of a home", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "session")
		one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
		first := r.post(a, one, "board.note", `{}`, directed(b))
		r.post(a, two, "board.note", `{}`, directed(b))
		if err := r.Ack(ctx, b.id, one, first); err != nil {
			t.Fatal(err)
		}
		r.restart()
		for ch, want := range map[string]string{one: first, two: ""} {
			if got, err := r.Cursor(ctx, b.id, ch); err != nil || got != want {
				t.Errorf("cursor in %s is %q, %v; want %q", ch, got, err, want)
			}
		}
	})
	runs(t, "a channel of a home invites, takes turns, is judged and expires like any other", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("consulting", in(r.home("hpd", "session")), a, b)
		id := r.say(a, ch, "hello")
		turns, err := r.Turns(ctx, b.id)
		if err != nil || len(turns) != 1 || turns[0].Channel != ch || turns[0].Trigger != id {
			t.Errorf("turns %+v, %v", turns, err)
		}
		r.pass(3 * time.Hour)
		if m := r.channel(ch); m.State != channel.Closed || !strings.HasPrefix(m.CloseReason, "expectation_violated") {
			t.Errorf("it is %v because of %q", m.State, m.CloseReason)
		}
		quiet := r.openWith("conversation", in(r.home("hpd", "session")), a, b)
		r.pass(3 * time.Hour)
		if m := r.channel(quiet); m.State != channel.Expired {
			t.Errorf("it is %v because of %q", m.State, m.CloseReason)
		}
	})
	stored(t, "a task in a channel of a home changes and ends with it", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("board", in(r.home("hpd", "session")), a, b)
		for _, id := range []string{"t1", strings.Repeat("t", task.MaxID)} {
			if err := r.ObserveTask(ctx, task.Task{ID: id, Owner: a.id, Channel: ch}, nil, hub.MirrorOff); err != nil {
				t.Fatal(err)
			}
		}
		r.restart()
		if err := r.UpdateTask(ctx, task.Update{ID: "t1", State: task.Completed}, nil, hub.MirrorOff); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Task(ctx, "t1"); err != nil || got.State != task.Completed || got.Channel != ch {
			t.Errorf("%+v, %v", got, err)
		}
		list, _, err := r.Tasks(ctx, hub.TaskQuery{Channel: ch})
		if err != nil || len(list) != 2 {
			t.Errorf("the channel's tasks: %v, %v", list, err)
		}
		r.end(ch, "done")
		if got, err := r.Task(ctx, list[1].ID); err != nil || got.State != task.Expired {
			t.Errorf("after the channel's end: %+v, %v", got, err)
		}
	})
	runs(t, "an opening in a home that is not there is refused, and so are members from elsewhere", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("hpd", "one"), r.home("hpd", "two")
		if _, err := r.tryOpen("board", in(hub.Home{ID: strings.Repeat("a", 32)}), a, b); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("no such home: %v", err)
		}
		if _, err := r.tryOpen("board", in(hub.Home{ID: "x"}), a, b); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("no id: %v", err)
		}
		room := r.openWith("board", in(home), a, b)
		for _, in := range []string{"", other.ID} {
			_, err := r.tryOpen("board", func(o *hub.Opening) { o.Home, o.MembersOf = in, room }, a, b)
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("members of another home's channel, in %q: %v", in, err)
			}
		}
		if n := len(r.listed()); n != 1 {
			t.Errorf("%d channels", n)
		}
	})
	runs(t, "the tenant is part of every name", hub.Options{Tenant: "acme"}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "hello")
		for _, p := range []string{"directory", "channel/" + ch} {
			for tenant, want := range map[string]bool{"acme": true, "main": false} {
				page, err := r.stored.Logs(ctx, journal.PartitionName{Tenant: tenant, Partition: p}, journal.LogsOptions{})
				if err != nil || (len(page.Logs) > 0) != want {
					t.Errorf("%s/%s: %v, %v", tenant, p, page.Logs, err)
				}
			}
		}
		if _, err := hub.Open(ctx, r.stored, hub.Options{Tenant: strings.Repeat("t", 256)}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("a long tenant: %v", err)
		}
	})
}
