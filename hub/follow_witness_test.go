package hub_test

import (
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// witness is a ledger that counts calls without a state or members.
type witness struct {
	ledger
	asked, bare *atomic.Int64
}

func (w witness) saw(s channel.State, in channel.Members) {
	w.asked.Add(1)
	if s == nil || in.Count() == 0 {
		w.bare.Add(1)
	}
}

func (w witness) Recipients(m *channel.Metadata, s channel.State, in channel.Members, e *envelope.Envelope) []string {
	w.saw(s, in)
	return w.ledger.Recipients(m, s, in, e)
}

func (w witness) Visible(m *channel.Metadata, s channel.State, in channel.Members, e *envelope.Envelope, agent string) bool {
	w.saw(s, in)
	return w.ledger.Visible(m, s, in, e, agent)
}

// Every decision about what an agent sees or receives gets state and members: when
// posting, showing live, following, replaying and viewing, in a channel that is
// loaded, that is not loaded, and that has ended.
func TestReadersAreJudgedByStateAndMembers(t *testing.T) {
	t.Parallel()
	w := witness{asked: &atomic.Int64{}, bare: &atomic.Int64{}}
	stored(t, "everywhere", hub.Options{Adapters: append(adapter.All(), w)}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.openWith("ledger", in(r.home("hpd", "s")), a, b)
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r.post(a, ch, "ledger.one", `{}`)
		if _, err := r.side(a, ch, "ledger.note"); err != nil {
			t.Fatal(err)
		}
		if err := r.SendLive(ctx, &envelope.Envelope{Channel: ch, Sender: a.id, Type: "ledger.live", Data: []byte(`{}`)}, nil); err != nil {
			t.Fatal(err)
		}
		asked := func(what string, before int64) {
			t.Helper()
			if w.asked.Load() == before {
				t.Errorf("%s asks nobody", what)
			}
		}
		reads := func(end bool) {
			t.Helper()
			before := w.asked.Load()
			f := r.follow(ch, hub.FollowOptions{As: b.id})
			if _, err := f.Next(ctx); err != nil {
				t.Error(err)
			}
			f.Close()
			asked("following", before)
			before = w.asked.Load()
			wide, err := r.FollowAll(ctx, hub.WideOptions{As: b.id, After: now})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := wide.Next(ctx); err != nil {
				t.Error(err)
			}
			wide.Close()
			asked("following everything", before)
			before = w.asked.Load()
			view, err := r.Viewer(ctx, ch, b.id)
			if err != nil {
				t.Fatal(err)
			}
			if sees, err := view(r.log(ch)[0]); err != nil || !sees {
				t.Errorf("bob sees %v, %v", sees, err)
			}
			asked("viewing", before)
			if end {
				return
			}
			before = w.asked.Load()
			inbox := hub.NewInbox(0)
			if err := r.Attach(ctx, b.id, inbox, hub.Attachment{Reader: "late", Replay: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := inbox.Next(ctx); err != nil {
				t.Error(err)
			}
			r.Unbind(inbox, b.id)
			asked("replaying", before)
		}
		reads(false)
		r.Evict()
		reads(false)
		r.restart()
		reads(false)
		r.end(ch, "done")
		reads(true)
		r.restart()
		reads(true)
	})
	t.Cleanup(func() {
		if n := w.bare.Load(); n != 0 {
			t.Errorf("asked %d times without a state or members", n)
		}
	})
}
