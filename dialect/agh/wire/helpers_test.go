package wire_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// now is the time at which the samples of these tests are sent.
const now = 1776366000

// read returns a file of testdata.
func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// with returns an object with members replaced or added: name, JSON value, …; an
// empty value removes the member.
func with(object []byte, changes ...string) []byte {
	var parts []string
	done := map[string]bool{}
	value := func(name string) (string, bool) {
		for i := 0; i < len(changes); i += 2 {
			if changes[i] == name {
				return changes[i+1], true
			}
		}
		return "", false
	}
	add := func(name, v string) {
		if done[name] = true; v != "" {
			parts = append(parts, strconv.Quote(name)+":"+v)
		}
	}
	for name, old := range jsonscan.Members(object) {
		v, changed := value(string(name))
		if !changed {
			v = string(old)
		}
		add(string(name), v)
	}
	for i := 0; i < len(changes); i += 2 {
		if !done[changes[i]] {
			add(changes[i], changes[i+1])
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

// The smallest valid envelopes of each kind.
var (
	say = []byte(`{"protocol":"agh-network/v0","id":"m-1","workspace_id":"ws_harbor","kind":"say","channel":"dock",` +
		`"surface":"thread","thread_id":"thread_tide","from":"crane.s01","ts":1776366000,"body":{"text":"Berth 4 is free."}}`)
	capability = with(say, "kind", `"capability"`, "body", `{"capability":{"id":"lift-load","summary":"Lift one load.","outcome":"The load stands on the quay.",`+
		`"digest":"sha256:ee37844f021db568e388a9fcb0fa5c476512cc19e1f2713b6e0c9ca4f0b2e898"}}`)
	receipt = with(say, "kind", `"receipt"`, "work_id", `"work_1"`, "body", `{"for_id":"m-0","status":"accepted"}`)
	trace   = with(say, "kind", `"trace"`, "work_id", `"work_1"`, "body", `{"state":"working"}`)
	greet   = with(say, "kind", `"greet"`, "surface", "", "thread_id", "", "body", `{"peer_card":`+card+`}`)
	whois   = with(say, "kind", `"whois"`, "surface", "", "thread_id", "", "body", `{"type":"request"}`)
	answer  = with(whois, "reply_to", `"m-0"`, "body", `{"type":"response","peer_card":`+card+`}`)
)

const card = `{"peer_id":"crane.s01","profiles_supported":["agh-network/v0"],"capabilities":[],"artifacts_supported":[],"trust_modes_supported":[]}`

func kinds() map[wire.Kind][]byte {
	return map[wire.Kind][]byte{wire.Say: say, wire.Capability: capability, wire.Receipt: receipt, wire.Trace: trace, wire.Greet: greet, wire.Whois: whois}
}

var lax = wire.Options{Now: now}

// reason returns why an envelope is rejected; "" if it is accepted.
func reason(data []byte, o wire.Options) wire.Reason {
	_, err := wire.Decode(data, o)
	if rejection := rejected(err); rejection != nil {
		return rejection.Reason
	}
	return ""
}

// rejected returns an error as a rejection, or nil.
func rejected(err error) *wire.Rejection {
	var rejection *wire.Rejection
	errors.As(err, &rejection)
	return rejection
}

// accepts requires that envelopes are valid, also to the letter of the schema.
func accepts(t *spec.T, list ...[]byte) {
	t.Helper()
	for _, data := range list {
		for _, strict := range []bool{false, true} {
			_, err := wire.Decode(data, wire.Options{Now: now, Strict: strict})
			t.True(err == nil, "%s is accepted: %v", data, err)
		}
	}
}

// rejects requires a reason, in both modes.
func rejects(t *spec.T, want wire.Reason, list ...[]byte) {
	t.Helper()
	for _, data := range list {
		for _, strict := range []bool{false, true} {
			got := reason(data, wire.Options{Now: now, Strict: strict})
			t.True(got == want, "%.2000s is %q (strict %v: %q)", data, want, strict, got)
		}
	}
}

func quoted(s string) string { return strconv.Quote(s) }

func repeat(s string, n int) string { return strings.Repeat(s, n) }
