package wire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	plain := &envelope.Envelope{Channel: "c", Sender: "s", Type: "t", Priority: envelope.Normal, Data: []byte("{}")}
	tests := []struct {
		name, in string
		want     wire.Frame
	}{
		{"hello", `{"kind":"hello","name":"quill"}`, &wire.Hello{Name: "quill", Scheme: "none"}},
		{"hello in full", ` {"since_envelope_id":"","auth_claim":{"token":"t"},"auth_scheme":"api_key","name":"qu\u0069ll","kind":"hello","x":{"kind":"ping"}} `, &wire.Hello{Name: "quill", Scheme: "api_key", Claim: []byte(`{"token":"t"}`), Since: new("")}},
		{"hello with nulls", `{"kind":"hello","name":"","auth_scheme":null,"auth_claim":null,"since_envelope_id":null}`, &wire.Hello{Scheme: "none"}},
		{"welcome", `{"kind":"welcome","endpoint_id":"e","hub_time":"t"}`, &wire.Welcome{Endpoint: "e", HubTime: "t"}},
		{"error", `{"kind":"error","code":"not_found","message":"m","envelope_id":null}`, &wire.Refusal{Code: "not_found", Message: "m"}},
		{"ping", `{"kind":"ping","extra":1}`, &wire.Ping{}},
		{"pong", `{"kind":"pong"}`, &wire.Pong{}},
		{"request", `{"kind":"request","request_id":"1","op":"get_agent","params":{"name_or_id":"a"}}`, &wire.Request{ID: "1", Op: wire.GetAgent, Params: []byte(`{"name_or_id":"a"}`)}},
		{"request without params", `{"kind":"request","request_id":"1","op":"nonsense","params":null}`, &wire.Request{ID: "1", Op: "nonsense"}},
		{"response", `{"kind":"response","request_id":"1","ok":true,"result":[1]}`, &wire.Response{ID: "1", OK: true, Result: []byte(`[1]`)}},
		{"refused response", `{"kind":"response","request_id":"1","ok":false,"result":null,"error_code":"c","error_message":"m"}`, &wire.Response{ID: "1", Code: "c", Message: "m"}},
		{"notify", `{"kind":"notify","envelope":{"a":1},"recipient_id":"r"}`, &wire.Notify{Envelope: []byte(`{"a":1}`), Recipient: "r"}},
		{"receipt", `{"kind":"receipt","envelope_id":"e","status":"ack","recipient_id":"r","channel_id":"c","reason":"x"}`, &wire.Receipt{Envelope: "e", Status: "ack", Recipient: "r", Channel: "c", Reason: "x"}},
		{"short receipt", `{"kind":"receipt","envelope_id":"e","status":"later"}`, &wire.Receipt{Envelope: "e", Status: "later"}},
		{"post", `{"kind":"request","request_id":"1","op":"post_envelope","params":{"x":[],"envelope":{"channel_id":"c","sender_id":"s","event_type":"t"}}}`, &wire.Post{ID: "1", Envelope: plain}},
		{"post in another order", `{"params":{"envelope":{"event_type":"t","sender_id":"s","channel_id":"c"}},"op":"post_envelope","request_id":"1","kind":"request"}`, &wire.Post{ID: "1", Envelope: plain}},
		{"post behind an object that nobody knows", `{"kind":"request","request_id":"1","op":"post_envelope","x":{"a":1},"params":{"envelope":{"channel_id":"c","sender_id":"s","event_type":"t"}}}`, &wire.Post{ID: "1", Envelope: plain}},
		{"names with escapes", `{"\u006bind":"hello","nam\u0065":"quill"}`, &wire.Hello{Name: "quill", Scheme: "none"}},
		{"send", `{"kind":"send","envelope":{"channel_id":"c","sender_id":"s","event_type":"t"}}`, &wire.Post{Envelope: plain}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := wire.Decode([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, request, fragment string }{
		{"empty", ``, "", "not valid JSON"},
		{"no JSON", `hello`, "", "not valid JSON"},
		{"no object", `[{"kind":"ping"}]`, "", "a JSON object is wanted"},
		{"text behind", `{"kind":"ping"} {}`, "", "not valid JSON"},
		{"not UTF-8", "{\"kind\":\"\xff\"}", "", "UTF-8"},
		{"no kind", `{"name":"a"}`, "", "'kind' is missing"},
		{"kind is not text", `{"kind":1}`, "", "kind must be a string"},
		{"unknown kind", `{"kind":"subscribe"}`, "", `"subscribe" is unknown`},
		{"hello without name", `{"kind":"hello"}`, "", "'name' is missing"},
		{"hello with null name", `{"kind":"hello","name":null}`, "", "'name' is missing"},
		{"hello with a number", `{"kind":"hello","name":7}`, "", "name must be a string, not 7"},
		{"hello with a list as claim", `{"kind":"hello","name":"a","auth_claim":[]}`, "", "auth_claim must be an object"},
		{"request without id", `{"kind":"request","op":"get_agent"}`, "", "'request_id' is missing"},
		{"request with a number as id", `{"kind":"request","request_id":4,"op":"get_agent"}`, "", "request_id must be a string"},
		{"request without op", `{"kind":"request","request_id":"1"}`, "1", "'op' is missing"},
		{"request with a number as op", `{"kind":"request","op":1,"request_id":"1"}`, "1", "op must be a string"},
		{"request with a list as params", `{"kind":"request","request_id":"1","op":"x","params":[]}`, "1", "params must be an object"},
		{"request with NaN", `{"kind":"request","request_id":"1","op":"x","params":{"a":NaN}}`, "1", "not valid JSON"},
		{"request with infinity", `{"kind":"request","request_id":"1","op":"x","params":{"a":-Infinity,"b":"NaN"}}`, "1", "not valid JSON"},
		{"request with a name twice", `{"kind":"request","request_id":"1","op":"x","params":{"a":1,"a":2}}`, "1", "duplicate"},
		{"request cut off", `{"kind":"request","request_id":"1","op":"x","params":{"a":`, "", "not valid JSON"},
		{"receipt without id", `{"kind":"receipt","status":"ack"}`, "", "'envelope_id' is missing"},
		{"receipt without status", `{"kind":"receipt","envelope_id":"e"}`, "", "'status' is missing"},
		{"post without params", `{"kind":"request","request_id":"1","op":"post_envelope"}`, "1", "'envelope' is missing"},
		{"post without envelope", `{"kind":"request","request_id":"1","op":"post_envelope","params":{}}`, "1", "'envelope' is missing"},
		{"post of text", `{"kind":"request","request_id":"1","op":"post_envelope","params":{"envelope":"x"}}`, "1", "envelope must be an object"},
		{"post of a list", `{"kind":"request","request_id":"1","op":"post_envelope","params":[]}`, "1", "params must be an object"},
		{"post of half an envelope", `{"kind":"request","request_id":"1","op":"post_envelope","params":{"envelope":{"channel_id":"c","depth":"x","more":{"a":[1]}},"x":1}}`, "1", "depth must be a whole number"},
		{"post of half an envelope, later", `{"kind":"request","op":"post_envelope","params":{"envelope":{"channel_id":"c"}},"request_id":"1"}`, "1", "'sender_id' is missing"},
		{"post of half an envelope, without id", `{"kind":"request","op":"post_envelope","params":{"envelope":{"channel_id":"c"}}}`, "", "'request_id' is missing"},
		{"send of half an envelope", `{"kind":"send","envelope":{"channel_id":"c"}}`, "", "'sender_id' is missing"},
		{"send without envelope", `{"kind":"send"}`, "", "'envelope' is missing"},
		{"send with text", `{"kind":"send","envelope":"x"}`, "", "envelope must be an object"},
		{"notify without envelope", `{"kind":"notify"}`, "", "'envelope' is missing"},
		{"response without ok", `{"kind":"response","request_id":"1"}`, "", "'ok' is missing"},
		{"response with a number as ok", `{"kind":"response","request_id":"1","ok":1}`, "", "ok must be true or false"},
		{"response without id", `{"kind":"response","ok":true}`, "", "'request_id' is missing"},
		{"welcome without endpoint", `{"kind":"welcome"}`, "", "'endpoint_id' is missing"},
		{"error without code", `{"kind":"error"}`, "", "'code' is missing"},
		{"too deep", `{"kind":"request","request_id":"1","op":"x","params":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}`, "1", "deeper than 256"},
		{"deeper than is looked at", `{"kind":"request","request_id":"1","op":"x","params":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, "", "deeper than 256"},
		{"request with null as op", `{"kind":"request","op":null,"request_id":"1"}`, "1", "'op' is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := wire.Decode([]byte(tt.in))
			var malformed *wire.Malformed
			if got != nil || !errors.As(err, &malformed) {
				t.Fatalf("got %v, %v; want a malformed frame", got, err)
			}
			if malformed.RequestID != tt.request || !strings.Contains(err.Error(), tt.fragment) {
				t.Errorf("got request %q and %q; want %q and %q", malformed.RequestID, err, tt.request, tt.fragment)
			}
		})
	}
}

func TestDepthIsCountedOutsideOfText(t *testing.T) {
	t.Parallel()
	in := `{"kind":"hello","name":"` + strings.Repeat(`[{\"`, 300) + `"}`
	if _, err := wire.Decode([]byte(in)); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", wire.MaxDepth-1) + strings.Repeat("]", wire.MaxDepth-1)
	if _, err := wire.Decode([]byte(`{"kind":"ping","x":` + deep + `}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Decode([]byte(`{"kind":"ping","x":[` + deep + `]}`)); err == nil {
		t.Fatal("one deeper is taken")
	}
	// With this many brackets the depth is counted; closed brackets do not count.
	wide := strings.Repeat(`["a"],`, 300)
	for in, taken := range map[string]bool{
		`{"kind":"ping","x":[` + wide + `{}]}`:                    true,
		`{"kind":"ping","w":[` + wide + `{}],"x":` + deep + `}`:   true,
		`{"kind":"ping","w":[` + wide + `{}],"x":[` + deep + `]}`: false,
	} {
		if _, err := wire.Decode([]byte(in)); (err == nil) != taken {
			t.Errorf("a frame of %d bytes: %v", len(in), err)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.FixedZone("", 3600))
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"hello", wire.AppendHello(nil, &wire.Hello{Name: "q", Scheme: "none"}), `{"kind":"hello","name":"q","auth_scheme":"none","auth_claim":{},"since_envelope_id":null}`},
		{"hello in full", wire.AppendHello(nil, &wire.Hello{Name: "q\"", Scheme: "api_key", Claim: []byte(`{"token":"t"}`), Since: new("x")}), `{"kind":"hello","name":"q\"","auth_scheme":"api_key","auth_claim":{"token":"t"},"since_envelope_id":"x"}`},
		{"welcome", wire.AppendWelcome(nil, "e", at), `{"kind":"welcome","endpoint_id":"e","hub_time":"2026-03-09T09:15:42.008113+00:00"}`},
		{"error", wire.AppendRefusal(nil, fault.New(fault.AuthFailed, "no")), `{"kind":"error","code":"auth_failed","message":"no","envelope_id":null}`},
		{"pong", []byte(wire.PongFrame), `{"kind":"pong"}`},
		{"request", wire.AppendRequest(nil, &wire.Request{ID: "1", Op: wire.GetRule, Params: []byte(`{"agent_id":"a"}`)}), `{"kind":"request","request_id":"1","op":"get_rule","params":{"agent_id":"a"}}`},
		{"result", wire.AppendResult(nil, "1", []byte(`[1.0]`)), `{"kind":"response","request_id":"1","ok":true,"result":[1.0],"error_code":"","error_message":""}`},
		{"no result", wire.AppendResult(nil, "1", nil), `{"kind":"response","request_id":"1","ok":true,"result":null,"error_code":"","error_message":""}`},
		{"text result", wire.AppendText(nil, "1", "é"), `{"kind":"response","request_id":"1","ok":true,"result":"é","error_code":"","error_message":""}`},
		{"failure", wire.AppendFailure(nil, "1", errors.New("boom")), `{"kind":"response","request_id":"1","ok":false,"result":null,"error_code":"error","error_message":"boom"}`},
		{"only a backslash", wire.AppendText(nil, "1", `\`), `{"kind":"response","request_id":"1","ok":true,"result":"\\","error_code":"","error_message":""}`},
		{"only what is not UTF-8", wire.AppendText(nil, "1", "\x80"), `{"kind":"response","request_id":"1","ok":true,"result":"` + "\ufffd" + `","error_code":"","error_message":""}`},
		{"not UTF-8", wire.AppendFailure(nil, "1", errors.New("b\xff")), `{"kind":"response","request_id":"1","ok":false,"result":null,"error_code":"error","error_message":"b` + "\ufffd" + `"}`},
		{"receipt", wire.AppendReceipt(nil, &wire.Receipt{Envelope: "e", Status: wire.Nack, Recipient: "r", Channel: "c", Reason: "x\n"}), `{"kind":"receipt","envelope_id":"e","status":"nack","recipient_id":"r","channel_id":"c","reason":"x\n"}`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(tt.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A result that no client could accept becomes an error that names the size.
func TestResultTooLarge(t *testing.T) {
	t.Parallel()
	overhead := len(wire.AppendResult(nil, "1", []byte(`""`))) - 2
	fits := []byte(`"` + strings.Repeat("x", wire.MaxFrame-overhead-2) + `"`)
	if got := wire.AppendResult([]byte("before"), "1", fits); len(got) != wire.MaxFrame+6 {
		t.Errorf("the largest result became %d bytes", len(got))
	}
	got := wire.AppendResult([]byte("before"), "1", append(fits[:len(fits)-1], `x"`...))
	want := `before{"kind":"response","request_id":"1","ok":false,"result":null,"error_code":"error","error_message":"the result has 1048577 bytes; a client takes frames of at most 1048576, so ask for less at once"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	want := map[fault.Code]string{
		fault.NotFound: "not_found", fault.AccessDenied: "access_denied", fault.Protocol: "protocol_error", fault.AuthFailed: "auth_failed",
		fault.RateLimited: "access_denied", fault.Conflict: "protocol_error",
		fault.InboxFull: "error", fault.Invalid: "error", fault.TooLarge: "error", fault.Gap: "error", fault.SlowReader: "error",
		fault.Unavailable: "error", fault.Internal: "error",
	}
	for _, entry := range fault.Catalogue() {
		if got := wire.CodeOf(fault.New(entry.Code, "m")); got != want[entry.Code] {
			t.Errorf("%s becomes %q, want %q", entry.Code, got, want[entry.Code])
		}
	}
	back := map[string]fault.Code{
		"not_found": fault.NotFound, "access_denied": fault.AccessDenied, "protocol_error": fault.Protocol,
		"auth_failed": fault.AuthFailed, "error": fault.Internal, "strange": fault.Internal,
	}
	for code, want := range back {
		if got := wire.ErrorOf(code, "m %d"); fault.CodeOf(got) != want || got.Error() != "m %d" {
			t.Errorf("%s is read as %v", code, got)
		}
	}
	if got := wire.ErrorOf("error", "inbox at capacity: 3"); fault.CodeOf(got) != fault.InboxFull {
		t.Errorf("a full inbox is read as %v", fault.CodeOf(got))
	}
}

// AG2's refusals have no field for a reason: it is read from their words.
func TestReasonsAreReadFromWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code, message string
		want          fault.Reason
	}{
		{"protocol_error", "workflow expects 'b' to speak, not 'a'", fault.OutOfTurn},
		{"protocol_error", "consulting expects first send from initiator 'a', not from 'b'", fault.OutOfTurn},
		{"protocol_error", "consulting expects reply from respondent 'b', not from 'a'", fault.OutOfTurn},
		{"protocol_error", "'a' has answered 'e' already; channel 'c' expects its answer to 'f'", ""},
		{"access_denied", "expects 'b' to speak", ""},
		{"protocol_error", "name 'a' is already registered; attach to it instead", fault.NameTaken},
		{"protocol_error", "channel 'c' is closed (done) and accepts nothing more", fault.ChannelEnded},
		{"protocol_error", "channel 'c' is expired (ttl_expired) and accepts nothing more", fault.ChannelEnded},
		{"not_found", "channel not found: 'c'", fault.NoChannel},
		{"not_found", "task not found: 't'", fault.NoTask},
		{"not_found", "agent 'a' not found: register it first", fault.NoAgent},
		{"auth_failed", `api_key mismatch for "a"`, fault.NeedsAPIKey},
		{"error", "channel not found: 'c'", ""},
	} {
		err := wire.ErrorOf(tt.code, tt.message)
		if got := fault.ReasonOf(err); got != tt.want || wire.CodeOf(err) != tt.code || err.Error() != tt.message {
			t.Errorf("%s %q: reason %q, code %q", tt.code, tt.message, got, wire.CodeOf(err))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"hello","name":"q","auth_scheme":"api_key","auth_claim":{"token":"t"},"since_envelope_id":""}`,
		`{"kind":"request","request_id":"1","op":"post_envelope","params":{"envelope":{"channel_id":"c","sender_id":"s","audience":null,"event_type":"ag2.msg.text","event_data":{"text":"\ud83d\ude00"},"priority":2,"depth":1,"ttl_seconds":9}}}`,
		`{"kind":"request","request_id":"1","op":"x","params":{"a":[NaN,Infinity]}}`,
		`{"kind":"receipt","envelope_id":"e","status":"ack"}`,
		`{"k\u0069nd":"ping"}`, `{"kind":"ping","":{"":[]}}`, `{"`, `"`, `{"kind":"\`, `[[[[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := wire.Decode(data)
		if err != nil {
			var malformed *wire.Malformed
			if frame != nil || !errors.As(err, &malformed) {
				t.Fatalf("got %v and %v", frame, err)
			}
			return
		}
		if post, ok := frame.(*wire.Post); ok {
			checkPost(t, post.Envelope)
			return
		}
		again, ok := encode(frame)
		if !ok {
			return
		}
		back, err := wire.Decode(again)
		if err != nil {
			t.Fatalf("%s is not read: %v", again, err)
		}
		if diff := cmp.Diff(frame, back, cmp.Comparer(equalRaw)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// equalRaw treats {} and nothing as equal.
func equalRaw(a, b []byte) bool {
	if len(a) == 0 {
		a = []byte("{}")
	}
	if len(b) == 0 {
		b = []byte("{}")
	}
	return string(a) == string(b)
}

func encode(frame wire.Frame) ([]byte, bool) {
	switch f := frame.(type) {
	case *wire.Hello:
		return wire.AppendHello(nil, f), true
	case *wire.Request:
		return wire.AppendRequest(nil, f), true
	case *wire.Receipt:
		return wire.AppendReceipt(nil, f), true
	}
	return nil, false
}

// checkPost encodes a decoded envelope, and decodes it again.
func checkPost(t *testing.T, e *envelope.Envelope) {
	t.Helper()
	back, err := wire.DecodeEnvelope(wire.AppendEnvelope(nil, e))
	if err != nil {
		t.Fatalf("an envelope is not read again: %v", err)
	}
	if e.CreatedAt.Year() < 1 || e.CreatedAt.Year() > 9999 {
		e.CreatedAt, back.CreatedAt = time.Time{}, time.Time{}
	}
	e.CreatedAt = e.CreatedAt.Truncate(time.Microsecond)
	if diff := cmp.Diff(e, back); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}
