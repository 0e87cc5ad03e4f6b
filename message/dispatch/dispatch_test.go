package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/dispatch"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

const (
	input = `{"channel":"signal","recipient":"+33","message":"High water at 05:42"}`
	whole = `{"channel":"signal","recipient":"+33","message":"High water at 05:42","attachments":[]}`
)

func codeOf(err error) string {
	var refusal *dispatch.Error
	if !errors.As(err, &refusal) {
		return fmt.Sprint(err)
	}
	return refusal.Code
}

func TestStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agent-message#92: dispatch without a handler fails", func(t *spec.T) {
		var failures []string
		d := dispatch.Dispatcher{Failed: func(_ context.Context, reason string, input *value.Map) {
			failures = append(failures, reason+" "+valuetest.Write(input))
		}}
		_, err := d.Dispatch(t.Context(), valuetest.Decode(t, input), true)
		t.Equal(codeOf(err), "agents_dispatch_message_no_handler")
		t.Equal(failures, []string{"no_handler " + whole})
	})
	spec.Check(t, "agent-message#92: and with nobody to tell", func(t *spec.T) {
		_, err := dispatch.Dispatcher{}.Dispatch(t.Context(), valuetest.Decode(t, input), true)
		t.Equal(codeOf(err), "agents_dispatch_message_no_handler")
	})
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	sent := map[string]any{"sent": true, "channel": "signal", "recipient": "+33", "message_id": nil}
	for name, c := range map[string]struct {
		answer  any
		err     error
		want    string
		code    string
		failure []string
	}{
		"sent":               {sent, nil, `{"channel":"signal","message_id":null,"recipient":"+33","sent":true}`, "<nil>", nil},
		"no map":             {"sent", nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"sent is no boolean": {map[string]any{"sent": "maybe", "channel": "signal", "recipient": "+33"}, nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"sent is missing":    {map[string]any{"channel": "signal", "recipient": "+33"}, nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"no channel":         {map[string]any{"sent": true, "recipient": "+33"}, nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"no recipient":       {map[string]any{"sent": true, "channel": "signal", "recipient": 33}, nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"not sent":           {map[string]any{"sent": false, "channel": "signal", "recipient": "+33"}, nil, `{"channel":"signal","recipient":"+33","sent":false}`, "<nil>", nil},
		"a list":             {[]any{1}, nil, "null", "agents_dispatch_message_invalid_result", []string{"invalid_result"}},
		"a handler's code":   {nil, &dispatch.Error{Code: "rate_limited", Text: "later"}, "null", "rate_limited", []string{"rate_limited"}},
		"a handler's error":  {nil, errors.New("line down"), "null", "line down", []string{"line down"}},
	} {
		var failures, calls []string
		d := dispatch.Dispatcher{
			Handlers: []dispatch.Handler{
				func(_ context.Context, input *value.Map) (any, error) {
					calls = append(calls, valuetest.Write(input))
					return c.answer, c.err
				},
				func(context.Context, *value.Map) (any, error) {
					t.Error("the second handler is asked")
					return nil, nil
				},
			},
			Failed: func(_ context.Context, reason string, _ *value.Map) { failures = append(failures, reason) },
		}
		out, err := d.Dispatch(t.Context(), valuetest.Decode(t, input), true)
		got := "null"
		if out != nil {
			got = valuetest.Write(out)
		}
		if got != c.want || codeOf(err) != c.code {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if diff := cmp.Diff([]string{whole}, calls); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.failure, failures); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	handlers := []dispatch.Handler{func(context.Context, *value.Map) (any, error) {
		return map[string]any{"sent": true, "channel": "signal", "recipient": "+33"}, nil
	}}
	only := func(recipient string) func(context.Context, *value.Map) bool {
		return func(_ context.Context, input *value.Map) bool { return input.At("recipient") == recipient }
	}
	for _, c := range []struct {
		permitted     func(context.Context, *value.Map) bool
		administrator bool
		want          string
	}{
		{nil, false, "agents_dispatch_message_forbidden"}, {nil, true, "<nil>"}, {only("+33"), false, "<nil>"}, {only("+49"), false, "agents_dispatch_message_forbidden"}, {only("+49"), true, "<nil>"},
	} {
		_, err := dispatch.Dispatcher{Handlers: handlers, Permitted: c.permitted}.Dispatch(t.Context(), valuetest.Decode(t, input), c.administrator)
		if codeOf(err) != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	const code = "agents_dispatch_message_invalid_input: "
	for in, want := range map[string]string{
		input: whole,
		`{"channel":"","recipient":"","message":"","conversation_id":null,"attachments":{"a":1},"client_context":[],"metadata":{"k":1}}`: `{"channel":"","recipient":"","message":"","conversation_id":null,"attachments":{"a":1},"client_context":[],"metadata":{"k":1}}`,
		`{"channel":"c","recipient":"r","message":"m","conversation_id":"v","attachments":[1]}`:                                          `{"channel":"c","recipient":"r","message":"m","conversation_id":"v","attachments":[1]}`,
		`[]`:                              code + "input must be an object",
		`{"recipient":"r","message":"m"}`: code + "channel must be a string",
		`{"channel":5,"recipient":"r","message":"m"}`:                        code + "channel must be a string",
		`{"channel":"c","message":"m"}`:                                      code + "recipient must be a string",
		`{"channel":"c","recipient":"r","message":null}`:                     code + "message must be a string",
		`{"channel":"c","recipient":"r","message":"m","conversation_id":5}`:  code + "conversation_id must be a string or null",
		`{"channel":"c","recipient":"r","message":"m","attachments":"a"}`:    code + "attachments must be a list",
		`{"channel":"c","recipient":"r","message":"m","attachments":null}`:   code + "attachments must be a list",
		`{"channel":"c","recipient":"r","message":"m","client_context":"x"}`: code + "client_context must be an object",
		`{"channel":"c","recipient":"r","message":"m","metadata":null}`:      code + "metadata must be an object",
	} {
		m, err := dispatch.Input(valuetest.Decode(t, in))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = valuetest.Write(m)
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	source := valuetest.Decode(t, input)
	if _, err := dispatch.Input(source); err != nil || valuetest.Write(source) != input {
		t.Errorf("the input became %s", valuetest.Write(source))
	}
	if _, err := (dispatch.Dispatcher{}).Dispatch(t.Context(), "x", true); codeOf(err) != "agents_dispatch_message_invalid_input" {
		t.Errorf("%v", err)
	}
}
