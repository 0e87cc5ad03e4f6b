package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// texts returns envelopes of one sender, each with a key made from the prefix
// unless the prefix is empty.
func texts(a *agent, channelID, prefix string, said ...string) []*envelope.Envelope {
	var list []*envelope.Envelope
	for i, text := range said {
		e := &envelope.Envelope{Channel: channelID, Sender: a.id, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, text)}
		if prefix != "" {
			e.Key = fmt.Sprint(prefix, i)
		}
		list = append(list, e)
	}
	return list
}

func TestAdmitAll(t *testing.T) {
	t.Parallel()
	runs(t, "stores all in one batch, and tells everyone of each", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		b.clear()
		length, batches := len(r.log(ch)), r.engine.Stats().Batches
		p := r.AdmitAll(ctx, texts(a, ch, "", "one", "two", "three"), nil)
		last, err := p.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.engine.Stats().Batches - batches; n != 1 {
			t.Errorf("%d batches", n)
		}
		var ids []string
		var seqs []uint64
		for _, e := range r.log(ch)[length:] {
			ids, seqs = append(ids, e.ID), append(seqs, e.Seq)
		}
		if !slices.Equal(p.IDs(), ids) || !slices.Equal(p.Seqs(), seqs) || len(ids) != 3 || last != ids[2] {
			t.Errorf("answered %v %v %v, the log has %v %v", last, p.IDs(), p.Seqs(), ids, seqs)
		}
		if got := b.inbox(); len(got) != 3 || got[0].ID != ids[0] || got[2].ID != ids[2] {
			t.Errorf("bob was told %v", types(got))
		}
	})
	runs(t, "judges each against the state after the one before, and stores none if one is refused", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		ch := r.open("discussion", a, b, c)
		before, told := r.everything(), len(b.inbox())
		// After alice's first text it is another participant's turn.
		p := r.AdmitAll(ctx, texts(a, ch, "k", "mine", "mine again"), nil)
		if _, err := p.Wait(ctx); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, r.everything()); diff != "" {
			t.Error(diff)
		}
		if len(b.inbox()) != told {
			t.Error("bob was told of what is not stored")
		}
		// Nothing is left of the refused post: neither the keys nor the places.
		if _, err := r.AdmitAll(ctx, texts(a, ch, "k", "mine"), nil).Wait(ctx); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(r.ear.heard(), func(line string) bool { return strings.HasPrefix(line, "rejected ag2.msg.text") }) {
			t.Errorf("listeners heard %v", r.ear.heard())
		}
	})
	runs(t, "refuses what is no single post", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		before := r.everything()
		mixed := append(texts(a, ch, "", "x"), texts(b, ch, "", "y")...)
		elsewhere := append(texts(a, ch, "", "x"), texts(a, "elsewhere", "", "y")...)
		halfKeyed := append(texts(a, ch, "k", "x"), texts(a, ch, "", "y")...)
		sameKey := append(texts(a, ch, "k", "x"), texts(a, ch, "k", "y")...)
		many := texts(a, ch, "", slices.Repeat([]string{"x"}, hub.MaxAdmitAll+1)...)
		huge := texts(a, ch, "", slices.Repeat([]string{strings.Repeat("x", 1<<19)}, 9)...)
		for name, c := range map[string]struct {
			list []*envelope.Envelope
			code fault.Code
		}{
			"none": {nil, fault.Invalid}, "two senders": {mixed, fault.Invalid}, "two channels": {elsewhere, fault.Invalid},
			"a key on some": {halfKeyed, fault.Invalid}, "one key twice": {sameKey, fault.Invalid}, "too many": {many, fault.Invalid},
			"too large": {huge, fault.TooLarge}, "unknown channel": {texts(a, "nowhere", "", "x"), fault.NotFound},
		} {
			if _, err := r.AdmitAll(ctx, c.list, nil).Wait(ctx); fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(before, r.everything()); diff != "" {
			t.Error(diff)
		}
		if p := r.AdmitAll(ctx, many[1:], nil); true {
			if _, err := p.Wait(ctx); err != nil || len(p.IDs()) != hub.MaxAdmitAll {
				t.Errorf("%d: %v", len(p.IDs()), err)
			}
		}
	})
	runs(t, "a repeat with the same keys has the first one's answer", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		release := r.hold()
		first := r.AdmitAll(ctx, texts(a, ch, "k", "one", "two"), nil)
		early := r.AdmitAll(ctx, texts(a, ch, "k", "one", "two"), nil)
		var wg sync.WaitGroup
		for _, p := range []*hub.Pending{first, early} {
			wg.Go(func() {
				if _, err := p.Wait(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		r.settle()
		release()
		wg.Wait()
		r.restart()
		late := r.AdmitAll(ctx, texts(a, ch, "k", "one", "two"), nil)
		if _, err := late.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*hub.Pending{early, late} {
			if !slices.Equal(p.IDs(), first.IDs()) || !slices.Equal(p.Seqs(), first.Seqs()) {
				t.Errorf("%v %v, not %v %v", p.IDs(), p.Seqs(), first.IDs(), first.Seqs())
			}
		}
		length := len(r.log(ch))
		for name, said := range map[string][]string{"other content": {"one", "other"}, "one more": {"one", "two", "three"}} {
			if _, err := r.AdmitAll(ctx, texts(a, ch, "k", said...), nil).Wait(ctx); fault.CodeOf(err) != fault.Protocol {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(r.log(ch)) != length {
			t.Error("a repeat was stored")
		}
	})
	runs(t, "a repeat of what was lost is stored whole", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		release := r.hold()
		r.AdmitAll(ctx, texts(b, ch, "", "before"), nil)
		length := len(r.log(ch)) + 1
		r.settle() // the journal is busy with it, so the next posts wait
		first := r.AdmitAll(ctx, texts(a, ch, "k", "one", "two"), nil)
		again := r.AdmitAll(ctx, texts(a, ch, "k", "one", "two"), nil)
		r.engine.Faults().FailWrite()
		release()
		if _, err := first.Wait(ctx); err == nil {
			t.Error("what failed was acknowledged")
		}
		if _, err := again.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if log := r.log(ch)[length:]; len(log) != 2 || log[0].ID != again.IDs()[0] || log[1].ID != again.IDs()[1] {
			t.Errorf("%v", types(log))
		}
	})
}

// Posting together has the same effect as posting one by one, if all posts are
// accepted, and otherwise no effect.
func TestLawAdmitAllIsAllOrNone(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		w := newWorld(rt, r)
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			var list []*envelope.Envelope
			channelID, sender := w.anywhere(), w.anyone("sender").id
			for range rapid.IntRange(1, 4).Draw(rt, "size") {
				e := w.anything()
				e.Channel, e.Sender = channelID, sender
				list = append(list, e)
			}
			before, length := w.everything(), len(w.log(channelID))
			p := w.AdmitAll(ctx, list, nil)
			_, err := p.Wait(ctx)
			w.turmoil()
			log := w.log(channelID)[length:]
			if err != nil {
				if diff := cmp.Diff(before, w.everything()); diff != "" && fault.CodeOf(err) != fault.Unavailable {
					rt.Fatalf("refused with %v, yet:\n%s", err, diff)
				}
				continue
			}
			for i, e := range list {
				if e.ID != p.IDs()[i] || e.Seq != p.Seqs()[i] || !slices.ContainsFunc(log, func(got *envelope.Envelope) bool { return cmp.Equal(got, e) }) {
					rt.Fatalf("acknowledged %+v, not in the log", e)
				}
			}
		}
	})
}
