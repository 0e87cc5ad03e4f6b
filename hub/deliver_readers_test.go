package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// attach adds a reader of an agent, with an inbox of its own.
func (r *rig) attach(a *agent, at hub.Attachment) *hub.Inbox {
	r.t.Helper()
	inbox := hub.NewInbox(0)
	if err := r.Attach(ctx, a.id, inbox, at); err != nil {
		r.t.Fatal(err)
	}
	return inbox
}

// texts reads n notices and returns their payloads, marked if replayed.
func (r *rig) texts(in *hub.Inbox, n int) (got []string) {
	r.t.Helper()
	for range n {
		notice, err := in.Next(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		text := string(notice.Envelope.Data)
		if notice.Replayed {
			text = "again " + text
		}
		got = append(got, text)
	}
	return got
}

func TestSeveralReaders(t *testing.T) {
	t.Parallel()
	note := func(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }
	stored(t, "readers of one identity read side by side, each with a cursor", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		for _, ch := range []string{r.open("board", a, b), r.openWith("board", in(home), a, b)} {
			web, queue := r.attach(b, hub.Attachment{Reader: "web"}), r.attach(b, hub.Attachment{Reader: "queue"})
			b.clear()
			first := r.post(a, ch, "board.note", note(1), directed(b))
			second := r.post(a, ch, "board.note", note(2), directed(b))
			for name, in := range map[string]*hub.Inbox{"web": web, "queue": queue} {
				if got := r.texts(in, 2); !slices.Equal(got, []string{note(1), note(2)}) {
					t.Errorf("%s reads %v", name, got)
				}
			}
			if got := b.inbox(); len(got) != 2 {
				t.Errorf("the unnamed reader has %d", len(got))
			}
			for reader, id := range map[string]string{"": first, "web": second} {
				if err := r.AckReader(ctx, b.id, reader, ch, id); err != nil {
					t.Fatal(err)
				}
			}
			r.restart()
			for reader, want := range map[string]string{"": first, "web": second, "queue": ""} {
				if got, err := r.ReaderCursor(ctx, b.id, reader, ch); err != nil || got != want {
					t.Errorf("the cursor of %q is %q, %v; want %q", reader, got, err, want)
				}
			}
			queue = r.attach(b, hub.Attachment{Reader: "queue", Replay: true})
			if got := r.texts(queue, 2); !slices.Equal(got, []string{"again " + note(1), "again " + note(2)}) {
				t.Errorf("the queue is replayed %v", got)
			}
			web = r.attach(b, hub.Attachment{Reader: "web", Replay: true})
			r.post(a, ch, "board.note", note(3), directed(b))
			if got := r.texts(web, 1); !slices.Equal(got, []string{note(3)}) {
				t.Errorf("web, which had acked, reads %v", got)
			}
			r.Unbind(web, b.id)
			r.Unbind(queue, b.id)
			r.end(ch, "done")
		}
	})
	runs(t, "of one reader the last endpoint counts, and the others stay", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		web := r.attach(b, hub.Attachment{Reader: "web"})
		one := r.attach(b, hub.Attachment{})
		two := r.attach(b, hub.Attachment{})
		r.post(a, ch, "board.note", note(1), directed(b))
		if got := r.texts(web, 1); got[0] != note(1) {
			t.Errorf("web reads %v", got)
		}
		if got := r.texts(two, 1); got[0] != note(1) {
			t.Errorf("the second reads %v", got)
		}
		one.Close()
		if n, err := one.Next(ctx); err == nil {
			t.Errorf("the replaced one reads %s", n.Envelope.Data)
		}
		if id, ok := r.Bound(b.id); !ok || id != two.ID() {
			t.Errorf("bound at %s", id)
		}
		r.Unbind(two, b.id)
		if _, ok := r.Bound(b.id); ok {
			t.Error("still bound")
		}
		r.post(a, ch, "board.note", note(2), directed(b))
		if got := r.texts(web, 1); got[0] != note(2) {
			t.Errorf("web reads %v", got)
		}
	})
	runs(t, "one that is full ends itself and no other", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		small, big := hub.NewInbox(1), r.attach(b, hub.Attachment{Reader: "big"})
		if err := r.Attach(ctx, b.id, small, hub.Attachment{Reader: "small"}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			r.post(a, ch, "board.note", note(i), directed(b))
		}
		if got := r.texts(big, 3); len(got) != 3 {
			t.Errorf("the big one reads %v", got)
		}
		r.texts(small, 1)
		if _, err := small.Next(ctx); fault.CodeOf(err) != fault.SlowReader {
			t.Errorf("the small one: %v", err)
		}
	})
	runs(t, "one identity reads at a bounded number of endpoints, under names that can be stored", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice") // with one reader
		for i := range 15 {
			r.attach(a, hub.Attachment{Reader: fmt.Sprint("r", i)})
		}
		err := r.Attach(ctx, a.id, hub.NewInbox(0), hub.Attachment{Reader: "more"})
		if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "limits.endpoints") {
			t.Errorf("the seventeenth: %v", err)
		}
		r.attach(a, hub.Attachment{Reader: "r3"})
		for _, name := range []string{"a/b", "Web", "ü", strings.Repeat("x", 65)} {
			if err := r.Attach(ctx, a.id, hub.NewInbox(0), hub.Attachment{Reader: name}); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", name, err)
			}
			if err := r.AckReader(ctx, a.id, name, "c", "e"); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("ack of %q: %v", name, err)
			}
		}
	})
	runs(t, "a dialect's reader is replayed the channels that only its dialect shows", withTopics, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.room(r.home("agh", "w"), a, b)
		r.post(a, ch, "club.note", note(1))
		r.restart()
		clubs := r.attach(b, hub.Attachment{Reader: "clubs", Dialect: "clubs", Replay: true})
		if got := r.texts(clubs, 1); got[0] != "again "+note(1) {
			t.Errorf("replayed %v", got)
		}
	})
	runs(t, "unregistering removes every reader's cursor", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		id := r.post(a, ch, "board.note", note(1), directed(b))
		for _, reader := range []string{"", "web"} {
			if err := r.AckReader(ctx, b.id, reader, ch, id); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Unregister(ctx, b.id); err != nil {
			t.Fatal(err)
		}
		for _, reader := range []string{"", "web"} {
			if got, err := r.ReaderCursor(ctx, b.id, reader, ch); err != nil || got != "" {
				t.Errorf("the cursor of %q is %q, %v", reader, got, err)
			}
		}
	})
}
