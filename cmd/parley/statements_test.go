package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/ag2/wire"
)

// stage is a hub with alice and bob in a conversation: alice said hello, bob
// answered. Bob is an AG2 client, and every frame of its wire is kept.
type stage struct {
	*scene
	t       *testing.T
	base    string
	conn    *websocket.Conn
	frames  []map[string]json.RawMessage
	channel string
	hello   string // the envelope that alice sent
	alice   string
	bob     string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{scene: newScene(t, true), t: t}
	s.base = strings.Trim(s.output(t, `sed 's/.*"url":"\([^"]*\)".*/\1/' parley-data/parley.lock`), "\n")
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.base, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	s.conn = conn
	t.Cleanup(func() { _ = conn.CloseNow() })
	var passport struct {
		ID string `json:"agent_id"`
	}
	s.result(s.request("register", `{"passport":{"name":"bob"},"resume":{}}`), &passport)
	s.bob = passport.ID
	opened := make(chan string, 1)
	go func() {
		code, out, _ := call(t, s.env, "channels", "open", "conversation", "bob", "--as", "alice", "-o", "json", "--hub", s.base)
		if code != 0 {
			out = "{}"
		}
		opened <- out
	}()
	invite := s.notified("ag2.channel.invite")
	var e struct {
		Channel string `json:"channel_id"`
		Sender  string `json:"sender_id"`
	}
	s.decode(invite["envelope"], &e)
	s.channel, s.alice = e.Channel, e.Sender
	s.post(`"event_type":"ag2.channel.invite.ack","event_data":{}`)
	if out := <-opened; !strings.Contains(out, s.channel) {
		t.Fatalf("not opened: %s", out)
	}
	s.hello = strings.TrimSpace(strings.TrimPrefix(s.cli("send", s.channel, "hello", "--as", "alice"), "sent "))
	s.notified("ag2.msg.text")
	s.post(`"event_type":"ag2.msg.text","event_data":{"text":"hello you"},"causation_id":"` + s.hello + `"`)
	return s
}

// cli runs a command that ends well.
func (s *stage) cli(args ...string) string {
	s.t.Helper()
	code, out, errs := call(s.t, s.env, append(args, "--hub", s.base)...)
	if code != 0 {
		s.t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	return out
}

func (s *stage) decode(raw []byte, into any) {
	s.t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		s.t.Fatalf("%v: %s", err, raw)
	}
}

// get asks for a page of the hub's own interface.
func (s *stage) get(path string) []byte {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, answer.Status)
	}
	if strings.Contains(path, "follow") {
		var data []byte
		err := v1.ReadFrames(answer.Body, func(f v1.Frame) error {
			data = append(append(data, f.Data...), '\n')
			if strings.Contains(string(f.Data), "ag2.channel.closed") {
				return v1.ErrStop
			}
			return nil
		})
		if err != v1.ErrStop { //nolint:errorlint // the very one
			s.t.Fatal(err)
		}
		return data
	}
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

// read takes the next frame off the wire.
func (s *stage) read() map[string]json.RawMessage {
	s.t.Helper()
	_, raw, err := s.conn.Read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var f map[string]json.RawMessage
	s.decode(raw, &f)
	s.frames = append(s.frames, f)
	return f
}

func (s *stage) request(op, params string) map[string]json.RawMessage {
	s.t.Helper()
	frame := `{"kind":"request","request_id":"1","op":"` + op + `","params":` + params + `}`
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
	for {
		if f := s.read(); string(f["kind"]) == `"response"` {
			return f
		}
	}
}

func (s *stage) result(f map[string]json.RawMessage, into any) {
	s.t.Helper()
	if string(f["ok"]) != "true" {
		s.t.Fatalf("refused: %s", f["error_message"])
	}
	s.decode(f["result"], into)
}

func (s *stage) post(fields string) string {
	s.t.Helper()
	var id string
	s.result(s.request("post_envelope", `{"envelope":{"channel_id":"`+s.channel+`","sender_id":"`+s.bob+`",`+fields+`}}`), &id)
	return id
}

// notified waits for a notify of a type.
func (s *stage) notified(eventType string) map[string]json.RawMessage {
	s.t.Helper()
	for _, f := range s.frames {
		if string(f["kind"]) == `"notify"` && strings.Contains(string(f["envelope"]), `"event_type":"`+eventType+`"`) {
			return f
		}
	}
	for {
		if f := s.read(); string(f["kind"]) == `"notify"` && strings.Contains(string(f["envelope"]), `"event_type":"`+eventType+`"`) {
			return f
		}
	}
}

