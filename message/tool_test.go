package message_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

func TestCallID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":" call_1 ","tool_call_id":"x"}`: "call_1", `{"tool_call_id":" call_2 "}`: "call_2", `{"id":null,"tool_call_id":"call_3"}`: "call_3",
		`{"id":" ","tool_call_id":"x"}`: "tool-call-2-3", `{"id":7,"tool_call_id":"x"}`: "tool-call-2-3", `{}`: "tool-call-2-3", `"s"`: "tool-call-2-3", `{"tool_call_id":["x"]}`: "tool-call-2-3",
	} {
		if got := message.CallID(decoded(t, in), 2, 3); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	spec.Check(t, "agent-message#90: in a call's id", func(t *spec.T) {
		t.Equal(message.CallID(map[string]any{"id": "\u00a0"}, 2, 3), "\u00a0")
	})
	if got := message.CallID(nil, 0, -1); got != "tool-call-1-1" {
		t.Error(got)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		paths    [][]string
	}{
		{`{"a":1,"b":[{"c":"d"}]}`, `{"a":1,"b":[{"c":"d"}]}`, nil},
		{
			`{"API_Key":"k","api-key":1,"apikey":{},"Authorization":"b","auth_token":"t","Bearer":"x","cookies":[1],"credentials":{"a":1},"nonce":1,"my_password":"p","private-key":"k","client_secret":"s","sessionId":"i","tokens":9,"key":"kept","session":"kept"}`,
			`{"API_Key":"[redacted]","api-key":"[redacted]","apikey":"[redacted]","Authorization":"[redacted]","auth_token":"[redacted]","Bearer":"[redacted]","cookies":"[redacted]","credentials":"[redacted]","nonce":"[redacted]","my_password":"[redacted]","private-key":"[redacted]","client_secret":"[redacted]","sessionId":"[redacted]","tokens":"[redacted]","key":"kept","session":"kept"}`, nil,
		},
		{`{"list":[{"token":"t","k":1}]}`, `{"list":[{"token":"[redacted]","k":1}]}`, nil},
		{`{"a":{"b":1,"c":2},"b":3,"l":["x",{"y":1}]}`, `{"a":{"b":"[redacted]","c":2},"b":3,"l":["[redacted]",{"y":"[redacted]"}]}`, [][]string{{"a", "b"}, {"l", "0"}, {"l", "1", "y"}, {"none"}, {}, {"b", "deeper"}}},
		{`{"a":{"b":1}}`, `{"a":"[redacted]"}`, [][]string{{"a"}, {"a", "b"}}},
		{`"s"`, `"s"`, [][]string{{"s"}}},
	} {
		source := decoded(t, c.in)
		text, err := value.Append(nil, message.Redact(source, c.paths...))
		if err != nil || string(text) != c.want {
			t.Errorf("got  %s %v\nwant %s", text, err, c.want)
		}
		if text, _ := value.Append(nil, source); string(text) != c.in {
			t.Errorf("the input became %s", text)
		}
	}
}

func TestHostRow(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-004#13: an adapter turns numeric ids into strings", func(t *spec.T) {
		source := object(t, `{"role":"user","content":"x","id":41,"created_at":1745841600,"updated_at":1.5}`)
		e, err := message.Normalize(message.HostRow(source))
		t.Equal(written(e, err), `{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{},"id":"41","created_at":"1745841600","updated_at":"1.5"}`)
		t.Equal(source.At("id"), any(value.Number("41")))
	})
	for in, want := range map[string]string{
		`{"id":"41","created_at":null,"updated_at":true}`: `{"id":"41","created_at":null,"updated_at":true}`, `[1]`: `[1]`, `"s"`: `"s"`,
	} {
		if text, _ := value.Append(nil, message.HostRow(decoded(t, in))); string(text) != want {
			t.Errorf("%s became %s", in, text)
		}
	}
}
