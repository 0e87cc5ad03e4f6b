package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// shelf is a board whose idempotency keys are unique in the whole home.
type shelf struct{ board }

func (shelf) Manifest() channel.Manifest {
	m := board{}.Manifest()
	m.Type = "shelf"
	return m
}
func (shelf) HomeKeys() bool { return true }

var withShelf = hub.Options{Adapters: append(adapter.All(), board{}, shelf{})}

func called(home hub.Home, name string) func(*hub.Opening) {
	return func(o *hub.Opening) { o.Home, o.Name = home.ID, name }
}

func note(from *agent, key string) *envelope.Envelope {
	return &envelope.Envelope{Sender: from.id, Type: "board.note", Data: []byte(`{}`), Key: key}
}

// holder returns the channel that a conflict names.
func holder(err error) string {
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != fault.Conflict || refusal.Reason != fault.Taken {
		return fmt.Sprint("not a conflict: ", err)
	}
	return refusal.Details[fault.DetailChannel]
}

func TestNames(t *testing.T) {
	t.Parallel()
	stored(t, "a name leads to its channel, and is taken once for each home and type", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		one, two := r.home("hpd", "one"), r.home("hpd", "two")
		main := r.openWith("board", called(one, "main"), a, b)
		if m := r.channel(main); m.Name != "main" {
			t.Errorf("it is called %q", m.Name)
		}
		for range 2 {
			if id, err := r.Named(ctx, one.ID, "board", "main"); err != nil || id != main {
				t.Errorf("found %s, %v; want %s", id, err, main)
			}
			if _, err := r.tryOpen("board", called(one, "main"), a, b); holder(err) != main {
				t.Errorf("taken: %v", err)
			}
			r.restart()
		}
		for _, free := range [][2]string{{two.ID, "board"}, {one.ID, "shelf"}} {
			if _, err := r.Named(ctx, free[0], free[1], "main"); fault.ReasonOf(err) != fault.NoChannel {
				t.Errorf("%v: %v", free, err)
			}
		}
		r.openWith("board", called(two, "main"), a, b)
		r.openWith("shelf", called(one, "main"), a, b)
		r.end(main, "done")
		if _, err := r.tryOpen("board", called(one, "main"), a, b); holder(err) != main {
			t.Errorf("an ended channel keeps its name: %v", err)
		}
		if _, err := r.tryOpen("board", called(hub.Home{}, "x"), a, b); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("a name without a home: %v", err)
		}
		if _, err := r.tryOpen("board", called(one, strings.Repeat("x", 20<<10)), a, b); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("a long name: %v", err)
		}
	})
	for name, fails := range map[string]bool{"stands when that is stored": false, "is tried again when that fails": true} {
		runs(t, "a refusal by a name waits for the batch it lost to, and "+name, withShelf, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			home := r.home("hpd", "one")
			release := r.holdBehind()
			open := func() chan error {
				done := make(chan error, 1)
				go func() {
					_, err := r.tryOpen("board", called(home, "main"), a, b)
					done <- err
				}()
				r.settle()
				return done
			}
			first, second := open(), open()
			if len(second) != 0 {
				t.Errorf("answered before the first is durable: %v", <-second)
			}
			if fails {
				r.engine.Faults().FailWrite()
			}
			release()
			want := fault.CodeOf(<-first)
			if err := <-second; fails && (want != fault.Unavailable || err != nil) || !fails && (want != "" || fault.CodeOf(err) != fault.Conflict) {
				t.Errorf("the first ended with %q, the second with %v", want, err)
			}
			if n := len(r.listed()); n != 1 {
				t.Errorf("%d channels", n)
			}
		})
		runs(t, "a refusal by an adapter's claim waits likewise, and "+name, withShelf, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			home := r.home("hpd", "one")
			one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
			release := r.holdBehind()
			take := func(ch string) *hub.Pending {
				return r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "board.take", Data: []byte(`{}`)}, nil)
			}
			first, second := take(one), take(two)
			done := make(chan error, 1)
			go func() {
				_, err := second.Wait(ctx)
				done <- err
			}()
			r.settle()
			if len(done) != 0 {
				t.Errorf("answered before the first is durable: %v", <-done)
			}
			if fails {
				r.engine.Faults().FailWrite()
			}
			release()
			_, err := first.Wait(ctx)
			if other := <-done; fails && (fault.CodeOf(err) != fault.Unavailable || other != nil) || !fails && (err != nil || holder(other) != one) {
				t.Errorf("the first ended with %v, the second with %v", err, other)
			}
		})
	}
	stored(t, "a post to a name opens its channel, whoever is first", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("agh", "one")
		opening := hub.Opening{Home: home.ID, Type: "board", Name: "general", Participants: []string{a.id, b.id}}
		var wg sync.WaitGroup
		var mu sync.Mutex
		opened, channels, seqs := 0, map[string]bool{}, []uint64{}
		for i := range 8 {
			wg.Go(func() {
				p := r.AdmitNamed(ctx, opening, note([]*agent{a, b}[i%2], ""), nil)
				if _, err := p.Wait(ctx); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if p.Opened() {
					opened++
				}
				channels[p.Channel()] = true
				seqs = append(seqs, p.Seq())
			})
		}
		wg.Wait()
		slices.Sort(seqs)
		if opened != 1 || len(channels) != 1 || !slices.Equal(seqs, []uint64{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("%d opened %v, sequences %v", opened, channels, seqs)
		}
		id, err := r.Named(ctx, home.ID, "board", "general")
		if err != nil || !channels[id] || len(r.listed()) != 1 || len(r.log(id)) != 8 {
			t.Errorf("found %s, %v among %v", id, err, r.listed())
		}
		r.restart()
		p := r.AdmitNamed(ctx, opening, note(a, ""), nil)
		if _, err := p.Wait(ctx); err != nil || p.Opened() || p.Channel() != id || p.Seq() != 9 {
			t.Errorf("after a restart: %v, %+v", err, p)
		}
	})
	runs(t, "a post to a name is one batch, and one that is refused leaves no channel", withShelf, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		home := r.home("agh", "one")
		opening := hub.Opening{Home: home.ID, Type: "board", Name: "general", Participants: []string{a.id, b.id}}
		try := func(o hub.Opening, e *envelope.Envelope, by *hub.Caller) fault.Code {
			_, err := r.AdmitNamed(ctx, o, e, by).Wait(ctx)
			return fault.CodeOf(err)
		}
		bad := note(a, "")
		bad.Type = "board.bad"
		if code := try(opening, bad, nil); code != fault.Protocol {
			t.Errorf("refused by the adapter: %q", code)
		}
		outside := opening
		outside.Creator = a.id
		if code := try(outside, note(c, ""), nil); code != fault.AccessDenied {
			t.Errorf("from outside: %q", code)
		}
		if code := try(opening, note(a, ""), &hub.Caller{Agents: []string{b.id}}); code != fault.AccessDenied {
			t.Errorf("for another: %q", code)
		}
		nameless := opening
		nameless.Name = ""
		if code := try(nameless, note(a, ""), nil); code != fault.Invalid {
			t.Errorf("without a name: %q", code)
		}
		homeless := opening
		homeless.Home = ""
		if code := try(homeless, note(a, ""), nil); code != fault.Invalid {
			t.Errorf("without a home: %q", code)
		}
		invites := opening
		invites.Type = "conversation"
		if code := try(invites, note(a, ""), nil); code != fault.Protocol {
			t.Errorf("where the adapter invites: %q", code)
		}
		if n := len(r.listed()); n != 0 {
			t.Fatalf("%d channels", n)
		}
		b.clear()
		before := r.engine.Stats().Batches
		told := note(a, "")
		told.To = b.id
		if code := try(opening, told, nil); code != "" {
			t.Fatal(code)
		}
		if n := r.engine.Stats().Batches - before; n != 1 || !slices.Equal(b.received(), []string{"board.note"}) {
			t.Errorf("%d batches, bob got %v", n, b.received())
		}
	})
	runs(t, "posts to a name may follow each other before any is durable, and all fail with the first", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("agh", "one")
		opening := hub.Opening{Home: home.ID, Type: "board", Name: "general", Participants: []string{a.id, b.id}}
		release := r.holdBehind()
		first, second := r.AdmitNamed(ctx, opening, note(a, ""), nil), r.AdmitNamed(ctx, opening, note(b, ""), nil)
		r.engine.Faults().FailWrite()
		release()
		for _, p := range []*hub.Pending{first, second} {
			if _, err := p.Wait(ctx); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
		}
		if n := len(r.listed()); n != 0 {
			t.Errorf("%d channels", n)
		}
		release = r.holdBehind()
		first, second = r.AdmitNamed(ctx, opening, note(a, ""), nil), r.AdmitNamed(ctx, opening, note(b, ""), nil)
		release()
		for i, p := range []*hub.Pending{first, second} {
			if _, err := p.Wait(ctx); err != nil || p.Seq() != uint64(i)+1 || p.Opened() != (i == 0) {
				t.Errorf("post %d: %v, sequence %d", i, err, p.Seq())
			}
		}
	})
}