// onWire is how bob's own connection showed the channel: by notify, by read_wal
// and by find_envelope_by_causation, each as a list of envelopes.
func (s *stage) onWire() map[string][]map[string]json.RawMessage {
	s.t.Helper()
	shown := map[string][]map[string]json.RawMessage{}
	var log []map[string]json.RawMessage
	s.result(s.request("read_wal", `{"channel_id":"`+s.channel+`","since":0}`), &log)
	shown["read_wal"] = log
	var found map[string]json.RawMessage
	s.result(s.request("find_envelope_by_causation", `{"channel_id":"`+s.channel+`","sender_id":"`+s.bob+`","causation_id":"`+s.hello+`"}`), &found)
	shown["find_envelope_by_causation"] = []map[string]json.RawMessage{found}
	for _, f := range s.frames {
		if string(f["kind"]) == `"notify"` {
			var e map[string]json.RawMessage
			s.decode(f["envelope"], &e)
			shown["notify"] = append(shown["notify"], e)
		}
	}
	return shown
}

// surfaces are Parley's own, each with the channel's envelopes as JSON.
func (s *stage) surfaces() map[string][]map[string]json.RawMessage {
	s.t.Helper()
	var page, wide struct {
		Events []map[string]json.RawMessage `json:"events"`
	}
	s.decode(s.get("/v1/channels/"+s.channel+"/events"), &page)
	s.decode(s.get("/v1/events?limit=1000"), &wide)
	own := slices.DeleteFunc(wide.Events, func(e map[string]json.RawMessage) bool { return string(e["channel_id"]) != `"`+s.channel+`"` })
	shown := map[string][]map[string]json.RawMessage{"HTTP": page.Events, "HTTP, of everything": own}
	s.cli("channels", "close", s.channel) // tail ends with the channel
	for name, text := range map[string]string{
		"SSE":    string(s.get("/v1/channels/" + s.channel + "/events?follow")),
		"tail":   s.cli("tail", s.channel),
		"export": s.cli("export", s.channel),
	} {
		for line := range linesOf(text) {
			var e map[string]json.RawMessage
			s.decode([]byte(line), &e)
			shown[name] = append(shown[name], e)
		}
	}
	return shown
}

func text(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }

func TestStatementOneInstantTwoForms(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stamped := map[string]string{} // by envelope id, as AG2's wire shows it
	wired := s.onWire()
	for _, name := range []string{"notify", "read_wal", "find_envelope_by_causation"} {
		spec.Check(t, "seed-000#12: AG2's wire has six digits and +00:00, by "+name, func(t *spec.T) {
			t.True(len(wired[name]) > 0, "there are envelopes")
			for _, e := range wired[name] {
				at := text(e["created_at"])
				t.True(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`).MatchString(at), "%s has that form", at)
				stamped[text(e["envelope_id"])] = at
			}
		})
	}
	for name, events := range s.surfaces() {
		spec.Check(t, "seed-000#12: Z, and the same instant, on "+name, func(t *spec.T) {
			same := 0
			for _, e := range events {
				at := text(e["created_at"])
				t.True(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`).MatchString(at), "%s has that form", at)
				if other, ok := stamped[text(e["envelope_id"])]; ok {
					same++
					ours, err := time.Parse(time.RFC3339Nano, at)
					t.NoError(err)
					theirs, err := time.Parse(time.RFC3339Nano, other)
					t.NoError(err)
					t.Equal(ours.Equal(theirs), true)
				}
			}
			t.True(same >= 4, "the wire showed the same envelopes; %d of them", same)
		})
	}
	forms := []string{"2026-03-09T10:15:42.008113Z", "2026-03-09T10:15:42.008113+00:00"}
	for _, form := range forms {
		spec.Check(t, "seed-000#12: accepted on AG2's wire: "+form, func(t *spec.T) {
			e, err := wire.DecodeEnvelope([]byte(`{"channel_id":"c","sender_id":"s","event_type":"a.b","event_data":{},"created_at":"` + form + `"}`))
			t.NoError(err)
			t.Equal(e.CreatedAt, time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.UTC))
		})
		spec.Check(t, "seed-000#12: accepted on our own surface: "+form, func(t *spec.T) {
			var since, until struct {
				Records []json.RawMessage `json:"records"`
			}
			s.decode(s.get("/v1/audit?since="+url.QueryEscape(form)), &since)
			s.decode(s.get("/v1/audit?until="+url.QueryEscape(form)), &until)
			t.True(len(since.Records) > 0, "everything happened since")
			t.Equal(len(until.Records), 0)
		})
	}
}

