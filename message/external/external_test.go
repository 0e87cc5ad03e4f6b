package external_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/external"
	"github.com/parley-hub/parley/message/value"
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

// Of many that ask at once, one is told that it is the first.
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

func TestSignature(t *testing.T) {
	t.Parallel()
	body := []byte(`{"event":"high_water"}`)
	mac := hmac.New(sha256.New, []byte("tide-secret"))
	mac.Write(body)
	digits := hex.EncodeToString(mac.Sum(nil))
	s := external.NewSignature("tide-secret")
	raw := s
	raw.AllowRawHex = true
	none := external.Signature{Secret: "tide-secret"}
	noneRaw := external.Signature{Secret: "tide-secret", AllowRawHex: true}
	own := external.Signature{Secret: "tide-secret", Prefix: "v1="}
	for name, c := range map[string]struct {
		s      external.Signature
		body   string
		header string
		want   bool
	}{
		"valid":                  {s, string(body), "sha256=" + digits, true},
		"white space":            {s, string(body), " \tsha256= " + digits + " \n", true},
		"upper-case digits":      {s, string(body), "sha256=" + strings.ToUpper(digits), true},
		"upper-case prefix":      {s, string(body), "SHA256=" + digits, false},
		"another body":           {s, string(body) + " ", "sha256=" + digits, false},
		"other digits":           {s, string(body), "sha256=" + strings.Repeat("0", 64), false},
		"too few digits":         {s, string(body), "sha256=" + digits[:62], false},
		"too many digits":        {s, string(body), "sha256=" + digits + "00", false},
		"no digits":              {s, string(body), "sha256=", false},
		"no hex":                 {s, string(body), "sha256=" + strings.Repeat("z", 64), false},
		"nothing":                {s, string(body), "", false},
		"raw":                    {s, string(body), digits, false},
		"raw, if allowed":        {raw, string(body), " " + digits + " ", true},
		"prefixed, raw allowed":  {raw, string(body), "sha256=" + digits, true},
		"another prefix":         {own, string(body), "v1=" + digits, true},
		"not the prefix":         {own, string(body), "sha256=" + digits, false},
		"no prefix":              {none, string(body), digits, false},
		"no prefix, raw allowed": {noneRaw, string(body), digits, true},
		"U+00A0 before it":       {s, string(body), "\u00a0sha256=" + digits, false},
		"U+00A0 in it":           {s, string(body), "sha256=\u00a0" + digits, false},
		"no secret":              {external.Signature{Prefix: "sha256=", AllowRawHex: true}, string(body), "sha256=" + digits, false},
		"another secret":         {external.NewSignature("other"), string(body), "sha256=" + digits, false},
	} {
		if got := c.s.Valid([]byte(c.body), c.header); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	empty := hmac.New(sha256.New, nil)
	empty.Write(body)
	if (external.Signature{Prefix: "sha256="}).Valid(body, "sha256="+hex.EncodeToString(empty.Sum(nil))) {
		t.Error("an empty secret signs")
	}
}

// Every channel test records what happens, in order.
type recorder struct {
	events []string
	fails  map[string]error
}

func (r *recorder) channel(sessions *external.Sessions, chat func(input *value.Map) (any, error)) external.Channel {
	note := func(format string, args ...any) { r.events = append(r.events, fmt.Sprintf(format, args...)) }
	return external.Channel{
		Agent: "helper", Sessions: sessions,
		Validate: func(context.Context, external.Message) error { note("validate"); return r.fails["validate"] },
		Started:  func(context.Context, external.Message) { note("start") },
		Ended:    func(context.Context, external.Message) { note("end") },
		Complete: func(_ context.Context, _ external.Message, result *value.Map) {
			note("complete %s", valuetest.Write(result))
		},
		Chat: func(_ context.Context, input *value.Map) (any, error) {
			note("chat %s", valuetest.Write(input.At("session_id")))
			return chat(input)
		},
		Deliver: func(_ context.Context, m external.Message, reply string) error {
			note("deliver %s with %s", reply, sessions.Get(m.ConnectorID, m.ConversationID, "helper"))
			return r.fails["deliver"]
		},
		Fail: func(_ context.Context, _ external.Message, text string) error {
			note("fail %s", text)
			return r.fails["fail"]
		},
	}
}

func TestChannel(t *testing.T) {
	t.Parallel()
	inbound := external.Message{Text: "hi", ConnectorID: "c", Provider: "p", ConversationID: "v", Attachments: []any{}, Raw: value.New()}
	answers := func(v any) func(*value.Map) (any, error) { return func(*value.Map) (any, error) { return v, nil } }
	broken := errors.New("line down")
	for name, c := range map[string]struct {
		message external.Message
		fails   map[string]error
		chat    func(*value.Map) (any, error)
		want    []string
		err     string
	}{
		"a reply": {
			inbound, nil, answers(map[string]any{"reply": " yes ", "session_id": "s2"}),
			[]string{"validate", "start", `chat "s1"`, "end", "deliver yes with s2", `complete {"reply":" yes ","session_id":"s2"}`},
			"",
		},
		"messages": {inbound, nil, answers(map[string]any{"reply": " ", "messages": []any{
			map[string]any{"role": "user", "content": "q"},
			map[string]any{"role": "assistant", "content": " a "},
			map[string]any{"role": "assistant", "content": " "},
			map[string]any{"role": "assistant", "content": []any{"b"}},
			"junk",
			map[string]any{"role": "assistant", "content": 5},
		}}), []string{
			"validate", "start", `chat "s1"`, "end", "deliver a with s1", "deliver 5 with s1",
			`complete {"messages":[{"content":"q","role":"user"},{"content":" a ","role":"assistant"},{"content":" ","role":"assistant"},{"content":["b"],"role":"assistant"},"junk",{"content":5,"role":"assistant"}],"reply":" "}`,
		}, ""},
		"no reply": {
			inbound, nil, answers(map[string]any{}),
			[]string{"validate", "start", `chat "s1"`, "end", "fail Sorry, I could not generate a response.", "complete {}"},
			"",
		},
		"a silent skip": {inbound, map[string]error{"validate": &external.Refusal{Code: "silent_skip", Text: "own message"}}, nil, []string{"validate"}, "silent_skip: own message"},
		"a refusal":     {inbound, map[string]error{"validate": &external.Refusal{Code: "blocked", Text: "Not here."}}, nil, []string{"validate", "fail Not here."}, "blocked: Not here."},
		"an empty text": {external.Message{ConnectorID: "c"}, nil, nil, []string{"validate"}, "empty_message"},
		"a failed run":  {inbound, nil, func(*value.Map) (any, error) { return nil, errors.New("no model") }, []string{"validate", "start", `chat "s1"`, "end", "fail no model"}, "no model"},
		"a failed run without a text": {
			inbound, nil, func(*value.Map) (any, error) { return nil, errors.New(" ") },
			[]string{"validate", "start", `chat "s1"`, "end", "fail Sorry, I could not process your message right now."},
			" ",
		},
		"no map": {inbound, nil, answers("yes"), []string{"validate", "start", `chat "s1"`, "end", "fail Sorry, I could not process your message right now."}, "chat_ability_invalid_result"},
		"a transport that fails": {
			inbound,
			map[string]error{"deliver": broken},
			answers(map[string]any{"reply": "yes", "session_id": "s3"}),
			[]string{"validate", "start", `chat "s1"`, "end", "deliver yes with s3"},
			"line down",
		},
		"an error that cannot be told": {
			inbound,
			map[string]error{"fail": broken},
			answers(map[string]any{}),
			[]string{"validate", "start", `chat "s1"`, "end", "fail Sorry, I could not generate a response."},
			"line down",
		},
		"no conversation": {
			external.Message{Text: "hi", ConnectorID: "c"},
			nil, answers(map[string]any{"reply": "yes", "session_id": "s9"}),
			[]string{"validate", "start", `chat null`, "end", "deliver yes with ", `complete {"reply":"yes","session_id":"s9"}`},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions := external.NewSessions(0)
			sessions.Set("c", "v", "helper", "s1")
			r := &recorder{fails: c.fails}
			err := r.channel(sessions, c.chat).Handle(t.Context(), c.message)
			if diff := cmp.Diff(c.want, r.events); diff != "" {
				t.Error(diff)
			}
			if fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
	var told string
	bare := external.Channel{Fail: func(_ context.Context, _ external.Message, text string) error { told = text; return nil }}
	var refusal *external.Refusal
	if err := bare.Handle(t.Context(), inbound); !errors.As(err, &refusal) || refusal.Code != "chat_ability_unavailable" || told != external.TextFailed {
		t.Errorf("without a chat: %v, told %q", err, told)
	}
	delivered := 0
	minimal := external.Channel{
		Chat:    func(context.Context, *value.Map) (any, error) { return map[string]any{"reply": "yes"}, nil },
		Deliver: func(context.Context, external.Message, string) error { delivered++; return nil },
	}
	if err := minimal.Handle(t.Context(), inbound); err != nil || delivered != 1 {
		t.Errorf("with nothing but a chat: %v, %d delivered", err, delivered)
	}
	minimal.Chat = func(context.Context, *value.Map) (any, error) { return map[string]any{}, nil }
	if err := minimal.Handle(t.Context(), inbound); err != nil {
		t.Errorf("with nobody to tell: %v", err)
	}
}
