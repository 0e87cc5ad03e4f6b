package external_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message/external"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

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