func TestKeysOfAHome(t *testing.T) {
	t.Parallel()
	stored(t, "a key counts in the whole home, for ever, whoever sends what", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home, other := r.home("agh", "one"), r.home("agh", "two")
		one, two := r.openWith("shelf", in(home), a, b), r.openWith("shelf", in(home), a, b)
		first := r.post(a, one, "board.note", `{"n":1}`, keyed("k"))
		r.restart()
		e := &envelope.Envelope{Channel: two, Sender: b.id, Type: "board.bad", Data: []byte(`{"other":true}`), Key: "k"}
		p := r.Admit(ctx, e, nil)
		if id, err := p.Wait(ctx); err != nil || id != first || !p.Repeated() || p.Channel() != one || p.Seq() != 1 {
			t.Errorf("repeated as %s in %s, %v", id, p.Channel(), err)
		}
		elsewhere := r.openWith("shelf", in(other), a, b)
		p = r.Admit(ctx, &envelope.Envelope{Channel: elsewhere, Sender: a.id, Type: "board.note", Data: []byte(`{}`), Key: "k"}, nil)
		if id, err := p.Wait(ctx); err != nil || id == first || p.Repeated() {
			t.Errorf("in another home: %s, %v", id, err)
		}
		named := r.AdmitNamed(ctx, hub.Opening{Home: home.ID, Type: "shelf", Name: "n", Participants: []string{a.id}}, note(b, "k"), nil)
		if id, err := named.Wait(ctx); err != nil || id != first || !named.Repeated() || named.Opened() {
			t.Errorf("by name: %s, %v", id, err)
		}
		opened, id, err := r.AdmitOpening(ctx, hub.Opening{Creator: b.id, Home: home.ID, Type: "shelf", Participants: []string{a.id}}, note(b, "k"))
		if err != nil || id != first || !opened.Repeated || opened.ID != one {
			t.Errorf("an opening: %+v %s, %v", opened, id, err)
		}
		if n := len(r.listed()); n != 3 {
			t.Errorf("%d channels", n)
		}
		if err := r.Delete(ctx, one, theOperator); err != nil {
			t.Fatal(err)
		}
		r.restart()
		p = r.Admit(ctx, &envelope.Envelope{Channel: two, Sender: a.id, Type: "board.note", Data: []byte(`{}`), Key: "k"}, nil)
		if id, err := p.Wait(ctx); err != nil || id == first || p.Repeated() || p.Channel() != two {
			t.Errorf("after its channel was deleted: %s in %s, %v", id, p.Channel(), err)
		}
	})
	runs(t, "other keys count in their channel, for a time, with their content", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("agh", "one")
		one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
		first := r.post(a, one, "board.note", `{"n":1}`, keyed("k"))
		if id := r.post(a, two, "board.note", `{"n":1}`, keyed("k")); id == first {
			t.Error("repeated in another channel")
		}
		if _, err := r.tryPostKey(a, one, `{"n":2}`, "k"); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("other content: %v", err)
		}
		if id := r.post(a, one, "board.note", `{"n":1}`, keyed("k")); id != first {
			t.Error("not repeated")
		}
		r.pass(25 * time.Hour)
		if id := r.post(a, one, "board.note", `{"n":1}`, keyed("k")); id == first {
			t.Error("repeated after the window")
		}
	})
	stored(t, "an opening in a home is repeated by its key", withShelf, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "one")
		o := hub.Opening{Creator: a.id, Home: home.ID, Type: "board", Participants: []string{b.id}}
		var wg sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			wg.Go(func() {
				opened, id, err := r.AdmitOpening(ctx, o, note(a, "k"))
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = opened.ID + "/" + id
			})
		}
		wg.Wait()
		if slices.Sort(ids); ids[0] != ids[7] || len(r.listed()) != 1 {
			t.Errorf("made %v", ids)
		}
		changed := note(a, "k")
		changed.Data = []byte(`{"n":2}`)
		if _, _, err := r.AdmitOpening(ctx, o, changed); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("other content: %v", err)
		}
		if opened, _, err := r.AdmitOpening(ctx, o, note(a, "k2")); err != nil || opened.Repeated {
			t.Errorf("another key: %+v, %v", opened, err)
		}
	})
	runs(t, "a repeat is found before the adapter is asked, also when both arrive at once", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("consulting", a, b)
		say := func() *envelope.Envelope {
			return &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`), Key: "k"}
		}
		late := &meanwhile{}
		var first string
		late.do = func() {
			late.do = nil
			var err error
			if first, err = r.Post(ctx, say(), nil); err != nil {
				t.Error(err)
			}
		}
		r.SetArbiter(late)
		p := r.Admit(ctx, say(), nil)
		if id, err := p.Wait(ctx); err != nil || id != first || !p.Repeated() {
			t.Errorf("answered %s, %v; want %s", id, err, first)
		}
	})
}

// holdBehind does the same as hold with a pending batch, so that later batches are
// not handed to the store yet and can fail.
func (r *rig) holdBehind() (release func()) {
	free := r.hold()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Audit(ctx, "ahead", nil)
	}()
	r.settle()
	return func() {
		free()
		<-done
	}
}

// meanwhile calls a function between the first checks of a post and those of its
// channel.
type meanwhile struct {
	hub.Rules
	do func()
}

func (m *meanwhile) AuthorizeSend(hub.Profile, *envelope.Envelope, []hub.Profile) error {
	if m.do != nil {
		m.do()
	}
	return nil
}

func keyed(key string) func(*envelope.Envelope) { return func(e *envelope.Envelope) { e.Key = key } }

func (r *rig) tryPostKey(a *agent, ch, data, key string) (string, error) {
	return r.Post(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "board.note", Data: []byte(data), Key: key}, nil)
}
