package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// board is an adapter unlike AG2's: it opens at once, delivers an envelope only to
// those that it is directed to while everyone may read it, counts notes, keeps
// receipts in its side log, takes names across the hub, and sets reminders.
type board struct{ notes int }

func (board) Manifest() channel.Manifest {
	return channel.Manifest{Type: "board", Version: 1, Participants: channel.Bounds{Min: 1}, KnobsSchema: []byte(`{}`), DefaultView: "full_transcript"}
}
func (board) Opening() channel.Opening                         { return channel.AtOnce }
func (board) ValidateCreate(*channel.Metadata) error           { return nil }
func (board) Initial(*channel.Metadata) (channel.State, error) { return board{}, nil }
func (board) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

func (board) ValidateSend(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) error {
	if e.Type == "board.bad" {
		return fault.New(fault.Protocol, "not on this board")
	}
	return nil
}

func (board) Fold(s channel.State, e *envelope.Envelope) channel.State {
	if b, ok := s.(board); ok && e.Type == "board.note" {
		return board{b.notes + 1}
	}
	return s
}

func (board) OnAccepted(_ *channel.Metadata, _ channel.State, e *envelope.Envelope) channel.Effects {
	switch e.Type {
	case "board.note":
		return channel.Effects{Append: []channel.Draft{{Where: channel.Side, Envelope: envelope.Envelope{
			Type: "board.receipt", Causation: e.ID, Data: []byte(`{}`),
		}}}}
	case "board.take":
		return channel.Effects{Claims: []string{"thing"}}
	case "board.give":
		return channel.Effects{Release: []string{"thing"}}
	case "board.remind":
		return channel.Effects{Deadlines: []channel.Deadline{{Name: "egg", At: e.CreatedAt.Add(time.Minute)}}}
	case "board.echo":
		return channel.Effects{Append: []channel.Draft{{Envelope: envelope.Envelope{Type: "board.echoed", Data: e.Data}}}}
	}
	return channel.Effects{}
}

func (board) OnDeadline(_ *channel.Metadata, _ channel.State, name string, _ time.Time) channel.Effects {
	return channel.Effects{Append: []channel.Draft{{Envelope: envelope.Envelope{Type: "board.reminder", Data: fmt.Appendf(nil, `{"name":%q}`, name)}}}}
}

func (board) Recipients(_ *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope) []string {
	if e.To == "" {
		return nil
	}
	return []string{e.To}
}

func (board) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}

func (board) Codec() channel.Codec {
	return channel.Codec{
		Version: 1,
		Encode:  func(s channel.State) ([]byte, error) { return json.Marshal(s.(board).notes) },
		Decode: func(data []byte) (channel.State, error) {
			var n int
			err := json.Unmarshal(data, &n)
			return board{n}, err
		},
	}
}

var withBoard = hub.Options{Adapters: append(adapter.All(), board{})}

func directed(to *agent) func(*envelope.Envelope) {
	return func(e *envelope.Envelope) { e.To = to.id }
}

