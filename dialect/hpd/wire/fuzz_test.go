package wire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// FuzzEnvelope checks that everything that parses is written, on both surfaces, as
// one line that parses to the same event.
func FuzzEnvelope(f *testing.F) {
	for _, row := range branch.Rows() {
		text, err := (&wire.Event{Base: base(), Payload: filled(row.Type)}).Append(nil, wire.Branches)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"type":"NOVEL","a":[1,{"b":null}],"threadId":"x","metadata":{}}`))
	f.Add([]byte(`{"type":"CONTENT_ADDED","messageId":"m","content":{"$type":"zzz","text":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := registry.ParseAny(data, wire.Limits{})
		if err != nil {
			return
		}
		for _, surface := range []wire.Surface{wire.Branches, wire.Threads} {
			text, err := e.Append(nil, surface)
			if err != nil {
				t.Fatalf("was read but cannot be written: %v", err)
			}
			if bytes.ContainsAny(text, "\n\r") {
				t.Fatalf("has a line break: %q", text)
			}
			again, err := registry.ParseAny(text, wire.Limits{Bytes: 64 << 20})
			if err != nil {
				t.Fatalf("cannot read what was written: %v\n%s", err, text)
			}
			twice, err := again.Append(nil, surface)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(twice)); diff != "" {
				t.Fatalf("writes differently the second time:\n%s", diff)
			}
		}
	})
}

// FuzzBodies checks that a parser fails on a body of a client or a producer only
// with an error, and that an accepted input has messages.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"text":"hi","runConfig":{}}`, `{"type":"USER_MESSAGES_INPUT","messages":[{"contents":[{"$type":"hpd:image","uri":"x"}]}]}`,
		`{"type":"INTERRUPTION_REQUEST","reason":"x"}`, `{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":1}`,
		`[{"type":"TEXT_DELTA","text":"a","messageId":"m"}]`, `{"type":"CONTINUATION_REQUEST","continuationId":"k","timeoutSeconds":9}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if in, err := registry.ParseInput(data, wire.Limits{}); err == nil {
			if len(in.Messages) == 0 {
				t.Fatalf("an input without messages: %q", data)
			}
			in.Complete(func() string { return "minted" })
			for i := range in.Messages {
				if _, err := branch.Expand(&in.Messages[i]); err != nil {
					t.Fatalf("taken, but cannot be stored: %v\n%q", err, data)
				}
			}
		}
		_, _ = registry.ParseInterrupt(data, wire.Limits{})
		_, _ = registry.ParseResponse(data, wire.Limits{})
		_, _ = registry.ParseFrame(data, wire.Limits{})
		_, _ = registry.ParsePublished(data, wire.Limits{})
		_, _, _ = registry.ParseAsked(data, wire.Limits{})
		wire.Canonical(data)
		wire.WithoutSecrets(data)
	})
}
