package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// round is a workflow in the middle of b's round, with a supervisor.
type round struct {
	*rig
	channel string
	b, s    *agent
}

type answer struct {
	id  string
	err error
}

func midRound(r *rig) *round { return r.inRound(r.agent("a"), r.agent("b"), r.agent("s"), "") }

// inRound opens a workflow that s supervises, and lets a speak, so that it is b's
// turn; more may be added to its knobs.
func (r *rig) inRound(a, b, s *agent, more string) *round {
	ch := r.openWith("workflow", knobs(fmt.Sprintf(
		`{%s"supervisors":[%q],"graph":{"initial_speaker":%q,"transitions":[],"default_target":{"name":"agent","args":{"agent_id":%q}}}}`,
		more, s.id, a.id, b.id)), a, b, s)
	r.say(a, ch, "go")
	r.settle()
	r.ear.clear()
	return &round{rig: r, channel: ch, b: b, s: s}
}

// word posts a supervisor's text, which waits.
func (r *round) word(text, key string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		id, err := r.Post(context.Background(), &envelope.Envelope{
			Channel: r.channel, Sender: r.s.id, Type: envelope.TypeText, Key: key, Data: fmt.Appendf(nil, `{"text":%q}`, text),
		}, nil)
		out <- answer{id, err}
	}()
	r.settle()
	return out
}

func (r *round) packet(ctx context.Context) (string, error) {
	return r.Post(ctx, &envelope.Envelope{Channel: r.channel, Sender: r.b.id, Type: envelope.TypePacket, Data: []byte(`{"body":"done"}`)}, nil)
}

// tail returns what was said since the round began: the size of each text, then the
// packet.
func (r *round) tail() (said []string) {
	for _, e := range r.log(r.channel) {
		switch {
		case e.Sender == r.s.id && e.Type == envelope.TypeText:
			said = append(said, string(e.Data[:min(len(e.Data), 16)]))
		case e.Type == envelope.TypePacket:
			said = append(said, "packet")
		}
	}
	return said
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A supervisor's connection breaks, and its client resends the waiting text.
func TestHeldWordSentAgain(t *testing.T) {
	t.Parallel()
	runs(t, "the same", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		first, again, other := r.word("stop", "k"), r.word("stop", "k"), r.word("now", "")
		if _, err := r.packet(t.Context()); err != nil {
			t.Fatal(err)
		}
		x, y, z := <-first, <-again, <-other
		if x.err != nil || x != y || z.err != nil || z.id == x.id {
			t.Errorf("answered with %v, %v and %v", x, y, z)
		}
		same(t, r.tail(), []string{`{"text":"stop"}`, `{"text":"now"}`, "packet"})
		// And once it is stored.
		if w := <-r.word("stop", "k"); w != x {
			t.Errorf("answered with %v, at first with %v", w, x)
		}
	})
	runs(t, "another under the same key", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		first := r.word("stop", "k")
		if w := <-r.word("go on", "k"); fault.CodeOf(w.err) != fault.Protocol || !strings.Contains(w.err.Error(), "other content") {
			t.Errorf("answered with %v", w)
		}
		if _, err := r.packet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w := <-first; w.err != nil {
			t.Error(w.err)
		}
		same(t, r.tail(), []string{`{"text":"stop"}`, "packet"})
	})
}

// A text that does not fit a batch with the packet is refused before it waits.
func TestHeldWordsFitTheBatch(t *testing.T) {
	t.Parallel()
	runs(t, "six large ones", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		var words []<-chan answer
		for i := range 6 {
			words = append(words, r.word(fmt.Sprint(i, strings.Repeat(" ", 900_000)), ""))
		}
		for _, w := range words[3:] {
			if w := <-w; fault.CodeOf(w.err) != fault.Unavailable {
				t.Errorf("answered with %v", w)
			}
		}
		if _, err := r.packet(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range words[:3] {
			if w := <-w; w.err != nil {
				t.Error(w.err)
			}
		}
		same(t, r.tail(), []string{`{"text":"0      `, `{"text":"1      `, `{"text":"2      `, "packet"})
	})
	runs(t, "too many", hub.Options{Limits: hub.Limits{Held: 1}}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		first := r.word("one", "")
		if w := <-r.word("two", ""); fault.CodeOf(w.err) != fault.Unavailable || !strings.Contains(w.err.Error(), "limits.held") {
			t.Errorf("answered with %v", w)
		}
		if _, err := r.packet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w := <-first; w.err != nil {
			t.Error(w.err)
		}
	})
}

// Waiting texts survive a packet that is not stored.
func TestHeldWordsOutliveAPacket(t *testing.T) {
	t.Parallel()
	runs(t, "whose sender gave up", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		word := r.word("stop", "")
		gone, stop := context.WithCancel(t.Context())
		stop()
		if _, err := r.packet(gone); err == nil {
			t.Fatal("it was stored")
		}
		if _, err := r.packet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w := <-word; w.err != nil {
			t.Error(w.err)
		}
		same(t, r.tail(), []string{`{"text":"stop"}`, "packet"})
	})
	runs(t, "that failed on the disk", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		word := r.word("stop", "")
		r.engine.Faults().FailWrite()
		if _, err := r.packet(t.Context()); fault.CodeOf(err) != fault.Unavailable {
			t.Fatal(err)
		}
		if w := <-word; fault.CodeOf(w.err) != fault.Unavailable {
			t.Errorf("answered with %v", w)
		}
	})
	runs(t, "behind something that failed on the disk", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		word := r.word("stop", "")
		r.engine.Faults().FailWrite()
		_, err := r.Post(t.Context(), &envelope.Envelope{Channel: r.channel, Sender: r.b.id, Type: "app.note", Data: []byte(`{}`)}, nil)
		if fault.CodeOf(err) != fault.Unavailable {
			t.Fatal(err)
		}
		if w := <-word; fault.CodeOf(w.err) != fault.Unavailable {
			t.Errorf("answered with %v", w)
		}
	})
}

// A text that waited in vain is refused like any other post, and everyone is
// notified.
func TestHeldWordExpires(t *testing.T) {
	t.Parallel()
	runs(t, "listeners and counters", hub.Options{}, func(t *testing.T, rig *rig) {
		r := midRound(rig)
		word := r.word("stop", "")
		r.pass(31 * time.Second)
		w := <-word
		if fault.CodeOf(w.err) != fault.Protocol || !strings.Contains(w.err.Error(), "expects") {
			t.Errorf("answered with %v", w)
		}
		same(t, r.ear.heard(), []string{fmt.Sprintf("rejected %s: %v", envelope.TypeText, w.err)})
		same(t, r.Stats().Refused, map[fault.Code]int64{fault.Protocol: 1})
	})
}
