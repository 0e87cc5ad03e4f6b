package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

func (r *rig) follow(channelID string, o hub.FollowOptions) *hub.Follower {
	r.t.Helper()
	f, err := r.Follow(ctx, channelID, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// read returns the available events as "sequence data", with live ones marked.
func (r *rig) read(f *hub.Follower) (lines []string) {
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
		line := fmt.Sprintf("%d %s", ev.Envelope.Seq, ev.Envelope.Data)
		if ev.Live {
			line = "live after " + line
		}
		if ev.Position != f.Position() {
			r.t.Fatalf("event at %v, follower at %v", ev.Position, f.Position())
		}
		lines = append(lines, line)
	}
}

func TestFollowing(t *testing.T) {
	t.Parallel()
	runs(t, "from the start, from a position, and on", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.say(a, ch, "4")
		f := r.follow(ch, hub.FollowOptions{})
		if got := r.read(f); len(got) != 4 || got[3] != `4 {"text":"4"}` {
			t.Errorf("from the start: %v", got)
		}
		at := f.Position()
		r.say(b, ch, "5")
		r.say(b, ch, "6")
		want := []string{`5 {"text":"5"}`, `6 {"text":"6"}`}
		if got := r.read(f); !slices.Equal(got, want) {
			t.Errorf("on: %v", got)
		}
		f.Close()
		r.restart()
		again := r.follow(ch, hub.FollowOptions{After: at})
		defer again.Close()
		if got := r.read(again); !slices.Equal(got, want) {
			t.Errorf("resumed after a restart: %v", got)
		}
	})
	runs(t, "a follower that falls behind its queue misses nothing durable", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		f := r.follow(ch, hub.FollowOptions{Queue: 3})
		defer f.Close()
		for i := range 20 {
			r.say(a, ch, fmt.Sprint(i))
		}
		got := r.read(f)
		if len(got) != 23 {
			t.Fatalf("%d events: %v", len(got), got)
		}
		for i, line := range got[3:] {
			if want := fmt.Sprintf(`%d {"text":"%d"}`, i+4, i); line != want {
				t.Errorf("got %s, want %s", line, want)
			}
		}
	})
	runs(t, "live sends stand in their place and are never stored", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		f := r.follow(ch, hub.FollowOptions{})
		defer f.Close()
		r.read(f)
		live := func(s string) {
			t.Helper()
			e := &envelope.Envelope{Channel: ch, Sender: a.id, Type: "my.delta", Data: []byte(text(s))}
			if err := r.SendLive(ctx, e, nil); err != nil {
				t.Fatal(err)
			}
		}
		b.clear()
		live("a")
		r.say(a, ch, "stored")
		live("b")
		live("c")
		want := []string{`live after 3 {"text":"a"}`, `4 {"text":"stored"}`, `live after 4 {"text":"b"}`, `live after 4 {"text":"c"}`}
		if got := r.read(f); !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		var told []string
		for _, e := range b.inbox() {
			told = append(told, string(e.Data))
		}
		if want := []string{text("a"), text("stored"), text("b"), text("c")}; !slices.Equal(told, want) {
			t.Errorf("bob was told %v", told)
		}
		if n := len(r.log(ch)); n != 4 {
			t.Errorf("%d stored", n)
		}
		late := r.follow(ch, hub.FollowOptions{})
		defer late.Close()
		if got := r.read(late); len(got) != 4 {
			t.Errorf("a later follower sees %v", got)
		}
	})
	runs(t, "a live send waits for what was ordered before it", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		b.clear()
		release := r.hold()
		p := r.Admit(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: envelope.TypeText, Data: []byte(text("stored"))}, nil)
		if err := r.SendLive(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "x", Data: []byte(`{}`)}, nil); err != nil {
			t.Fatal(err)
		}
		if got := b.received(); len(got) != 0 {
			t.Errorf("told %v before it was durable", got)
		}
		release()
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.received(); !slices.Equal(got, []string{envelope.TypeText, "x"}) {
			t.Errorf("told %v", got)
		}
	})
	runs(t, "nobody follows what it may not see", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c, d := r.agent("alice"), r.agent("bob"), r.agent("carol"), r.agent("dan")
		ch := r.open("discussion", a, b, c)
		r.post(a, ch, "my.own", text("for bob"), audience(b))
		r.post(a, ch, "my.own", text("for all"))
		f := r.follow(ch, hub.FollowOptions{As: c.id})
		defer f.Close()
		lines := r.read(f)
		if slices.Contains(lines, `6 {"text":"for bob"}`) || !slices.Contains(lines, `7 {"text":"for all"}`) {
			t.Errorf("carol sees %v", lines)
		}
		if _, err := r.Follow(ctx, ch, hub.FollowOptions{As: d.id}); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("dan: %v", err)
		}
	})
	runs(t, "a position that does not exist is a gap", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		good, err := r.Position(ctx, ch)
		if err != nil {
			t.Fatal(err)
		}
		for name, edit := range map[string]func(*journal.Position){
			"another epoch":       func(p *journal.Position) { p.Epoch++ },
			"another incarnation": func(p *journal.Position) { p.Incarnation++ },
			"beyond the end":      func(p *journal.Position) { p.Seq++ },
		} {
			bad := good
			edit(&bad)
			_, err := r.Follow(ctx, ch, hub.FollowOptions{After: bad})
			var gap *hub.Gap
			if !errors.As(err, &gap) || gap.Head != good || fault.CodeOf(err) != fault.Gap {
				t.Errorf("%s: %v", name, err)
			}
		}
		f := r.follow(ch, hub.FollowOptions{After: good})
		defer f.Close()
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		var last error
		for last == nil {
			_, last = f.Next(ctx) // the channel's end, then the gap
		}
		if fault.CodeOf(last) != fault.Gap {
			t.Errorf("after deletion: %v", last)
		}
	})
	runs(t, "all that one may see, in commit order, resumed within a batch", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		one, two := r.open("conversation", a, b), r.open("conversation", b, c)
		start, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r.say(a, one, "1")
		r.say(b, two, "2")
		r.end(one, "done")
		consult := r.open("consulting", a, b)
		r.say(a, consult, "q")
		r.say(b, consult, "a") // one batch: the answer and the close
		read := func(as string, after hub.WidePosition, n int) (lines []string, at []hub.WidePosition) {
			t.Helper()
			f, err := r.FollowAll(ctx, hub.WideOptions{As: as, After: after})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for range n {
				ev, err := f.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, ev.Envelope.Type+" "+ev.Envelope.Channel)
				at = append(at, ev.Position)
			}
			return lines, at
		}
		want := []string{
			envelope.TypeText + " " + one, envelope.TypeClosed + " " + one, envelope.TypeInvite + " " + consult,
			envelope.TypeInviteAck + " " + consult, envelope.TypeOpened + " " + consult,
			envelope.TypeText + " " + consult, envelope.TypeText + " " + consult, envelope.TypeClosed + " " + consult,
		}
		all, at := read(a.id, start, len(want))
		// Channels of different shards have no common order.
		ordered := func(lines []string) []string {
			if lines = slices.Clone(lines); r.shards > 1 {
				slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[len(a)-32:], b[len(b)-32:]) })
			}
			return lines
		}
		if !slices.Equal(ordered(all), ordered(want)) {
			t.Fatalf("alice sees %v", all)
		}
		for i := range want[:len(want)-1] {
			rest, _ := read(a.id, at[i], len(want)-i-1)
			if !slices.Equal(ordered(rest), ordered(all[i+1:])) {
				t.Errorf("resumed after event %d: %v", i, rest)
			}
			parsed, err := hub.ParseWidePosition(at[i].String())
			if err != nil || parsed != at[i] {
				t.Errorf("%v reads back as %v, %v", at[i], parsed, err)
			}
		}
		if first, _ := read(c.id, start, 1); first[0] != envelope.TypeText+" "+two {
			t.Errorf("carol sees %v", first)
		}
		f, err := r.FollowAll(ctx, hub.WideOptions{After: hub.WidePosition{ShardPosition: journal.ShardPosition{Epoch: 99, Offset: 1}, Others: others(r)}})
		if err == nil {
			defer f.Close()
			_, err = f.Next(ctx)
		}
		if fault.CodeOf(err) != fault.Gap {
			t.Errorf("a foreign epoch: %v", err)
		}
	})
}
