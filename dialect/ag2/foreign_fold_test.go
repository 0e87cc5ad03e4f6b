package ag2_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// countingHub counts the envelopes that are read from logs.
type countingHub struct {
	*hub.Hub
	read atomic.Int64
}

func (h *countingHub) Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error] {
	return func(yield func(*envelope.Envelope, error) bool) {
		for e, err := range h.Hub.Log(ctx, channelID, from, to) {
			h.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// A query of an AG2 client about a channel of another dialect reads only what is
// new in its log, or a part near the requested position, however long the log is.
func TestForeignLogIsNotReadAgain(t *testing.T) {
	t.Parallel()
	const long, stride = 4500, 128
	counting := &countingHub{}
	d := newDialects(t, options{wrap: func(h *hub.Hub) ag2.Hub { counting.Hub = h; return counting }}, hpd.Config{})
	p := d.dial()
	bob := p.register("bob")
	session := d.join("tug", "tug.s01")
	d.join("bob", "bob.s01")
	d.tell(session, "first", nil)
	id := p.notifiedOf("ag2.msg.text").Envelope["channel_id"].(string)
	tug, _ := d.rig.hub.FindAgent("tug")
	p.hangUp() // so that nothing is delivered in the meantime
	for n := range long {
		_, err := d.rig.hub.Say(t.Context(), hub.Saying{
			Channel: id, Sender: tug, Message: message.Envelope{Content: fmt.Sprint("text ", n)}, Origin: envelope.Origin{Dialect: "test"},
		}, nil).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	d.tell(session, "bob?", object{"to": "bob.s01", "work_id": "work_1"})
	p = d.dial()
	p.hello("bob", "")
	var asked notice
	for asked = p.notifiedOf("ag2.msg.text"); asked.Envelope["event_data"].(object)["text"] != "bob?"; asked = p.notifiedOf("ag2.msg.text") {
	}
	cause := asked.Envelope["envelope_id"].(string)
	if !p.canSend(id, bob) {
		t.Error("bob may not answer what asks it")
	}
	var newest []entry
	p.call("read_wal", object{"channel_id": id, "since": -1}, &newest)
	p.pending(bob) // this reads the room, too
	var silent []entry
	p.call("read_wal", object{"channel_id": id, "since": -9, "until": -8}, &silent)

	read := func(what string, most int64, do func()) {
		before := counting.read.Load()
		do()
		if got := counting.read.Load() - before; got > most {
			t.Errorf("%s reads %d envelopes of a log of %d; want %d at most", what, got, long, most)
		}
	}
	read("can_send", 0, func() {
		if !p.canSend(id, bob) {
			t.Error("bob may not answer what asks it")
		}
	})
	read("pending_turns_for", 0, func() {
		if diff := cmp.Diff([]string{id + " " + cause}, p.pending(bob)); diff != "" {
			t.Error(diff)
		}
	})
	slices := []struct {
		since, until int
		want         []string
	}{
		{-2, 0, []string{fmt.Sprint("text ", long-1), "bob?"}},
		{long/2 + 4, long/2 + 5, []string{fmt.Sprint("text ", long/2)}},
		{-long, -long + 1, []string{"text 1"}},
		{3, 5, []string{"first", "text 0"}},
		{long + 5, 0, []string{}},
	}
	for _, row := range slices {
		read(fmt.Sprintf("read_wal from %d", row.since), stride, func() {
			var list []entry
			params := object{"channel_id": id, "since": row.since}
			if row.until != 0 {
				params["until"] = row.until
			}
			p.call("read_wal", params, &list)
			texts := []string{}
			for _, e := range list {
				texts = append(texts, e.Data["text"].(string))
			}
			if diff := cmp.Diff(row.want, texts); diff != "" {
				t.Errorf("from %d until %d: %s", row.since, row.until, diff)
			}
		})
	}
	read("post_envelope", 2*nearby, func() {
		p.post(id, bob, "ag2.msg.text", object{"text": "here"}, object{"causation_id": cause})
	})
	read("find_envelope_by_causation", 2*nearby, func() {
		var found entry
		p.call("find_envelope_by_causation", object{"channel_id": id, "sender_id": bob, "causation_id": cause}, &found)
		if found.Data["text"] != "here" {
			t.Errorf("found %v", found)
		}
	})
	read("can_send after the answer", 2, func() {
		if p.canSend(id, bob) {
			t.Error("bob may answer twice")
		}
	})
	read("an answer to what asks nobody", 2*nearby, func() {
		if _, err := p.try("post_envelope", object{"envelope": env(id, bob, "ag2.msg.text", object{"text": "x"}, object{"causation_id": newest[0].ID})}); err != nil {
			t.Errorf("what asked is answered again: %v", err) // as the first time
		}
		if _, err := p.try("post_envelope", object{"envelope": env(id, bob, "ag2.msg.text", object{"text": "x"}, object{"causation_id": silent[0].ID})}); err == nil {
			t.Error("a text that asks nobody is answered")
		}
	})
}

// nearby is how many envelopes around one are read to find how they are shown.
const nearby = 9
