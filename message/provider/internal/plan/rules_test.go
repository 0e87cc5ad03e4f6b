package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// envelopes normalizes a list in JSON.
func envelopes(t testing.TB, text string) []message.Envelope {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	list, err := message.NormalizeAll(v)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// made shows the result: the entries, and the notes.
func made(messages []message.Envelope) (entries, notes []string) {
	var told provider.Notes
	for _, e := range plan.Make(messages, plan.Shape{Vendor: "v"}, provider.Options{}, &told) {
		switch {
		case e.Call != nil:
			entries = append(entries, "call "+e.Call.Name+" "+e.Call.ID)
		case e.Result != nil:
			entries = append(entries, "result "+e.Result.Name+" "+e.Result.ID+" "+e.Result.Text)
		default:
			entries = append(entries, e.Role+" "+plan.JoinText(e.Blocks))
		}
	}
	for _, n := range told.Sorted() {
		notes = append(notes, n.String())
	}
	return entries, notes
}

func TestPairs(t *testing.T) {
	t.Parallel()
	const (
		call   = `{"version":1,"type":"tool_call","payload":{"tool_name":"tides"},"metadata":{"tool_call_id":"c1"}}`
		result = `{"version":1,"type":"tool_result","role":"user","content":"high","payload":{"tool_name":"tides"},"metadata":{"tool_call_id":"c1"}}`
		wait   = `{"version":1,"type":"approval_required","payload":{"action_id":"a1"},"content":"Shall I?"}`
		named  = `{"version":1,"type":"approval_required","payload":{"action_id":"a1"},"content":"Shall I?","metadata":{"tool_call_id":"c1"}}`
		other  = `{"version":1,"type":"approval_required","payload":{"action_id":"a1"},"content":"Shall I?","metadata":{"tool_call_id":"c2"}}`
		text   = `{"role":"user","content":"hi"}`
	)
	nothing := "message 0: dropped: approval_required is about no open call"
	for name, c := range map[string]struct {
		in             string
		entries, notes []string
	}{
		"a call at the very beginning":         {"[" + call + "," + result + "," + text + "]", []string{"call tides c1", "result tides c1 high", "user hi"}, nil},
		"a call alone":                         {"[" + call + "]", nil, []string{`message 0: dropped: the call of "tides" has no result`}},
		"a result alone":                       {"[" + result + "]", nil, []string{`message 0: dropped: the result of "tides" has no call`}},
		"a request about nothing":              {"[" + wait + "]", nil, []string{nothing}},
		"a request before a text":              {"[" + wait + "," + text + "]", []string{"user hi"}, []string{nothing}},
		"a request before the call":            {"[" + wait + "," + call + "," + result + "]", []string{"call tides c1", "result tides c1 high"}, []string{nothing}},
		"a request about an answered call":     {"[" + call + "," + result + "," + wait + "]", []string{"call tides c1", "result tides c1 high"}, []string{"message 2: dropped: approval_required is about no open call"}},
		"a request that names an answered one": {"[" + call + "," + result + "," + named + "]", []string{"call tides c1", "result tides c1 high"}, []string{"message 2: dropped: approval_required is about no open call"}},
		"a request about another call":         {"[" + call + "," + other + "]", nil, []string{`message 0: dropped: the call of "tides" has no result`, "message 1: dropped: approval_required is about no open call"}},
		"a request about the first":            {"[" + call + "," + wait + "]", []string{"call tides c1", "result tides c1 Pending: waiting for approval. Shall I?"}, []string{"message 1: changed: approval_required answers the open call as pending"}},
		"a request that names the first":       {"[" + call + "," + text + "," + named + "]", []string{"call tides c1", "result tides c1 Pending: waiting for approval. Shall I?", "user hi"}, []string{"message 2: changed: approval_required answers the open call as pending", "message 2: moved: the result is moved directly behind its call"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, notes := made(envelopes(t, c.in))
			if diff := cmp.Diff(c.entries, entries); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// tool returns a call or a result, in JSON, of an id in the metadata, or of one
// in the payload.
func tool(kind, name, id, inPayload string) string {
	payload, metadata := value.New().Set("tool_name", name), value.New()
	metadata.SetText("tool_call_id", id)
	payload.SetText("tool_call_id", inPayload)
	return plan.JSON(value.New().Set("version", value.Int(1)).Set("type", kind).Set("role", "user").
		Set("content", "").Set("payload", payload).Set("metadata", metadata))
}

func TestCallIDs(t *testing.T) {
	t.Parallel()
	const text = `{"role":"user","content":"hi"}`
	call := func(name, id, inPayload string) string { return tool("tool_call", name, id, inPayload) }
	result := func(name, id, inPayload string) string { return tool("tool_result", name, id, inPayload) }
	for name, c := range map[string]struct{ in, want []string }{
		"made of turn and position": {
			[]string{text, text, text, call("a", "", ""), call("b", "", ""), result("a", "", ""), result("b", "", ""), call("c", "", ""), result("c", "", "")},
			[]string{"user hi", "user hi", "user hi", "call a tool-call-1-1", "call b tool-call-1-2", "result a tool-call-1-1 ", "result b tool-call-1-2 ", "call c tool-call-2-1", "result c tool-call-2-1 "},
		},
		"taken from the result": {
			[]string{call("a", "", ""), result("a", "", "r1")},
			[]string{"call a r1", "result a r1 "},
		},
		"the same again and again": {
			[]string{call("a", "c", ""), result("a", "c", ""), call("a", "c", ""), result("a", "c", ""), call("a", "c", ""), result("a", "c", "")},
			[]string{"call a c", "result a c ", "call a c-2", "result a c-2 ", "call a c-3", "result a c-3 "},
		},
		// The first pair is found by its metadata and stays one.
		"the same in the payload": {
			[]string{call("a", "c", ""), call("b", "", "c"), result("a", "c", ""), result("z", "", "c")},
			[]string{"call a c", "call b c-2", "result a c ", "result b c-2 "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, notes := made(envelopes(t, "["+strings.Join(c.in, ",")+"]"))
			if diff := cmp.Diff(c.want, entries); diff != "" {
				t.Error(diff)
			}
			if notes != nil {
				t.Error(notes)
			}
		})
	}
}

func TestCallIDsAreLegal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for id, legal := range map[string]bool{
		"azAZ09_-": true, long: true, long + "x": false,
		"a`": false, "a{": false, "a@": false, "a[": false, "a/": false, "a:": false, "a.": false, "é": false,
	} {
		entries, notes := made(envelopes(t, "["+tool("tool_call", "a", id, "")+","+tool("tool_result", "a", id, "")+"]"))
		var want []string
		if !legal {
			sum := sha256.Sum256([]byte(id))
			want = []string{fmt.Sprintf("message 0: changed: the call id %q has characters that providers refuse", id)}
			id = "call_" + hex.EncodeToString(sum[:12])
		}
		if diff := cmp.Diff([]string{"call a " + id, "result a " + id + " "}, entries); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPartsOfParts(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int][]string{0: {"user deep"}, 1: {"user deep"}, 32: {"user deep"}, 33: {"user "}, 40: {"user "}} {
		text := `{"role":"user","content":"deep"}`
		for range depth {
			text = `{"version":1,"type":"multimodal_part","role":"user","content":"","payload":{"parts":[` + text + `]}}`
		}
		if entries, _ := made(envelopes(t, "["+text+"]")); !slices.Equal(entries, want) {
			t.Errorf("%d deep: got %q, want %q", depth, entries, want)
		}
	}
}

func TestReplyPutsTextsBeforeCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said        string // t is a text, c a call
		want, notes []string
	}{
		"nothing":            {"", []string{}, nil},
		"texts":              {"tt", []string{"text", "text"}, nil},
		"in order":           {"tc", []string{"text", "tool_call"}, nil},
		"calls":              {"cc", []string{"tool_call", "tool_call"}, nil},
		"a text behind":      {"ct", []string{"text", "tool_call"}, []string{"message 1: moved: a text is moved before the calls it followed"}},
		"a text in between":  {"ctc", []string{"text", "tool_call", "tool_call"}, []string{"message 1: moved: a text is moved before the calls it followed"}},
		"a text on each end": {"tct", []string{"text", "text", "tool_call"}, []string{"message 2: moved: a text is moved before the calls it followed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := plan.NewReading("v", provider.ReadOptions{})
			for _, kind := range c.said {
				if kind == 't' {
					r.Text(message.RoleAssistant, "x", nil)
				} else {
					r.Call("", "tides", value.New(), "", nil)
				}
			}
			kinds := []string{}
			for _, e := range r.Reply() {
				kinds = append(kinds, string(e.Type))
			}
			var notes []string
			for _, n := range r.Notes.Sorted() {
				notes = append(notes, n.String())
			}
			if diff := cmp.Diff(c.want, kinds); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	m, err := plan.Object([]byte(`{"b":1,"a":[2.50]}`))
	if err != nil || plan.JSON(m) != `{"b":1,"a":[2.50]}` {
		t.Errorf("%s, %v", plan.JSON(m), err)
	}
	for in, want := range map[string]string{
		`[1]`:  `provider: an object was expected, not "[1]"`,
		`null`: `provider: an object was expected, not "null"`,
		`"` + "0123456789012345678901234567890123456789" + `"`: `provider: an object was expected, not "\"012345678901234567890123456789012345678"`,
	} {
		if m, err := plan.Object([]byte(in)); m != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v", in, m, err)
		}
	}
	if m, err := plan.Object([]byte(`{`)); m != nil || err == nil || err.Error()[:len("provider: not valid JSON: ")] != "provider: not valid JSON: " {
		t.Errorf("%v, %v", m, err)
	}
}

// What waits for a message that does not come is kept with an empty text.
func TestReadingKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read func(*plan.Reading)
		want []string // the metadata of what was made
	}{
		"nothing":         {func(*plan.Reading) {}, nil},
		"an empty reason": {func(r *plan.Reading) { r.Reason("") }, nil},
		"an empty map":    {func(r *plan.Reading) { r.Keep("k", value.New()) }, nil},
		"opaque":          {func(r *plan.Reading) { r.Opaque("o") }, []string{`{"v":{"` + plan.OpaqueKey + `":["o"]}}`}},
		"a reason":        {func(r *plan.Reading) { r.Reason("why") }, []string{`{"reasoning":"why"}`}},
		"something kept":  {func(r *plan.Reading) { r.Keep("k", value.New().Set("a", true)) }, []string{`{"v":{"k":{"a":true}}}`}},
		"opaque, a reason": {
			func(r *plan.Reading) { r.Opaque("o"); r.Reason("why"); r.Reason("because") },
			[]string{`{"reasoning":"why\n\nbecause","v":{"` + plan.OpaqueKey + `":["o"]}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := plan.NewReading("v", provider.ReadOptions{})
			c.read(r)
			var got []string
			for _, e := range r.Messages() {
				if e.Content != "" || e.Role != message.RoleAssistant || e.Type != message.TypeText {
					t.Errorf("made was %+v", e)
				}
				got = append(got, plan.JSON(e.Metadata))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A result without an id answers the oldest open call of the tool it names.
func TestResultsWithoutIDs(t *testing.T) {
	t.Parallel()
	r := plan.NewReading("v", provider.ReadOptions{})
	r.Call("c1", "tides", value.New(), "", nil)
	r.Call("c2", "weather", value.New(), "", nil)
	r.Call("c3", "tides", value.New(), "", nil)
	r.Call("c4", "tides", value.New(), "", nil)
	r.Result("c3", "", "x", value.New(), nil)
	for _, alias := range []string{"tides", "weather", "", "tides", "tides", "wind"} {
		r.Result("", alias, "x", value.New(), nil)
	}
	var got []string
	for _, e := range r.Messages()[4:] {
		got = append(got, e.ToolName()+" "+e.ToolCallID())
	}
	if diff := cmp.Diff([]string{"tides c3", "tides c1", "weather c2", " ", "tides c4", "tides ", "wind "}, got); diff != "" {
		t.Error(diff)
	}
}

// A result is of the tool that was called, or else of the one it names.
func TestResultsAreOfTheirTool(t *testing.T) {
	t.Parallel()
	r := plan.NewReading("v", provider.ReadOptions{})
	r.Call("c1", "harbour_x2f_tides", value.New(), "", nil)
	r.Result("c1", "", "x", value.New(), nil)
	r.Result("c1", "weather", "x", value.New(), nil)
	r.Result("c2", "harbour_x2f_weather", "x", value.New(), nil)
	r.Result("c2", "", "x", value.New(), nil)
	var got []string
	for _, e := range r.Messages() {
		got = append(got, e.ToolName())
	}
	if diff := cmp.Diff([]string{"harbour/tides", "harbour/tides", "harbour/tides", "harbour/weather", ""}, got); diff != "" {
		t.Error(diff)
	}
}
