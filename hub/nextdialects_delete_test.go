package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// kept returns the families of the logs, and the number of values, in a home's
// partition.
func (r *rig) kept(home hub.Home) (families []string, values int) {
	r.t.Helper()
	p := journal.PartitionName{Tenant: "main", Partition: "home/" + home.ID}
	page, err := r.stored.Logs(ctx, p, journal.LogsOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, log := range page.Logs {
		families = append(families, log.Log.Family)
	}
	slices.Sort(families)
	for _, lazy := range []bool{false, true} {
		found, err := r.stored.Values(ctx, p, journal.ValuesOptions{Lazy: lazy})
		if err != nil {
			r.t.Fatal(err)
		}
		values += len(found.Values)
	}
	return families, values
}

// index counts the index entries whose key or value contains a text.
func (r *rig) index(text string) (n int) {
	r.t.Helper()
	for entry, err := range journal.IndexAll(ctx, r.stored, journal.ScanOptions{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		if !strings.HasPrefix(string(entry.Key), "audit/") && strings.Contains(string(entry.Key)+string(entry.Value), text) {
			n++
		}
	}
	return n
}

// furnish opens two channels in a home, with everything that a channel can have.
func (r *rig) furnish(home hub.Home, a, b *agent) (one, two string) {
	r.t.Helper()
	return r.furnishFor("", home, a, b)
}

// furnishFor does the same as furnish with a prefix for names, because the ids of
// tasks are unique in the whole hub.
func (r *rig) furnishFor(prefix string, home hub.Home, a, b *agent) (one, two string) {
	r.t.Helper()
	open := func(name string) string {
		id := r.openWith("file", func(o *hub.Opening) {
			o.Home, o.Name, o.Labels = home.ID, name, map[string]string{"team": "red"}
		}, a, b)
		if err := r.file(a, id, "file.all", "k", name); err != nil {
			r.t.Fatal(err)
		}
		last := r.post(a, id, "file.note", `{}`, keyed("key"))
		if err := r.Ack(ctx, b.id, id, last); err != nil {
			r.t.Fatal(err)
		}
		for i := range 3 {
			if err := r.ObserveTask(ctx, task.Task{ID: fmt.Sprint(name, "-", i), Owner: a.id, Channel: id}, nil, hub.MirrorOff); err != nil {
				r.t.Fatal(err)
			}
		}
		return id
	}
	return open(prefix + "one"), open(prefix + "two")
}

// dropless is a store whose removals fail.
type dropless struct{ journal.Engine }

func (dropless) Drop(context.Context, journal.LogName) (*journal.Ticket, error) {
	return nil, errors.New("not now")
}

func (dropless) DropPartition(context.Context, journal.PartitionName, ...string) (*journal.Ticket, error) {
	return nil, errors.New("not now")
}

func TestDeleteInAHome(t *testing.T) {
	t.Parallel()
	ends := func(t *testing.T, f *hub.Follower) {
		t.Helper()
		for {
			_, err := f.Next(ctx)
			var gap *hub.Gap
			if errors.As(err, &gap) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	stored(t, "a channel leaves nothing but its audit, and its neighbours stay", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		one, two := r.furnish(home, a, b)
		f := r.follow(one, hub.FollowOptions{})
		defer f.Close()
		if err := r.Delete(ctx, one, theOperator); err != nil {
			t.Fatal(err)
		}
		ends(t, f)
		for range 2 {
			if _, err := r.Channel(ctx, one); !hub.Deleted(err) {
				t.Errorf("it is still there: %v", err)
			}
			families, values := r.kept(home)
			if want := []string{"audit", "history", "meta", "side", "task", "task", "task"}; !slices.Equal(families, want) || values != 1 {
				t.Errorf("the home holds %v and %d values", families, values)
			}
			own := strings.TrimPrefix(one, home.ID+".")
			if n := r.index(own); n != 0 {
				t.Errorf("%d index entries name it", n)
			}
			if got := r.listAll(hub.ListOptions{}); !slices.Equal(got, []string{two}) {
				t.Errorf("listed %v", got)
			}
			if got := r.listEntries(hub.EntryQuery{Type: "file", Kind: "hpd"}); !slices.Equal(got, []string{"k=two"}) {
				t.Errorf("entries %v", got)
			}
			if lines := r.audit("channel_deleted"); len(lines) != 1 || lines[0]["channel_id"] != one {
				t.Errorf("audit %v", lines)
			}
			r.restart()
		}
		again := r.openWith("file", called(home, "one"), a, b)
		r.post(a, again, "file.note", `{}`, keyed("key"))
		r.post(a, two, "file.note", `{}`)
		if err := r.ObserveTask(ctx, task.Task{ID: "one-1", Owner: a.id, Channel: again}, nil, hub.MirrorOff); err != nil {
			t.Errorf("its task's id is not free: %v", err)
		}
		if err := r.Delete(ctx, one, theOperator); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("twice: %v", err)
		}
	})
	stored(t, "a home leaves nothing but its audit, and its name is free", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		one, two := r.furnish(home, a, b)
		beside := r.openWith("file", in(other), a, b)
		f := r.follow(two, hub.FollowOptions{})
		defer f.Close()
		if err := r.DeleteHome(ctx, home.ID, &hub.Caller{Key: "k1", Role: hub.RoleOperator}); err != nil {
			t.Fatal(err)
		}
		ends(t, f)
		for range 2 {
			for _, id := range []string{one, two} {
				if _, err := r.tryPost(a, id, "file.note", `{}`); fault.ReasonOf(err) != fault.NoChannel {
					t.Errorf("posted to %s: %v", id, err)
				}
			}
			if families, values := r.kept(home); !slices.Equal(families, []string{"audit"}) || values != 0 {
				t.Errorf("it holds %v and %d values", families, values)
			}
			if _, err := r.FindHome(ctx, "hpd", "s"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("it is found: %v", err)
			}
			if homes, _, err := r.Homes(ctx, "hpd", hub.HomePage{}); err != nil || len(homes) != 1 || homes[0].ID != other.ID {
				t.Errorf("homes %v, %v", homes, err)
			}
			if got := r.listAll(hub.ListOptions{}); !slices.Equal(got, []string{beside}) {
				t.Errorf("listed %v", got)
			}
			if n := r.index(home.ID); n != 0 {
				t.Errorf("%d index entries name it", n)
			}
			if lines := r.audit("home_deleted"); len(lines) != 1 || lines[0]["home_name"] != "s" || lines[0]["by"].(map[string]any)["key"] != "k1" {
				t.Errorf("audit %v", lines)
			}
			if _, err := r.tryOpen("file", in(home), a, b); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("opened in it: %v", err)
			}
			r.restart()
		}
		if made := r.home("hpd", "s"); made.ID == home.ID {
			t.Error("the same home is back")
		}
		if err := r.DeleteHome(ctx, home.ID, nil); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("twice: %v", err)
		}
		r.post(a, beside, "file.note", `{}`)
	})
	stored(t, "a deletion that was interrupted is finished by the next hub", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		one, two := r.furnish(home, a, b)
		gone := r.openWith("file", in(other), a, b)
		r.Close()
		crashing, err := hub.Open(ctx, dropless{r.stored}, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := crashing.Delete(ctx, one, theOperator); err == nil {
			t.Error("deleted though nothing can be dropped")
		}
		if _, err := crashing.Channel(ctx, one); !hub.Deleted(err) {
			t.Errorf("half deleted: %v", err)
		}
		if err := crashing.DeleteHome(ctx, other.ID, nil); err == nil {
			t.Error("deleted though nothing can be dropped")
		}
		if _, err := crashing.FindHome(ctx, "hpd", "other"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a home that is being deleted: %v", err)
		}
		if _, err := crashing.Home(ctx, "hpd", "other"); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("made while it is being deleted: %v", err)
		}
		if _, err := crashing.Post(ctx, &envelope.Envelope{Channel: gone, Sender: a.id, Type: "file.note", Data: []byte(`{}`)}, nil); fault.ReasonOf(err) != fault.NoChannel {
			t.Errorf("posted into it: %v", err)
		}
		crashing.Close()
		r.restart()
		if families, _ := r.kept(home); len(families) != 7 {
			t.Errorf("the home holds %v", families)
		}
		if families, _ := r.kept(other); !slices.Equal(families, []string{"audit"}) {
			t.Errorf("the other home holds %v", families)
		}
		if got := r.listAll(hub.ListOptions{}); !slices.Equal(got, []string{two}) {
			t.Errorf("listed %v", got)
		}
		if n := r.index("due/drop"); n != 0 {
			t.Errorf("%d deletions are left", n)
		}
		r.home("hpd", "other")
	})
	runs(t, "a home is deleted while its channels are posted to", withFile, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		empty := r.openWith("file", in(home), a, b)
		done := make(chan error, 3)
		go func() {
			var err error
			for range 100 {
				if _, err = r.tryPost(a, empty, "file.note", `{}`); err != nil {
					break
				}
			}
			done <- err
		}()
		go func() {
			var err error
			for range 100 {
				if _, err = r.tryOpen("file", in(home), a, b); err != nil {
					break
				}
			}
			done <- err
		}()
		go func() { done <- r.DeleteHome(ctx, home.ID, nil) }()
		for range 3 {
			if err := <-done; err != nil && fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.Unavailable {
				t.Error(err)
			}
		}
		r.restart()
		if families, _ := r.kept(home); !slices.Equal(families, []string{"audit"}) {
			t.Errorf("it holds %v", families)
		}
		if r.index(home.ID) != 0 {
			t.Errorf("%d index entries name it", r.index(home.ID))
		}
	})
}
