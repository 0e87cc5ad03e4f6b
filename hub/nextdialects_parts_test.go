package hub_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// chapter is an adapter of channels that are part of a club. Their label is the
// club's name.
type chapter struct{ topic }

func (chapter) Manifest() channel.Manifest {
	return channel.Manifest{Type: "chapter", Version: 1, KnobsSchema: []byte(`{}`), DefaultView: "full_transcript"}
}

func (chapter) WholeType() string                    { return "club" }
func (chapter) WholeName(m *channel.Metadata) string { return m.Labels["of"] }

var withChapters = hub.Options{Adapters: append(adapter.All(), club{}, chapter{}, board{})}

// club opens a club with a name.
func (r *rig) club(home hub.Home, name string, a *agent) string {
	r.t.Helper()
	opened, err := r.Open(ctx, hub.Opening{Creator: a.id, Type: "club", Dialect: "clubs", Home: home.ID, Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	r.post(a, opened.ID, "club.join", `{}`)
	return opened.ID
}

// chapter opens a part of a club.
func (r *rig) chapter(home hub.Home, of, name string, a *agent) (string, error) {
	opened, err := r.Open(ctx, hub.Opening{Creator: a.id, Type: "chapter", Home: home.ID, Name: of + "/" + name, Labels: map[string]string{"of": of}})
	if err != nil {
		return "", err
	}
	_, err = r.tryPost(a, opened.ID, "topic.note", `{}`)
	return opened.ID, err
}

func TestDeleteWithParts(t *testing.T) {
	t.Parallel()
	must := func(t *testing.T, id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	stored(t, "the parts of a channel go with it, and nothing else", withChapters, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home, other := r.home("agh", "w"), r.home("agh", "v")
		whole := r.club(home, "dock", a)
		kept := []string{r.club(home, "yard", a), r.club(other, "dock", a)}
		for i := range 40 {
			id, err := r.chapter(home, "dock", fmt.Sprint(i), a)
			must(t, id, err)
		}
		for _, in := range []struct {
			home hub.Home
			of   string
		}{{home, "yard"}, {other, "dock"}} {
			id, err := r.chapter(in.home, in.of, "x", a)
			kept = append(kept, must(t, id, err))
		}
		if err := r.Delete(ctx, whole, theOperator); err != nil {
			t.Fatal(err)
		}
		slices.Sort(kept)
		for range 2 {
			got := r.listAll(hub.ListOptions{})
			slices.Sort(got)
			if !slices.Equal(got, kept) {
				t.Errorf("listed %v, want %v", got, kept)
			}
			if families, _ := r.kept(home); slices.Compact(families)[0] != "audit" {
				t.Errorf("the audit is gone: %v", families)
			}
			if lines := r.audit("channel_deleted"); len(lines) != 1 || lines[0]["channel_id"] != whole {
				t.Errorf("audit %v", lines)
			}
			if _, err := r.chapter(home, "dock", "late", a); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("opened in a club that is gone: %v", err)
			}
			r.restart()
		}
		r.club(home, "dock", a)
		id, err := r.chapter(home, "dock", "1", a)
		must(t, id, err)
	})
	stored(t, "a deletion that was interrupted is finished by the next hub", withChapters, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("agh", "w")
		whole := r.club(home, "dock", a)
		for i := range 5 {
			id, err := r.chapter(home, "dock", fmt.Sprint(i), a)
			must(t, id, err)
		}
		r.Close()
		crashing, err := hub.Open(ctx, dropless{r.stored}, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := crashing.Delete(ctx, whole, theOperator); err == nil {
			t.Error("deleted though nothing can be dropped")
		}
		// Until the deletion is finished, the name is not free, and nothing can be
		// opened in it.
		_, err = crashing.Open(ctx, hub.Opening{Creator: a.id, Type: "club", Dialect: "clubs", Home: home.ID, Name: "dock"})
		if fault.CodeOf(err) != fault.Conflict {
			t.Errorf("opened again: %v", err)
		}
		_, err = crashing.Open(ctx, hub.Opening{Creator: a.id, Type: "chapter", Home: home.ID, Name: "new", Labels: map[string]string{"of": "dock"}})
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a part was opened: %v", err)
		}
		crashing.Close()
		r.restart()
		if got := r.listAll(hub.ListOptions{}); len(got) != 0 {
			t.Errorf("listed %v", got)
		}
		if n := r.index("due/drop"); n != 0 {
			t.Errorf("%d deletions are left", n)
		}
		r.club(home, "dock", a)
	})
	runs(t, "a part that is opened meanwhile goes too, or is refused", withChapters, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home := r.home("agh", "w")
		whole := r.club(home, "dock", a)
		done := make(chan error, 4)
		begun := make(chan struct{}, 4)
		for w := range 4 {
			go func() {
				for i := 0; ; i++ {
					if _, err := r.chapter(home, "dock", fmt.Sprint(w, "-", i), a); err != nil {
						done <- err
						return
					}
					if i == 3 {
						begun <- struct{}{}
					}
				}
			}()
		}
		for range 4 {
			<-begun
		}
		if err := r.Delete(ctx, whole, theOperator); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			// The channel may also be deleted between the opening and the first
			// note.
			if err := <-done; fault.CodeOf(err) != fault.NotFound && fault.ReasonOf(err) != fault.ChannelEnded {
				t.Errorf("refused with %v", err)
			}
		}
		if got := r.listAll(hub.ListOptions{}); len(got) != 0 {
			t.Errorf("left %v", got)
		}
	})
}
