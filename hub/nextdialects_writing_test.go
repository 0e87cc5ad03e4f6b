package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// ledger is an adapter whose state is the order in which it folded both logs.
type ledger struct{ board }

type page string

func (ledger) Manifest() channel.Manifest {
	m := board{}.Manifest()
	m.Type = "ledger"
	return m
}
func (ledger) Initial(*channel.Metadata) (channel.State, error) { return page(""), nil }

func (ledger) Fold(s channel.State, e *envelope.Envelope) channel.State {
	return s.(page) + page(fmt.Sprintf("%s@%d ", strings.TrimPrefix(e.Type, "ledger."), e.Seq))
}

func (ledger) FoldSide(s channel.State, e *envelope.Envelope) channel.State {
	return s.(page) + page(fmt.Sprintf("(%s@%d) ", strings.TrimPrefix(e.Type, "ledger."), e.Seq))
}

func (ledger) ValidateSide(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	if e.Type == "ledger.once" && strings.Contains(string(s.(page)), "(once") {
		return fault.New(fault.Conflict, "once is enough")
	}
	return nil
}

// OnAccepted returns the effects that an envelope's type names.
func (ledger) OnAccepted(_ *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	draft := func(name string, where channel.Where) channel.Draft {
		return channel.Draft{Where: where, Envelope: envelope.Envelope{Type: "ledger." + name, Data: []byte(`{}`)}}
	}
	switch e.Type {
	case "ledger.all":
		return channel.Effects{Append: []channel.Draft{draft("side", channel.Side), draft("live", channel.Live), draft("kept", channel.History)}}
	case "ledger.later":
		return channel.Effects{Deadlines: []channel.Deadline{{Name: "bell", At: e.CreatedAt.Add(time.Minute)}}}
	case "ledger.audited":
		return channel.Effects{Audit: []channel.AuditRecord{{Kind: "ledger_seen", Fields: map[string]any{"state": string(s.(page))}}}}
	case "ledger.claim":
		return channel.Effects{Claims: []string{"pen"}, Index: []channel.IndexEntry{{Key: "pen"}}}
	case "ledger.unclaim":
		return channel.Effects{Release: []string{"pen"}, Unindex: []string{"pen"}}
	}
	return channel.Effects{}
}

func (ledger) OnDeadline(_ *channel.Metadata, _ channel.State, name string, _ time.Time) channel.Effects {
	return channel.Effects{
		Append: []channel.Draft{
			{Where: channel.Side, Envelope: envelope.Envelope{Type: "ledger." + name, Data: []byte(`{}`)}},
			{Where: channel.Live, Envelope: envelope.Envelope{Type: "ledger.ring", Data: []byte(`{}`)}},
		},
		Audit: []channel.AuditRecord{{Kind: "ledger_rang", Fields: map[string]any{"name": name}}},
	}
}

func (ledger) Recipients(m *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope) []string {
	return m.Others(e.Sender)
}

func (ledger) Codec() channel.Codec {
	return channel.Codec{
		Version: 1,
		Encode:  func(s channel.State) ([]byte, error) { return []byte(s.(page)), nil },
		Decode:  func(data []byte) (channel.State, error) { return page(data), nil },
	}
}

var withLedger = hub.Options{Adapters: append(adapter.All(), board{}, ledger{})}

// side posts to the side log.
func (r *rig) side(a *agent, channelID, eventType string, edit ...func(*envelope.Envelope)) (string, error) {
	e := &envelope.Envelope{Channel: channelID, Sender: a.id, Type: eventType, Data: []byte(`{}`)}
	for _, finish := range edit {
		finish(e)
	}
	return r.AdmitSide(ctx, e, nil).Wait(ctx)
}

