package provider_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func envelopes(t testing.TB, text string) []message.Envelope {
	t.Helper()
	list, err := message.NormalizeAll(valuetest.Decode(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// at follows keys and positions into a value.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(*value.Map)
			v = m.At(step)
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// where says where a request's second message holds what a tool answered.
var where = map[string][]any{
	"openai-chat":      {"messages", 2, "content"},
	"openai-responses": {"input", 2, "output"},
	"anthropic":        {"messages", 2, "content", 0, "content"},
	"gemini":           {"contents", 2, "parts", 0, "functionResponse", "response"},
}

// A tool's answer is sent as far as it fits, and the rest is noted.
func TestResults(t *testing.T) {
	t.Parallel()
	const (
		image     = `{"type":"image_url","image_url":{"url":"https://pics.test/a.png"}}`
		imageOf   = `{"type":"input_image","image_url":"https://pics.test/a.png","detail":"auto"}`
		imageFrom = `{"type":"image","source":{"type":"url","url":"https://pics.test/a.png"}}`
		noMedia   = "dropped: a tool's message holds text only"
		noMediaG  = "dropped: a function's response holds no media"
		told      = "changed: that the tool failed is told by its text only"
	)
	type side struct {
		sent  string
		notes []string
	}
	texts := func(text string, rest ...string) map[string]side {
		return map[string]side{
			"openai-chat":      {`"` + text + `"`, append([]string{told}, rest...)},
			"openai-responses": {`"` + text + `"`, append([]string{told}, rest...)},
			"anthropic":        {`"` + text + `"`, rest},
			"gemini":           {`{"error":"` + text + `"}`, rest},
		}
	}
	for name, c := range map[string]struct {
		content, payload string
		want             map[string]side
	}{
		"text, data and media": {`"4 m at noon"`, `{"success":true,"tool_data":{"h":4},"media":[` + image + `]}`, map[string]side{
			"openai-chat":      {`"4 m at noon"`, []string{"dropped: the tool_data of the result is not sent, its text is", noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"4 m at noon"},` + imageOf + `]`, []string{"dropped: the tool_data of the result is not sent, its text is"}},
			"anthropic":        {`[{"type":"text","text":"4 m at noon"},` + imageFrom + `]`, []string{"dropped: the tool_data of the result is not sent, its text is"}},
			"gemini":           {`{"h":4}`, []string{"dropped: the text of the result is not sent, its tool_data is", noMediaG}},
		}},
		"data that the text says": {`"{ \"h\": 4 }"`, `{"result":{"h":4.0}}`, map[string]side{
			"openai-chat": {`"{ \"h\": 4 }"`, nil}, "openai-responses": {`"{ \"h\": 4 }"`, nil}, "anthropic": {`"{ \"h\": 4 }"`, nil}, "gemini": {`{"h":4.0}`, nil},
		}},
		"the same data twice": {`""`, `{"result":{"h":4},"tool_data":{"h":4}}`, map[string]side{
			"openai-chat": {`"{\"h\":4}"`, nil}, "openai-responses": {`"{\"h\":4}"`, nil}, "anthropic": {`"{\"h\":4}"`, nil}, "gemini": {`{"h":4}`, nil},
		}},
		"no data": {`"x"`, `{"success":true,"result":"","tool_data":[],"media":[]}`, map[string]side{
			"openai-chat": {`"x"`, nil}, "openai-responses": {`"x"`, nil}, "anthropic": {`"x"`, nil}, "gemini": {`{"result":"x"}`, nil},
		}},
		"data beside an image": {`[` + image + `]`, `{"result":{"h":4}}`, map[string]side{
			"openai-chat":      {`"{\"h\":4}"`, []string{noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"{\"h\":4}"},` + imageOf + `]`, nil},
			"anthropic":        {`[{"type":"text","text":"{\"h\":4}"},` + imageFrom + `]`, nil},
			"gemini":           {`{"h":4}`, []string{noMediaG}},
		}},
		"one image, not in a list": {`"x"`, `{"media":` + image + `}`, map[string]side{
			"openai-chat":      {`"x"`, []string{noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"x"},` + imageOf + `]`, nil},
			"anthropic":        {`[{"type":"text","text":"x"},` + imageFrom + `]`, nil},
			"gemini":           {`{"result":"x"}`, []string{noMediaG}},
		}},
		"images under keys": {`""`, `{"media":{"a":` + image + `}}`, map[string]side{
			"openai-chat":      {`""`, []string{noMedia}},
			"openai-responses": {`[` + imageOf + `]`, nil},
			"anthropic":        {`[` + imageFrom + `]`, nil},
			"gemini":           {`{"result":""}`, []string{noMediaG}},
		}},
		"an answer that reads as a failure": {`"{\"error\":\"none\"}"`, `{"success":true,"result":{"error":"none"}}`, map[string]side{
			"openai-chat": {`"{\"error\":\"none\"}"`, nil}, "openai-responses": {`"{\"error\":\"none\"}"`, nil}, "anthropic": {`"{\"error\":\"none\"}"`, nil},
			"gemini": {`{"result":{"error":"none"}}`, nil},
		}},

		"a failure in blocks":           {`[{"type":"text","text":"boom"}]`, `{"success":false}`, texts("boom")},
		"a failure in an object":        {`""`, `{"success":false,"error":{"code":"E1"}}`, texts(`{\"code\":\"E1\"}`)},
		"a failure in an object, said":  {`"{\"code\": \"E1\"}"`, `{"success":false,"error":{"code":"E1"}}`, texts(`{\"code\":\"E1\"}`)},
		"a failure by number":           {`""`, `{"success":false,"error":5}`, texts(`5`)},
		"a failure that says nothing":   {`""`, `{"success":false,"error":{}}`, texts("Tool execution failed.")},
		"a failure that says only that": {`"boom"`, `{"success":false,"error":true}`, texts("boom")},
		"a failure said twice":          {`"boom"`, `{"success":false,"error":"boom"}`, texts("boom")},
		"a failure with other content": {`"half of it"`, `{"success":false,"error":"boom","result":{"h":4}}`, texts("boom",
			"dropped: the content of the failed result is not sent beside its error", "dropped: the result of the failed result is not sent")},
		"a failure with an image": {`[{"type":"text","text":"boom"},` + image + `]`, `{"success":false,"error":"boom"}`, map[string]side{
			"openai-chat":      {`"boom"`, []string{told, noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"boom"},` + imageOf + `]`, []string{told}},
			"anthropic":        {`[{"type":"text","text":"boom"},` + imageFrom + `]`, nil},
			"gemini":           {`{"error":"boom"}`, []string{noMediaG}},
		}},
		"a failure beside an image": {`[` + image + `]`, `{"success":false,"error":"boom"}`, map[string]side{
			"openai-chat":      {`"boom"`, []string{told, noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"boom"},` + imageOf + `]`, []string{told}},
			"anthropic":        {`[{"type":"text","text":"boom"},` + imageFrom + `]`, nil},
			"gemini":           {`{"error":"boom"}`, []string{noMediaG}},
		}},
		"an image of a failure": {`[` + image + `]`, `{"success":false}`, map[string]side{
			"openai-chat":      {`"Tool execution failed."`, []string{told, noMedia}},
			"openai-responses": {`[{"type":"input_text","text":"Tool execution failed."},` + imageOf + `]`, []string{told}},
			"anthropic":        {`[` + imageFrom + `]`, nil},
			"gemini":           {`{"error":"Tool execution failed."}`, []string{noMediaG}},
		}},
	} {
		list := envelopes(t, `[{"role":"user","content":"go"},
			{"version":1,"type":"tool_call","payload":{"tool_name":"t"},"metadata":{"tool_call_id":"c1"}},
			{"version":1,"type":"tool_result","role":"user","content":`+c.content+`,"payload":`+c.payload+`,"metadata":{"tool_call_id":"c1"}}]`)
		for vendor, m := range mappings {
			t.Run(name+"/"+vendor, func(t *testing.T) {
				t.Parallel()
				request := m.write(list, provider.Options{})
				if got := valuetest.Write(at(request.Body, where[vendor]...)); got != c.want[vendor].sent {
					t.Errorf("got  %s\nwant %s", got, c.want[vendor].sent)
				}
				var notes []string
				for _, n := range request.Notes {
					notes = append(notes, strings.TrimPrefix(n.String(), "message 2: "))
				}
				if diff := cmp.Diff(c.want[vendor].notes, notes, cmp.Transformer("set", sorted)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// What the runtime needs of a call and its result is the payload's, whatever
// their metadata says.
func TestPayloadRules(t *testing.T) {
	t.Parallel()
	with := func(call, result string) []message.Envelope {
		return envelopes(t, `[{"role":"user","content":"go"},
			{"version":1,"type":"tool_call","payload":{"tool_name":"t","parameters":{"x":1},"turn":2},"metadata":{`+call+`}},
			{"version":1,"type":"tool_result","role":"user","content":"","payload":{"tool_name":"t","success":true,"turn":2,"result":{"y":2}},"metadata":{`+result+`}}]`)
	}
	bare := with("", "")
	contrary := with(`"tool_name":"u","parameters":{"x":8},"turn":9`, `"tool_name":"u","success":false,"error":"boom","turn":1,"result":{"y":9},"tool_data":{"y":9}`)
	for vendor, m := range mappings {
		spec.Check(t, "seed-004#28: parameters, turn and result, for "+vendor, func(t *spec.T) {
			t.Parallel()
			want := m.write(bare, provider.Options{})
			t.Contains(strings.ReplaceAll(valuetest.Write(want.Body), `\`, ""), `{"x":1}`, `{"y":2}`)
			got := m.write(contrary, provider.Options{})
			t.Equal(valuetest.Write(got.Body), valuetest.Write(want.Body))
		})
	}
}

func sorted(list []string) map[string]int {
	set := map[string]int{}
	for _, s := range list {
		set[s]++
	}
	return set
}

// A request that is read back and written again is the same.
func TestRequestsSurvive(t *testing.T) {
	t.Parallel()
	gemini := func(response string) [2]string {
		return [2]string{"gemini", `{"contents":[{"role":"user","parts":[{"text":"go"}]},` +
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"t","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"t","response":` + response + `}}]}]}`}
	}
	chat := func(messages string) [2]string { return [2]string{"openai-chat", `{"messages":[` + messages + `]}`} }
	for name, c := range map[string][2]string{
		"an object":                gemini(`{"a":1,"b":[2.50]}`),
		"an empty object":          gemini(`{}`),
		"a wrapped text":           gemini(`{"result":"4 m"}`),
		"a wrapped JSON text":      gemini(`{"result":"{\"a\":1}"}`),
		"a wrapped object":         gemini(`{"result":{"x":1}}`),
		"a wrapped empty object":   gemini(`{"result":{}}`),
		"a wrapped list":           gemini(`{"result":[1]}`),
		"a wrapped null":           gemini(`{"result":null}`),
		"an error":                 gemini(`{"error":"boom"}`),
		"an error that is JSON":    gemini(`{"error":"{\"code\":5}"}`),
		"an error in an object":    gemini(`{"error":{"code":5}}`),
		"an error beside a result": gemini(`{"error":"x","result":"y"}`),
		"a result in a result":     gemini(`{"result":{"result":1}}`),

		"a named system":  chat(`{"role":"system","content":"Be kind.","name":"rules"},{"role":"developer","content":"x","name":"dev"},{"role":"user","content":"hi","name":"anna"}`),
		"a named answer":  chat(`{"role":"user","content":"hi"},{"role":"assistant","content":"x","name":"bot"}`),
		"a file":          chat(`{"role":"user","content":[{"type":"file","file":{"file_data":"JVBE","filename":"a.pdf"}}]}`),
		"a file's data":   chat(`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBE","filename":"a.pdf"}}]}`),
		"a custom call":   chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"select 1"}}]},{"role":"tool","tool_call_id":"c1","content":"1"}`),
		"a refusal":       chat(`{"role":"assistant","content":null,"refusal":"No."}`),
		"bad arguments":   chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"c1","content":"1"}`),
		"a file, as item": {"openai-responses", `{"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_data":"JVBE","filename":"a.pdf"}]}]}`},
		"bad arguments, as item": {
			"openai-responses",
			`{"input":[{"type":"function_call","call_id":"c1","name":"t","arguments":"[1]"},{"type":"function_call_output","call_id":"c1","output":"1"}]}`,
		},
		"an image of a failure": {
			"anthropic", `{"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"boom"},{"type":"image","source":{"type":"url","url":"https://pics.test/a.png"}}],"is_error":true}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mappings[c[0]]
			history := m.read(valuetest.Decode(t, c[1]).(*value.Map), provider.ReadOptions{})
			request := m.write(history.Messages, provider.Options{})
			if diff := cmp.Diff(c[1], valuetest.Write(request.Body)); diff != "" {
				t.Error(diff)
			}
			if len(request.Notes) > 0 {
				t.Error(request.Notes)
			}
		})
	}
}

// Results without an id are of their tool's oldest call that has none yet.
func TestResultsWithoutIDs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"gemini": {"gemini", `{"contents":[{"role":"user","parts":[{"text":"go"}]},` +
			`{"role":"model","parts":[{"functionCall":{"name":"a","args":{"n":1}}},{"functionCall":{"name":"b","args":{}}},{"functionCall":{"name":"a","args":{"n":2}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"result":"a1"}}},{"functionResponse":{"name":"b","response":{"result":"b1"}}},{"functionResponse":{"name":"a","response":{"result":"a2"}}}]},` +
			`{"role":"model","parts":[{"functionCall":{"name":"a","args":{"n":3}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"result":"a3"}}}]}]}`},
		"legacy functions": {"openai-chat", `{"messages":[{"role":"user","content":"go"},` +
			`{"role":"assistant","content":null,"function_call":{"name":"a","arguments":"{\"n\":1}"}},{"role":"function","name":"a","content":"a1"},` +
			`{"role":"assistant","content":null,"function_call":{"name":"b","arguments":"{}"}},{"role":"function","name":"b","content":"b1"},` +
			`{"role":"assistant","content":null,"function_call":{"name":"a","arguments":"{\"n\":2}"}},{"role":"function","name":"a","content":"a2"},` +
			`{"role":"assistant","content":null,"function_call":{"name":"a","arguments":"{\"n\":3}"}},{"role":"function","name":"a","content":"a3"}]}`},
	} {
		history := mappings[c[0]].read(valuetest.Decode(t, c[1]).(*value.Map), provider.ReadOptions{})
		calls, answers := map[string]string{}, map[string]string{}
		for _, e := range history.Messages {
			switch e.Type {
			case message.TypeToolCall:
				calls[e.ToolCallID()] = e.ToolName() + valuetest.Write(at(e.Payload.At("parameters"), "n"))
			case message.TypeToolResult:
				answers[calls[e.ToolCallID()]] = e.ToolName() + " " + value.Text(e.Content)
			}
		}
		if diff := cmp.Diff(map[string]string{"a1": "a a1", "bnull": "b b1", "a2": "a a2", "a3": "a a3"}, answers); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for vendor, m := range mappings {
			for _, n := range m.write(history.Messages, provider.Options{}).Notes {
				if n.Code == provider.NoteOrphan {
					t.Errorf("%s as %s: %s", name, vendor, n)
				}
			}
		}
	}
	// One whose tool was not called stays alone.
	history := mappings["gemini"].read(valuetest.Decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},`+
		`{"role":"user","parts":[{"functionResponse":{"name":"b","response":{}}},{"functionResponse":{"response":{}}}]}]}`).(*value.Map), provider.ReadOptions{})
	for _, e := range history.Messages[1:] {
		if e.Metadata.Has("tool_call_id") {
			t.Error(text(e))
		}
	}
}

// Each name that is not sent is noted.
func TestNamesAreNoted(t *testing.T) {
	t.Parallel()
	list := envelopes(t, `[{"role":"system","content":"Be kind.","metadata":{"name":"the rules"}},{"role":"user","content":"hi"},{"role":"assistant","content":"x","metadata":{"name":"bot"}}]`)
	for vendor, m := range mappings {
		var notes []string
		for _, n := range m.write(list, provider.Options{Speakers: true}).Notes {
			notes = append(notes, n.String())
		}
		if diff := cmp.Diff([]string{`message 0: dropped: the speaker's name "the rules" is not sent`, `message 2: dropped: the speaker's name "bot" is not sent`}, notes); diff != "" {
			t.Errorf("%s: %s", vendor, diff)
		}
	}
}

// Arguments that are not an object are sent where arguments are a text, else noted.
func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	list := envelopes(t, `[{"role":"user","content":"go"},
		{"version":1,"type":"tool_call","payload":{"tool_name":"t","parameters":{},"arguments_text":"[1]"},"metadata":{"tool_call_id":"c1"}},
		{"version":1,"type":"tool_result","role":"user","content":"x","payload":{},"metadata":{"tool_call_id":"c1"}}]`)
	for vendor, c := range map[string]struct {
		path  []any
		want  string
		notes int
	}{
		"openai-chat":      {[]any{"messages", 1, "tool_calls", 0, "function", "arguments"}, `"[1]"`, 0},
		"openai-responses": {[]any{"input", 1, "arguments"}, `"[1]"`, 0},
		"anthropic":        {[]any{"messages", 1, "content", 0, "input"}, `{}`, 1},
		"gemini":           {[]any{"contents", 1, "parts", 0, "functionCall", "args"}, `{}`, 1},
	} {
		request := mappings[vendor].write(list, provider.Options{})
		if got := valuetest.Write(at(request.Body, c.path...)); got != c.want || len(request.Notes) != c.notes {
			t.Errorf("%s: got %s, noted %v", vendor, got, request.Notes)
		}
		for _, n := range request.Notes {
			if n.Code != provider.NoteArgs || n.Index != 1 {
				t.Errorf("%s: %s", vendor, n)
			}
		}
	}
}

// No name of a tool in a reply makes a message that cannot be written.
func TestNamesInRepliesCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"_xff_", "a_xc3_", "_x80__x80_"} {
		body := valuetest.Decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"`+name+`","args":{}}}]}]}`).(*value.Map)
		for _, e := range mappings["gemini"].read(body, provider.ReadOptions{}).Messages {
			if _, err := e.MarshalJSON(); err != nil || e.ToolName() != name {
				t.Errorf("%s became %q: %v", name, e.ToolName(), err)
			}
		}
	}
}
