package external_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/external"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func normalized(t testing.TB, text string) string {
	t.Helper()
	m, err := external.Normalize(valuetest.Decode(t, text))
	if err != nil {
		return err.Error()
	}
	return valuetest.Write(m.Canonical())
}

// clock is a time that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func TestStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agent-message#88: idempotency key equal for My_Net and my-net", func(t *spec.T) {
		key, ok := external.Key("My_Net", "m-1")
		t.True(ok, "there is a key")
		t.Equal(key, "wp_agent_message_seen_2f23ae2c211bcc59c99883892989fa85")
		other, _ := external.Key("my-net", "m-1")
		t.Equal(other, key)
	})
	spec.Check(t, "agent-message#88: another id has another key", func(t *spec.T) {
		a, _ := external.Key("my-net", "m-1")
		b, _ := external.Key("my-net", "m-2")
		c, _ := external.Key("my-nets", "m-1")
		t.True(a != b && a != c && b != c, "%s %s %s differ", a, b, c)
		for _, id := range []string{"M-1", "m_1"} {
			other, _ := external.Key("my-net", id)
			t.True(a != other, "an id is not folded: %s", id)
		}
	})
	for _, ttl := range []int64{0, -1} {
		spec.Check(t, fmt.Sprintf("agent-message#89: a ttl of %d stores nothing", ttl), func(t *spec.T) {
			var c clock
			seen := external.NewSeen(c.now, 0)
			seen.Mark("net", "m", ttl)
			t.False(seen.Has("net", "m"), "it is seen")
			t.True(seen.MarkIfUnseen("net", "m", ttl), "it is unseen")
			t.True(seen.MarkIfUnseen("net", "m", ttl), "it is unseen still")
		})
	}
	spec.Check(t, "agent-message#89: an older mark stays", func(t *spec.T) {
		var c clock
		seen := external.NewSeen(c.now, 0)
		seen.Mark("net", "m", 60)
		seen.Mark("net", "m", 0)
		t.True(seen.Has("net", "m"), "it is seen")
	})
	spec.Check(t, "agent-message#89: 1 is enough", func(t *spec.T) {
		var c clock
		seen := external.NewSeen(c.now, 0)
		seen.Mark("net", "m", 1)
		t.True(seen.Has("net", "m"), "it is seen")
	})
	spec.Check(t, "agent-message#90: in an idempotency key", func(t *spec.T) {
		plain, _ := external.Key("net", "m")
		padded, _ := external.Key("net", "\u00a0m")
		trimmed, _ := external.Key("net", " m\t")
		t.True(plain != padded, "U+00A0 is part of the id")
		t.Equal(trimmed, plain)
		_, ok := external.Key("\u00a0", "m")
		t.True(ok, "U+00A0 is a provider")
	})
	spec.Check(t, "agent-message#90: in a text", func(t *spec.T) {
		m, err := external.Normalize(map[string]any{"text": " \u00a0hi\u00a0 ", "connector_id": "c", "external_provider": "p"})
		t.NoError(err)
		t.Equal(m.Text, "\u00a0hi\u00a0")
	})
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"connector_id":"c","external_provider":"p"}`: `{"text":"","connector_id":"c","external_provider":"p","external_conversation_id":null,"external_message_id":null,"sender_id":null,"from_self":false,"room_kind":null,"attachments":[],"raw":{}}`,
		`{"text":5,"connector_id":" My_Bot-1 ","external_provider":7,"external_conversation_id":" c ","external_message_id":1.5,"sender_id":true,"from_self":"no","room_kind":" group ","attachments":{"x":1,"y":[2]},"raw":{"k":[],"7":1}}`: `{"text":"5","connector_id":"my-bot-1","external_provider":"7","external_conversation_id":"c","external_message_id":"1.5","sender_id":"1","from_self":true,"room_kind":"group","attachments":[1,[2]],"raw":{"k":[]}}`,
		`{"connector_id":"c","external_provider":"p","sender_id":[1],"room_kind":"","attachments":"x","raw":["x"]}`:                                                                                                                          `{"text":"","connector_id":"c","external_provider":"p","external_conversation_id":null,"external_message_id":null,"sender_id":null,"from_self":false,"room_kind":null,"attachments":[],"raw":{}}`,
		`{}`:                   "connector_id must be a non-empty slug.",
		`[]`:                   "connector_id must be a non-empty slug.",
		`"hello"`:              "connector_id must be a non-empty slug.",
		`{"connector_id":"c"}`: "external_provider must be a non-empty slug.",
		`{"connector_id":"c","external_provider":"-p","room_kind":"x"}`: "external_provider must be a non-empty slug.",
		`{"connector_id":"_c","external_provider":"p"}`:                 "connector_id must be a non-empty slug.",
		`{"connector_id":"c c","external_provider":"p"}`:                "connector_id must be a non-empty slug.",
		`{"connector_id":"é","external_provider":"p"}`:                  "connector_id must be a non-empty slug.",
		`{"connector_id":"c/","external_provider":"p"}`:                 "connector_id must be a non-empty slug.",
		`{"connector_id":"c:","external_provider":"p"}`:                 "connector_id must be a non-empty slug.",
		`{"connector_id":"c{","external_provider":"p"}`:                 "connector_id must be a non-empty slug.",
		"{\"connector_id\":\"c`\",\"external_provider\":\"p\"}":         "connector_id must be a non-empty slug.",
		`{"connector_id":"c","external_provider":"p","room_kind":"DM"}`: "room_kind must be dm, group, channel, or null.",
		`{"connector_id":"c","external_provider":"p","room_kind":5}`:    "room_kind must be dm, group, channel, or null.",
	} {
		if got := normalized(t, in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	for _, kind := range []string{"dm", "group", "channel"} {
		m, err := external.Normalize(map[string]any{"connector_id": "az09-", "external_provider": "0", "room_kind": kind})
		if err != nil || m.RoomKind != kind || m.ConnectorID != "az09-" {
			t.Errorf("%s: %+v %v", kind, m, err)
		}
	}
}

func TestSlugsBeginWell(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"!c", ".", "-c", "\u00a0c", "~"} {
		if _, err := external.Normalize(map[string]any{"connector_id": bad, "external_provider": "p"}); !errors.Is(err, external.ErrConnector) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLimitsOfOne(t *testing.T) {
	t.Parallel()
	var c clock
	seen := external.NewSeen(c.now, 1)
	seen.Mark("p", "a", 60)
	seen.Mark("p", "b", 60)
	if seen.Has("p", "a") || !seen.Has("p", "b") {
		t.Error("more than one is seen")
	}
	s := external.NewSessions(1)
	s.Set("c", "a", "x", "1")
	s.Set("c", "b", "x", "2")
	if s.Get("c", "a", "x") != "" || s.Get("c", "b", "x") != "2" {
		t.Error("more than one session is held")
	}
}

func TestContexts(t *testing.T) {
	t.Parallel()
	m, err := external.Normalize(valuetest.Decode(t, `{"text":"hi","connector_id":"c","external_provider":"p","external_conversation_id":"v","external_message_id":"i","sender_id":"s","room_kind":"dm","attachments":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	rest := `"external_provider":"p","external_conversation_id":"v","external_message_id":"i","sender_id":"s","room_kind":"dm"}`
	for _, source := range []string{"channel", "bridge", "rest", "block", "peer-agent", "jsonrpc"} {
		if got, want := valuetest.Write(m.ClientContext(source, "")), `{"source":"`+source+`","connector_id":"c","client_name":"c",`+rest; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got, want := valuetest.Write(m.ClientContext("", "Desk")), `{"source":"","connector_id":"c","client_name":"Desk",`+rest; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	context := `"client_context":{"source":"channel","connector_id":"c","client_name":"c",` + rest + `}`
	if got, want := valuetest.Write(m.ChatInput("helper", "")), `{"agent":"helper","message":"hi","session_id":null,"attachments":[1],`+context; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := valuetest.Write(m.ChatInput("helper", "s1")), `{"agent":"helper","message":"hi","session_id":"s1","attachments":[1],`+context; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, blank := range [][2]string{{"", "m"}, {" \t", "m"}, {"p", ""}, {"p", " \n"}} {
		if key, ok := external.Key(blank[0], blank[1]); ok || key != "" {
			t.Errorf("%q: %s", blank, key)
		}
	}
	if got := external.SessionKey("My_Bot", " C1 ", "Helper_One"); got != "wp_agent_channel_session_47ce8de17b6282f492c6ce62d267c0e2" {
		t.Errorf("a session's key is %s", got)
	}
	if external.SessionKey("my-bot", "C1", "helper-one") == external.SessionKey("my-bot", " C1 ", "helper-one") {
		t.Error("a conversation's id is trimmed")
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	var c clock
	seen := external.NewSeen(c.now, 0)
	if seen.Has("net", "m") {
		t.Error("seen before it was")
	}
	seen.Mark("My_Net", " m ", 60)
	if !seen.Has("my-net", "m") || seen.Has("my-net", "n") || seen.Has("other", "m") {
		t.Error("a mark is not its message's")
	}
	c.advance(59 * time.Second)
	if !seen.Has("my-net", "m") || seen.MarkIfUnseen("my-net", "m", 60) {
		t.Error("a mark ends early")
	}
	c.advance(time.Second)
	if seen.Has("my-net", "m") {
		t.Error("a mark outlives its time, or asking prolonged it")
	}
	if !seen.MarkIfUnseen("my-net", "m", 1) || !seen.Has("my-net", "m") {
		t.Error("an expired mark is in the way")
	}
	seen.Mark("my-net", "m", 100)
	c.advance(99 * time.Second)
	if !seen.Has("my-net", "m") {
		t.Error("marking again does not prolong")
	}
	seen.Forget("My_Net", "m")
	seen.Forget("", "")
	if seen.Has("my-net", "m") {
		t.Error("forgotten, but seen")
	}
	seen.Mark("", "m", 60)
	seen.Mark("net", " ", 60)
	if seen.Has("", "m") || seen.Has("net", " ") || !seen.MarkIfUnseen("", "m", 60) || !seen.MarkIfUnseen("", "m", 60) {
		t.Error("what has no key is remembered")
	}
	seen.Mark("net", "forever", 1<<62)
	c.advance(24 * 365 * time.Hour)
	if !seen.Has("net", "forever") {
		t.Error("a very long mark ended")
	}
}

func TestSeenIsBounded(t *testing.T) {
	t.Parallel()
	var c clock
	seen := external.NewSeen(c.now, 20)
	for i := range 20 {
		seen.Mark("net", fmt.Sprint(i), int64(100+i))
	}
	count := func() int {
		n := 0
		for i := range 40 {
			if seen.Has("net", fmt.Sprint(i)) {
				n++
			}
		}
		return n
	}
	if count() != 20 {
		t.Fatalf("%d are held", count())
	}
	seen.Mark("net", "20", 1000)
	// A tenth and one are dropped, those that would expire first.
	if count() != 18 || seen.Has("net", "0") || seen.Has("net", "1") || seen.Has("net", "2") || !seen.Has("net", "3") || !seen.Has("net", "20") {
		t.Errorf("%d are held", count())
	}
	c.advance(110 * time.Second) // 3 … 10 have expired
	for i := 21; i < 24; i++ {
		seen.Mark("net", fmt.Sprint(i), 1000)
	}
	if count() != 13 || !seen.Has("net", "11") {
		t.Errorf("%d are held", count())
	}
}

// Of many concurrent callers, one gets true.
func TestMarkIfUnseenIsAtomic(t *testing.T) {
	t.Parallel()
	var c clock
	seen := external.NewSeen(c.now, 0)
	var first atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if seen.MarkIfUnseen("net", "m", 60) {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 {
		t.Errorf("%d were first", first.Load())
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := external.NewSessions(0)
	if s.Get("c", "v", "a") != "" {
		t.Error("a session before there is one")
	}
	s.Set("My_Bot", "v", "Helper", "s1")
	if s.Get("my-bot", "v", "helper") != "s1" || s.Get("my-bot", "V", "helper") != "" {
		t.Error("a session is not its conversation's")
	}
	s.Set("my-bot", "v", "helper", "s2")
	if s.Get("my-bot", "v", "helper") != "s2" {
		t.Error("a session is not replaced")
	}
	s.Delete("my-bot", "v", "helper")
	s.Delete("my-bot", "v", "helper")
	if s.Get("my-bot", "v", "helper") != "" {
		t.Error("a session is not deleted")
	}

	s = external.NewSessions(2)
	for _, v := range []string{"1", "2", "1", "3"} {
		s.Set("c", v, "a", "s"+v)
	}
	if s.Get("c", "1", "a") != "" || s.Get("c", "2", "a") != "s2" || s.Get("c", "3", "a") != "s3" {
		t.Error("not the oldest was forgotten")
	}
	s.Delete("c", "2", "a")
	s.Set("c", "4", "a", "s4")
	if s.Get("c", "3", "a") != "s3" || s.Get("c", "4", "a") != "s4" {
		t.Error("a deleted one counts")
	}
	s.Set("c", "5", "a", "s5")
	if s.Get("c", "3", "a") != "" || s.Get("c", "4", "a") != "s4" || s.Get("c", "5", "a") != "s5" {
		t.Error("not the oldest was forgotten after one was deleted")
	}
}