func TestOtherDialectsFit(t *testing.T) {
	t.Parallel()
	runs(t, "a channel opens at once, and with its first envelope, in one batch", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		if m := r.channel(ch); m.State != channel.Active || len(m.PendingAcks) != 0 || len(r.log(ch)) != 0 {
			t.Errorf("%v, waits for %v, log %v", m.State, m.PendingAcks, r.types(ch))
		}
		before := r.engine.Stats().Batches
		opened, id, err := r.AdmitOpening(ctx, hub.Opening{Creator: a.id, Type: "board", Participants: []string{b.id}},
			&envelope.Envelope{Type: "board.note", Data: []byte(`{"n":1}`), To: b.id})
		if err != nil {
			t.Fatal(err)
		}
		if n := r.engine.Stats().Batches - before; n != 1 {
			t.Errorf("%d batches", n)
		}
		log := r.log(opened.ID)
		if len(log) != 1 || log[0].ID != id || log[0].Seq != 1 || log[0].Sender != a.id || r.state(opened.ID) != "1" {
			t.Errorf("%+v, state %s", log, r.state(opened.ID))
		}
		if got := b.received(); !slices.Equal(got, []string{"board.note"}) {
			t.Errorf("bob was told %v", got)
		}
		if _, _, err := r.AdmitOpening(ctx, hub.Opening{Creator: a.id, Type: "board", Participants: []string{b.id}},
			&envelope.Envelope{Type: "board.bad", Data: []byte(`{}`)}); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("a refused first envelope: %v", err)
		}
		if n := len(r.listed()); n != 2 {
			t.Errorf("%d channels: the refused opening left one", n)
		}
	})
	runs(t, "who is told differs from who may read", withBoard, func(t *testing.T, r *rig) {
		a, b, c, d := r.agent("alice"), r.agent("bob"), r.agent("carol"), r.agent("dan")
		ch := r.open("board", a, b, c)
		r.post(a, ch, "board.note", `{"for":"bob"}`, directed(b))
		if len(b.received()) != 1 || len(c.received()) != 0 {
			t.Errorf("bob was told %v, carol %v", b.received(), c.received())
		}
		f := r.follow(ch, hub.FollowOptions{As: c.id})
		defer f.Close()
		if got := r.read(f); len(got) != 1 {
			t.Errorf("carol reads %v", got)
		}
		if _, err := r.Follow(ctx, ch, hub.FollowOptions{As: d.id}); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("dan: %v", err)
		}
	})
	runs(t, "a side log is kept beside the history, in the same batch", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		id := r.post(a, ch, "board.note", `{}`)
		for range 2 {
			side, err := r.Side(ctx, ch)
			if err != nil || len(side) != 1 || side[0].Type != "board.receipt" || side[0].Causation != id {
				t.Errorf("side log: %+v, %v", side, err)
			}
			if got := r.types(ch); !slices.Equal(got, []string{"board.note"}) {
				t.Errorf("history %v", got)
			}
			r.restart()
		}
	})
	runs(t, "what an envelope causes is one batch with it", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		before := r.engine.Stats().Batches
		r.post(a, ch, "board.echo", `{"n":1}`)
		if n := r.engine.Stats().Batches - before; n != 1 {
			t.Errorf("%d batches", n)
		}
		log := r.log(ch)
		if len(log) != 2 || log[1].Type != "board.echoed" || string(log[1].Data) != `{"n":1}` || !hub.HubMade(log[1]) || hub.HubMade(log[0]) {
			t.Errorf("%+v", log)
		}
	})
	stored(t, "a claim refuses the next in its home, until it is given up or its channel deleted", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "session")
		one, two := r.openWith("board", in(home), a, b), r.openWith("board", in(home), a, b)
		r.post(a, one, "board.take", `{}`)
		before := r.types(two)
		_, err := r.tryPost(a, two, "board.take", `{}`)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Code != fault.Conflict || refusal.Reason != fault.Taken || refusal.Details[fault.DetailChannel] != one {
			t.Errorf("got %v", err)
		}
		for _, elsewhere := range []string{r.open("board", a, b), r.open("board", a, b), r.openWith("board", in(r.home("hpd", "other")), a, b)} {
			r.post(a, elsewhere, "board.take", `{}`)
			if _, err := r.tryPost(a, elsewhere, "board.take", `{}`); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("twice in one channel: %v", err)
			}
		}
		if got := r.types(two); !slices.Equal(got, before) {
			t.Errorf("logged %v", got)
		}
		r.post(a, one, "board.give", `{}`)
		r.post(a, two, "board.take", `{}`)
		if err := r.Delete(ctx, two, theOperator); err != nil {
			t.Fatal(err)
		}
		r.post(a, one, "board.take", `{}`)
	})
	runs(t, "a deadline of the adapter's comes due, also after a restart", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("board", a, b)
		r.post(a, ch, "board.remind", `{}`)
		r.pass(50 * time.Second)
		if got := r.types(ch); len(got) != 1 {
			t.Errorf("too early: %v", got)
		}
		r.restart()
		r.pass(30 * time.Second)
		if got := r.types(ch); !slices.Equal(got, []string{"board.remind", "board.reminder"}) || string(r.last(ch).Data) != `{"name":"egg"}` {
			t.Errorf("%v %s", got, r.last(ch).Data)
		}
		r.pass(10 * time.Minute)
		if got := r.types(ch); len(got) != 2 {
			t.Errorf("again: %v", got)
		}
	})
	runs(t, "channels are listed by label, in pages", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		var red []string
		for i := range 7 {
			labels := map[string]string{"team": "red", "n": fmt.Sprint(i)}
			if i%2 == 1 {
				labels["team"] = "blue"
			}
			id := r.openWith("board", func(o *hub.Opening) { o.Labels = labels }, a, b)
			if i%2 == 0 {
				red = append(red, id)
			}
		}
		var got []string
		after := ""
		for pages := 0; ; pages++ {
			list, next, err := r.Channels(ctx, hub.ListOptions{Label: []hub.Label{{Key: "team", Value: "red"}}, After: after, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				got = append(got, m.ID)
			}
			if after = next; next == "" {
				if pages != 1 {
					t.Errorf("%d pages", pages+1)
				}
				break
			}
		}
		if !slices.Equal(got, red) {
			t.Errorf("got %v, want %v", got, red)
		}
		one, _, err := r.Channels(ctx, hub.ListOptions{Label: []hub.Label{{Key: "team", Value: "red"}, {Key: "n", Value: "2"}}})
		if err != nil || len(one) != 1 || one[0].ID != red[1] {
			t.Errorf("both labels: %v %v", one, err)
		}
		newest, _, err := r.Channels(ctx, hub.ListOptions{Newest: true, Limit: 1})
		if err != nil || newest[0].ID != red[3] {
			t.Errorf("newest: %v %v", newest, err)
		}
	})
	runs(t, "one that cannot be folded is quarantined, and the hub goes on", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		bad := r.open("board", a, b)
		good := r.open("conversation", a, b)
		r.restart(func(o *hub.Options) { o.Adapters = append(adapter.All(), brittle{}) })
		if _, err := r.tryPost(a, bad, "board.note", `{}`); err == nil || !strings.Contains(err.Error(), "quarantined") {
			t.Errorf("got %v", err)
		}
		if q := r.Quarantined(); len(q) != 1 || q[bad] == nil {
			t.Errorf("quarantined: %v", q)
		}
		if m := r.channel(bad); m.State != channel.Active {
			t.Errorf("its metadata reads %v", m.State)
		}
		r.say(a, good, "unharmed")
	})
}

// brittle is a board that can no longer fold its channels.
type brittle struct{ board }

func (brittle) Initial(*channel.Metadata) (channel.State, error) {
	return nil, fault.New(fault.Protocol, "knobs of an older age")
}