// shown returns what a follower has received so far, each event with its position.
func (r *rig) shown(f *hub.Follower) (lines []string) {
	r.t.Helper()
	r.settle()
	for {
		ev, wake, err := f.TryNext(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if wake != nil {
			return lines
		}
		line := fmt.Sprintf("%s@%d", strings.TrimPrefix(ev.Envelope.Type, "ledger."), ev.Position.Seq)
		switch {
		case ev.Side && ev.Live:
			line = "(" + line + ")"
		case ev.Live:
			line = "~" + line
		}
		lines = append(lines, line)
	}
}

func TestSideEnvelopes(t *testing.T) {
	t.Parallel()
	runs(t, "are folded in their place, live and when loading, and are no part of the history", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		f := r.follow(ch, hub.FollowOptions{As: b.id})
		defer f.Close()
		r.post(a, ch, "ledger.one", `{}`)
		id, err := r.side(b, ch, "ledger.note")
		if err != nil {
			t.Fatal(err)
		}
		r.post(a, ch, "ledger.all", `{}`)
		if _, err := r.AdmitAll(ctx, []*envelope.Envelope{
			{Channel: ch, Sender: a.id, Type: "ledger.all", Data: []byte(`{}`)},
			{Channel: ch, Sender: a.id, Type: "ledger.two", Data: []byte(`{}`)},
		}, nil).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		want := "one@1 (note@1) all@2 kept@3 (side@3) all@4 kept@5 two@6 (side@6) "
		if got := r.shown(f); !slices.Equal(got, []string{
			"one@1", "(note@1)", "all@2", "~live@2", "kept@3", "(side@3)", "all@4", "~live@4", "kept@5", "two@6", "(side@6)",
		}) {
			t.Errorf("bob is shown %v", got)
		}
		for _, again := range []func(){func() {}, func() { r.restart() }, func() { r.crash() }, func() { r.Evict() }} {
			again()
			if got := r.state(ch); got != want {
				t.Errorf("state %s", got)
			}
			side, err := r.Side(ctx, ch)
			if err != nil || len(side) != 3 || side[0].ID != id || side[0].Seq != 1 || side[2].Seq != 6 {
				t.Errorf("side log: %+v, %v", side, err)
			}
			if got := r.types(ch); len(got) != 6 || slices.Contains(got, "ledger.note") {
				t.Errorf("history %v", got)
			}
		}
	})
	runs(t, "do not wait for the history, nor the history for them", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		f := r.follow(ch, hub.FollowOptions{As: b.id})
		defer f.Close()
		release := r.hold()
		ordered := make(chan *hub.Pending, 4)
		go func() {
			defer close(ordered)
			for i := range 4 {
				e := &envelope.Envelope{Channel: ch, Sender: a.id, Type: fmt.Sprint("ledger.", i), Data: []byte(`{}`)}
				if i%2 == 0 {
					ordered <- r.Admit(ctx, e, nil)
				} else {
					ordered <- r.AdmitSide(ctx, e, nil)
				}
			}
		}()
		r.settle()
		if n := len(ordered); n != 4 {
			t.Errorf("%d of 4 are ordered while the first is not durable", n)
		}
		release()
		for p := range ordered {
			if _, err := p.Wait(ctx); err != nil {
				t.Error(err)
			}
		}
		if got, want := r.state(ch), "0@1 (1@1) 2@2 (3@2) "; got != want {
			t.Errorf("folded %s, want %s", got, want)
		}
		if got := r.shown(f); !slices.Equal(got, []string{"0@1", "(1@1)", "2@2", "(3@2)"}) {
			t.Errorf("bob is shown %v", got)
		}
	})
	runs(t, "are told to whom the adapter names, once, and not replayed", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		if _, err := r.side(a, ch, "ledger.note"); err != nil {
			t.Fatal(err)
		}
		if got := b.received(); !slices.Equal(got, []string{"ledger.note"}) || !b.got[0].Live || !b.got[0].Side || b.got[0].Envelope.ID == "" {
			t.Errorf("bob was told %v", got)
		}
		b.clear()
		r.away(b)
		r.back(b, "")
		if got := b.received(); len(got) != 0 {
			t.Errorf("bob was told again: %v", got)
		}
	})
	stored(t, "pass the same admission as posts", withLedger, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch, talk := r.open("ledger", a, b), r.open("conversation", a, b)
		keyed := func(e *envelope.Envelope) { e.Key = "k" }
		first, err := r.side(a, ch, "ledger.once", keyed)
		if err != nil {
			t.Fatal(err)
		}
		r.restart()
		before := r.state(ch)
		if again, err := r.side(a, ch, "ledger.once", keyed); err != nil || again != first {
			t.Errorf("repeated: %s, %v", again, err)
		}
		for name, c := range map[string]struct {
			by   *agent
			ch   string
			kind string
			edit func(*envelope.Envelope)
			code fault.Code
		}{
			"the adapter's word":           {a, ch, "ledger.once", nil, fault.Conflict},
			"no participant":               {c, ch, "ledger.note", nil, fault.AccessDenied},
			"no side log":                  {a, talk, "ledger.note", nil, fault.Protocol},
			"another content, the old key": {a, ch, "ledger.note", keyed, fault.Protocol},
			"no object":                    {a, ch, "ledger.note", func(e *envelope.Envelope) { e.Data = []byte(`[]`) }, fault.Invalid},
			"unknown channel":              {a, "nowhere", "ledger.note", nil, fault.NotFound},
		} {
			edit := c.edit
			if edit == nil {
				edit = func(*envelope.Envelope) {}
			}
			if _, err := r.side(c.by, c.ch, c.kind, edit); fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := r.state(ch); got != before {
			t.Errorf("state %s", got)
		}
		r.end(ch, "done")
		if _, err := r.side(a, ch, "ledger.note"); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("into an ended channel: %v", err)
		}
	})
	stored(t, "have effects of their own", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("test", "one")
		one, two := r.openWith("ledger", in(home), a, b), r.openWith("ledger", in(home), a, b)
		if _, err := r.side(a, one, "ledger.claim"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.side(a, two, "ledger.claim"); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("taken twice: %v", err)
		}
		if _, err := r.side(a, one, "ledger.unclaim"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.side(a, two, "ledger.claim"); err != nil {
			t.Error(err)
		}
		// The history that it causes is folded before it, as on loading.
		if _, err := r.side(a, one, "ledger.all"); err != nil {
			t.Fatal(err)
		}
		want := "(claim@0) (unclaim@0) kept@1 (all@1) (side@1) "
		for range 2 {
			if got := r.state(one); got != want {
				t.Errorf("state %s", got)
			}
			r.restart()
		}
	})
	runs(t, "a deadline tells somebody, and audits it, in one batch", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		if _, err := r.side(a, ch, "ledger.later"); err != nil {
			t.Fatal(err)
		}
		r.restart()
		b.clear()
		r.pass(2 * time.Minute)
		if got := b.received(); !slices.Equal(got, []string{"ledger.ring", "ledger.bell"}) {
			t.Errorf("bob was told %v", got)
		}
		if got := r.state(ch); got != "(later@0) (bell@0) " || len(r.log(ch)) != 0 {
			t.Errorf("state %s, history %v", got, r.types(ch))
		}
		if diff := cmp.Diff([]map[string]any{{"kind": "ledger_rang", "channel_id": ch, "name": "bell"}}, r.audit("ledger_rang")); diff != "" {
			t.Error(diff)
		}
	})
	runs(t, "an adapter's audit is in the envelope's batch", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		before := r.engine.Stats().Batches
		r.post(a, ch, "ledger.audited", `{}`)
		if n := r.engine.Stats().Batches - before; n != 1 {
			t.Errorf("%d batches", n)
		}
		if diff := cmp.Diff([]map[string]any{{"kind": "ledger_seen", "channel_id": ch, "state": "audited@1 "}}, r.audit("ledger_seen")); diff != "" {
			t.Error(diff)
		}
	})
}