// One send over HTTP and one over AG2's wire: each is one envelope, and the
// same wherever it is read.
func TestStatementOneEnvelopeEverywhere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const odd = `{"n":9007199254740993,"f":1.0,"e":{},"l":[],"deep":[[{"u":"日本 😀 \ud83d\ude00 \u0041 \/ <&>"}]]}`
	s.post(`"event_type":"my.own","event_data":` + odd)
	whole := func(t *spec.T, events []map[string]json.RawMessage) {
		t.Helper()
		at := slices.IndexFunc(events, func(e map[string]json.RawMessage) bool { return text(e["event_type"]) == "my.own" })
		t.True(at >= 0, "the custom type is there")
		t.Equal(string(events[at]["event_data"]), odd)
	}
	shape := func(events []map[string]json.RawMessage) []string {
		var list []string
		for _, e := range events {
			if text(e["event_type"]) == "ag2.msg.text" {
				list = append(list, text(e["envelope_id"])+" "+text(e["sender_id"])+" "+string(e["event_data"]))
			}
		}
		return list
	}
	wired := s.onWire()
	want := []string{
		s.hello + " " + s.alice + ` {"text":"hello"}`,
		text(wired["find_envelope_by_causation"][0]["envelope_id"]) + " " + s.bob + ` {"text":"hello you"}`,
	}
	spec.Check(t, "seed-000#1: in AG2's log, and told to its reader", func(t *spec.T) {
		t.Equal(shape(wired["read_wal"]), want)
		t.Equal(shape(wired["notify"]), want[:1]) // bob is told of alice's only
	})
	spec.Check(t, "seed-000#63 seed-000#78: in AG2's log", func(t *spec.T) { whole(t, wired["read_wal"]) })
	for name, events := range s.surfaces() {
		spec.Check(t, "seed-000#1: on "+name, func(t *spec.T) { t.Equal(shape(events), want) })
		spec.Check(t, "seed-000#63 seed-000#78: on "+name, func(t *spec.T) { whole(t, events) })
	}
}

func TestStatementSequenceIsOurs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	keys := []string{
		"audience", "causation_id", "channel_id", "created_at", "depth", "envelope_id", "event_data", "event_type",
		"idempotency_key", "priority", "sender_id", "task_id", "trace_id", "ttl_seconds",
	}
	wired := s.onWire()
	for _, name := range []string{"notify", "read_wal", "find_envelope_by_causation"} {
		spec.Check(t, "seed-000#18: 14 keys and no sequence in "+name, func(t *spec.T) {
			t.True(len(wired[name]) > 0, "there are envelopes")
			for _, e := range wired[name] {
				t.Equal(slices.Sorted(maps.Keys(e)), keys)
			}
		})
	}
	for name, events := range s.surfaces() {
		spec.Check(t, "seed-000#18: the sequence is on "+name, func(t *spec.T) {
			var got, want []string
			for i, e := range events {
				got, want = append(got, string(e["sequence"])), append(want, jsonNumber(i+1))
			}
			t.True(len(want) >= 5, "there are envelopes")
			t.Equal(got, want)
		})
	}
}

func jsonNumber(n int) string {
	raw, _ := json.Marshal(n) // a number always has a form
	return string(raw)
}

func TestStatementLinterReportsCollisions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	type found struct {
		EventType string `json:"event_type"`
		Sequence  uint64 `json:"sequence"`
		Problem   string `json:"problem"`
	}
	for eventType, problem := range map[string]string{
		"review":                  "likely collision: no prefix; use one of yours, like myapp.review",
		"ag2.review":              "likely collision: the prefix ag2. is AG2's own; use one of yours, like myapp.review",
		"ag2.msg.textual":         "likely collision: the prefix ag2. is AG2's own; use one of yours, like myapp.msg.textual",
		"myapp.review_request":    "",
		"ag2x.review":             "",
		"ag2.task.cancel_request": "",
	} {
		spec.Check(t, "seed-000#77: event type "+eventType, func(t *spec.T) {
			before := s.findings()
			id := s.post(`"event_type":"` + eventType + `","event_data":{"task_id":"t"}`)
			var want []found
			for line := range linesOf(s.cli("export", s.channel)) {
				var e struct {
					ID        string `json:"envelope_id"`
					EventType string `json:"event_type"`
					Sequence  uint64 `json:"sequence"`
				}
				s.decode([]byte(line), &e)
				if e.ID == id {
					t.Equal(e.EventType, eventType) // accepted, as it is
					if problem != "" {
						want = append(want, found{eventType, e.Sequence, problem})
					}
				}
			}
			var got []found
			s.decode(s.findings(), &struct{ Findings *[]found }{&got})
			var old []found
			s.decode(before, &struct{ Findings *[]found }{&old})
			t.Equal(got[len(old):], append([]found{}, want...))
		})
	}
}

func (s *stage) findings() []byte {
	return []byte(s.cli("channels", "lint", s.channel, "-o", "json"))
}
