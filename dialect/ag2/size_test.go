package ag2_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/ag2"
)

var tooLong = regexp.MustCompile(`make event_data (\d+) bytes shorter`)

// excess returns how many bytes a refusal says to leave out.
func excess(t *testing.T, err error) int {
	t.Helper()
	var f *failure
	if !errors.As(err, &f) || f.Code != "error" {
		t.Fatalf("got %v", err)
	}
	found := tooLong.FindStringSubmatch(f.Message)
	if found == nil {
		t.Fatalf("%s does not say how much is too much", f.Message)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is accepted can be delivered and read; an envelope that could never be is
// refused, although the frame that carries it is not too large, and nothing is
// stored.
func TestWhatFitsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		more object
		size int // of more, in the received frame
	}{
		"plain":         {object{}, 0},
		"with a key":    {object{"idempotency_key": strings.Repeat("\x01", 100)}, 640},
		"with a name":   {object{"event_type": strings.Repeat("é", 200)}, 400},
		"with the rest": {object{"task_id": "t", "causation_id": "c", "depth": 4, "ttl_seconds": 86400, "priority": "urgent"}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{})
			p, q := r.dial(), r.dial()
			alice, bob := p.register("alice"), q.register("bob")
			ch := p.open("conversation", alice, map[string]*peer{bob: q})
			q.drain()
			try := func(length int) error {
				e := env(ch, alice, "ag2.msg.text", object{"text": strings.Repeat("x", length)}, tc.more)
				_, err := p.try("post_envelope", object{"envelope": e})
				return err
			}
			over := 1<<20 - 450 - tc.size
			most := over - excess(t, try(over))
			if got := excess(t, try(most+1)); got != 1 {
				t.Errorf("one byte too much is refused for %d", got)
			}
			length, err := r.hub.Length(t.Context(), ch)
			if err != nil || length != 3 {
				t.Fatalf("what was refused is in the log: %d, %v", length, err)
			}
			if err := try(most); err != nil {
				t.Fatal(err)
			}
			if got := q.notified().Envelope["event_data"].(object)["text"].(string); len(got) != most {
				t.Errorf("%d of %d bytes are delivered", len(got), most)
			}
			var log []object
			if q.call("read_wal", object{"channel_id": ch, "since": 3}, &log); len(log) != 1 {
				t.Errorf("read %v", log)
			}
			p.say(ch, alice, "the connection goes on")
		})
	}
	t.Run("sent without a request", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, options{})
		p, q := r.dial(), r.dial()
		alice, bob := p.register("alice"), q.register("bob")
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		p.send(fmt.Sprintf(`{"kind":"send","envelope":{"channel_id":%q,"sender_id":%q,"audience":null,"event_type":"ag2.msg.text","event_data":{"text":"%s"}}}`,
			ch, alice, strings.Repeat("x", 1<<20-300)))
		p.quiet()
		if n, err := r.hub.Length(t.Context(), ch); err != nil || n != 3 || r.server.Stats().Malformed != 1 {
			t.Errorf("%d envelopes, %d frames dropped, %v", n, r.server.Stats().Malformed, err)
		}
	})
}

// A channel that could not be sent to its participants is refused at once; the
// largest accepted one opens, and can be read.
func TestOpeningThatFitsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	params := func(length int) object {
		return object{
			"creator_id": alice, "manifest_type": "conversation", "participants": []string{bob},
			"knobs": object{"x": strings.Repeat("x", length)}, "labels": object{"team": "red"}, "intent": "talk",
		}
	}
	_, err := p.try("create_channel", params(1<<20-1000))
	var f *failure
	if !errors.As(err, &f) || f.Code != "error" || !strings.Contains(f.Message, "make knobs ") {
		t.Fatalf("got %v", err)
	}
	var over int
	if _, err := fmt.Sscanf(f.Message[strings.Index(f.Message, "make knobs "):], "make knobs %d bytes shorter", &over); err != nil {
		t.Fatal(err)
	}
	if _, err := p.try("create_channel", params(1<<20-1000-over+1)); err == nil {
		t.Error("one byte too much is accepted")
	}
	opening := p.request("create_channel", params(1<<20-1000-over))
	q.ack(q.notifiedOf("ag2.channel.invite"))
	if _, err := p.response(opening); err != nil {
		t.Fatal(err)
	}
	var list []object
	if q.call("list_channels", object{"limit": 1}, &list); len(list) != 1 || list[0]["state"] != "active" {
		t.Errorf("listed %d", len(list))
	}
}

// From 70 % of what a client can read at once there is a warning with the size.
func TestWarnings(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	warned := func() string {
		m, err := r.hub.Channel(t.Context(), ch)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.server.ChannelWarnings(t.Context(), m)
		if err != nil || len(list) > 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return strings.Join(list, "")
	}
	// logged returns how many bytes a full read takes.
	logged := func() int {
		raw, err := q.try("read_wal", object{"channel_id": ch})
		if err != nil {
			t.Fatal(err)
		}
		return len(raw) - 1 // the closing bracket
	}
	filler := func(length int) { p.post(ch, alice, "app.note", object{"text": strings.Repeat("x", length)}) }
	if got := warned(); got != "" {
		t.Errorf("a short log: %q", got)
	}
	before := logged()
	filler(0)
	empty := logged() - before
	filler(ag2.LongLog - logged() - empty - 1)
	if got, size := warned(), logged(); got != "" || size != ag2.LongLog-1 || r.server.Stats().LongLogs != 0 {
		t.Errorf("at %d of %d: %q", size, ag2.LongLog, got)
	}
	p.post(ch, alice, "x", object{})
	if got, want := warned(), "AG2 clients can read at once; from there on they read it without task events"; !strings.Contains(got, want) {
		t.Errorf("at %d: %q, want %q", logged(), got, want)
	}
	logged()
	if r.server.Stats().LongLogs == 0 {
		t.Error("the read that made it long is not counted")
	}
	filler(400_000)
	if got, want := warned(), "more than the 1048064 that AG2 clients can read at once: they read it without task events"; !strings.Contains(got, want) {
		t.Errorf("over the limit: %q, want %q", got, want)
	}
	for range 3 {
		p.post(ch, alice, "ag2.msg.text", object{"text": strings.Repeat("x", 400_000)})
	}
	if got, want := warned(), "they cannot take turns here any more; close the channel and open another"; !strings.Contains(got, want) {
		t.Errorf("unreadable: %q, want %q", got, want)
	}
	m, err := r.hub.Channel(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	room, manifest := *m, *m.Manifest
	manifest.Type = "room"
	room.Manifest = &manifest
	if list, err := r.server.ChannelWarnings(t.Context(), &room); err != nil || list != nil {
		t.Errorf("a channel that AG2's clients do not fold: %v, %v", list, err)
	}
}