// The live fold equals the fold on loading, whatever is written to either log, and
// a follower's position never goes back.
func TestLawBothLogsFoldAlike(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		r.restart(func(o *hub.Options) { o.Adapters = withLedger.Adapters })
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("ledger", a, b)
		kinds := rapid.SampledFrom([]string{"ledger.one", "ledger.all", "ledger.later", "ledger.audited"})
		post := func(kind string) *envelope.Envelope {
			return &envelope.Envelope{Channel: ch, Sender: a.id, Type: kind, Data: []byte(`{}`)}
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1:
				_, _ = r.AdmitSide(ctx, post(kinds.Draw(rt, "side")), nil).Wait(ctx)
			case 2:
				_, _ = r.Post(ctx, post(kinds.Draw(rt, "post")), nil)
			case 3:
				_, _ = r.AdmitAll(ctx, []*envelope.Envelope{post(kinds.Draw(rt, "first")), post(kinds.Draw(rt, "second"))}, nil).Wait(ctx)
			case 4:
				r.pass(2 * time.Minute)
			case 5:
				live := r.state(ch)
				if rapid.Bool().Draw(rt, "crash") {
					r.crash()
				} else {
					r.restart()
				}
				if got := r.state(ch); got != live {
					rt.Fatalf("folded %s, live it was %s", got, live)
				}
			}
		}
	})
}
