package apply_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/message/apply"
	"github.com/parley-hub/parley/message/stream"
	"github.com/parley-hub/parley/message/value"
)

func run(t *testing.T, input string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := apply.Apply(t.Context(), strings.NewReader(input), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

const unserializable = "invalid_ai_message_envelope: envelope must be JSON serializable"

func TestAnswers(t *testing.T) {
	t.Parallel()
	text := `{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"x","payload":{},"metadata":{}}`
	for name, c := range map[string]struct{ in, want string }{
		"an output":                {`{"name":"n","op":"normalize","input":{"role":"user","content":"x"}}`, `{"name":"n","output":` + text + `}`},
		"an error":                 {`{"name":"n","op":"normalize","input":{"role":""}}`, `{"name":"n","error":"invalid_ai_message_envelope: role must be a non-empty string"}`},
		"any order of keys":        {`{"input":{"role":"user","content":"x"},"op":"normalize","name":"n"}`, `{"name":"n","output":` + text + `}`},
		"a name of any kind":       {`{"name":{"a":[1.0]},"op":"type","input":{}}`, `{"name":{"a":[1.0]},"output":"text"}`},
		"no name":                  {`{"op":"type","input":{}}`, `{"name":null,"output":"text"}`},
		"no input":                 {`{"name":"n","op":"normalize"}`, `{"name":"n","error":"invalid_ai_message_envelope: message must be an array"}`},
		"a null output":            {`{"name":"n","op":"idempotency_key","input":{}}`, `{"name":"n","output":null}`},
		"no object":                {`7`, `{"name":"","error":"a request must be an object with name, op and input"}`},
		"output that is not JSON":  {`{"name":"n","op":"run_result","input":{"outputs":{"k":{"$special":"NaN"}}}}`, `{"name":"n","error":"the output cannot be written as JSON: value: \"NAN\" is not a JSON number"}`},
		"an infinite output":       {`{"name":"n","op":"run_result","input":{"outputs":{"k":{"$special":"Infinity"}}}}`, `{"name":"n","error":"the output cannot be written as JSON: value: \"INF\" is not a JSON number"}`},
		"an infinitely small one":  {`{"name":"n","op":"run_result","input":{"outputs":{"k":{"$special":"-Infinity"}}}}`, `{"name":"n","error":"the output cannot be written as JSON: value: \"-INF\" is not a JSON number"}`},
		"invalid UTF-8":            {"{\"name\":\"n\",\"op\":\"normalize\",\"input\":{\"content\":\"\xe9\"}}", `{"name":"n","error":"` + unserializable + `"}`},
		"invalid UTF-8, name last": {"{\"input\":{\"content\":\"\xe9\"},\"op\":\"coalesce\",\"name\":\"n\"}", `{"name":"n","error":"` + unserializable + `"}`},
		"a key twice":              {`{"name":"n","op":"type","input":{"a":1,"a":2}}`, `{"name":"n","error":"` + unserializable + `"}`},
		"NaN":                      {`{"name":"n","op":"normalize","input":{"content":NaN}}`, `{"name":"n","error":"` + unserializable + `"}`},
		"far too deep":             {`{"name":"n","op":"normalize","input":` + strings.Repeat("[", 12000) + strings.Repeat("]", 12000) + `}`, `{"name":"n","error":"` + unserializable + `"}`},
		"a name that is not text":  {"{\"name\":\"\xe9\",\"op\":\"normalize\",\"input\":{}}", `{"name":null,"error":"` + unserializable + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, c.in); len(got) != 1 || got[0] != c.want {
				t.Errorf("got  %q\nwant %s", got, c.want)
			}
		})
	}
	got := run(t, `{"name":"n","op":"nope","input":{}}`)
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"name":"n","error":"unknown op \"nope\"; known are bridge_queue_item, build_approval_required, build_text`) {
		t.Errorf("an unknown op: %q", got)
	}
	got = run(t, `{"name":"n","op":"run_result","input":{"a":1,"a":2}}`)
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"name":"n","error":"the request is not valid JSON: `) {
		t.Errorf("a key twice in another op: %q", got)
	}
}

func TestGoesOnAfterBadLines(t *testing.T) {
	t.Parallel()
	got := run(t, strings.Join([]string{
		`{"name":1,"op":"type","input":{}}`, `{"name":2,"op":"type","input":`, `nonsense`, `{"name":4,"op":"type","input":[]}`,
		`[{"name":5,"op":"type","input":{}},{"name":6,"op":"type","input":{}}]`, ``, `{"name":7,"op":"type","input":"s"}`,
	}, "\n"))
	want := []string{
		`{"name":1,"output":"text"}`, `{"name":2,"error":"` + unserializable + `"}`, ``, `{"name":4,"output":"text"}`,
		`{"name":5,"output":"text"}`, `{"name":6,"output":"text"}`, `{"name":7,"error":"invalid_ai_message_envelope: message must be an array"}`,
	}
	if len(got) != len(want) || !strings.HasPrefix(got[2], `{"name":null,"error":"the request is not valid JSON: `) {
		t.Fatalf("%q", got)
	}
	got[2] = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpecials(t *testing.T) {
	t.Parallel()
	for special, refused := range map[string]bool{
		"NaN": true, "Infinity": true, "-Infinity": true, "invalid_utf8": true, "unsupported": true,
		"depth:1": false, "depth:509": false, "depth:510": false, "depth:511": true, "depth:20": false, "depth:999999999999": true, "depth:1000000": true,
	} {
		// The envelope and the metadata are two levels.
		got := run(t, `{"name":"n","op":"type","input":{"metadata":{"v":{"$special":"`+special+`"}}}}`)
		want := `{"name":"n","output":"text"}`
		if refused {
			want = `{"name":"n","error":"` + unserializable + `"}`
		}
		if got[0] != want {
			t.Errorf("%s: %s", special, got[0])
		}
	}
	for in, want := range map[string]string{
		`{"$special":"depth:3"}`:         `[[[]]]`,
		`{"$special":"depth:1"}`:         `[]`,
		`{"$special":"depth:0"}`:         `{"$special":"depth:0"}`,
		`{"$special":"depth:x"}`:         `{"$special":"depth:x"}`,
		`{"$special":"5"}`:               `{"$special":"5"}`,
		`{"$special":"other"}`:           `{"$special":"other"}`,
		`{"$special":7}`:                 `{"$special":7}`,
		`{"$special":"depth:1","k":1}`:   `{"$special":"depth:1","k":1}`,
		`[{"k":{"$special":"depth:2"}}]`: `[{"k":[[]]}]`,
	} {
		got := run(t, `{"name":"n","op":"run_result","input":{"outputs":{"v":`+in+`}}}`)
		if v := decode(t, []byte(got[0])).At("output").(*value.Map).At("outputs").(*value.Map).At("v"); text(t, v) != want {
			t.Errorf("%s became %s, want %s", in, text(t, v), want)
		}
	}
}

func TestOperationsAreAllOfTheTable(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`bridge_queue_item build_approval_required build_text build_tool_call build_tool_result channel_session_key
		coalesce compact compaction_boundary compaction_item compaction_item_from_message compaction_policy conversation_result
		external_client_context external_message idempotency_key normalize normalize_many renormalize_provider run_control_status
		run_outcome run_result to_provider_message to_provider_messages tool_pairs_prune tool_pairs_validate type webhook_signature workspace_scope`)
	if diff := cmp.Diff(want, apply.Operations()); diff != "" {
		t.Error(diff)
	}
	// Text that is not JSON is a refusal of every operation, each in its words.
	messages := map[string]bool{}
	for op := range strings.FieldsSeq(`normalize type to_provider_message renormalize_provider normalize_many to_provider_messages coalesce tool_pairs_validate
		tool_pairs_prune build_text build_tool_call build_tool_result build_approval_required compact compaction_boundary compaction_item_from_message`) {
		messages[op] = true
	}
	for _, op := range apply.Operations() {
		got := run(t, `{"name":"n","op":"`+op+`","input":{"a":1,"a":2}}`)
		if spec := got[0] == `{"name":"n","error":"`+unserializable+`"}`; spec != messages[op] {
			t.Errorf("%s: %s", op, got[0])
		}
	}
}

// What the vectors do not say: the arguments of operations.
func TestArguments(t *testing.T) {
	t.Parallel()
	key := func(op, input string) string {
		t.Helper()
		return text(t, decode(t, []byte(run(t, `{"name":"n","op":"`+op+`","input":`+input+`}`)[0])))
	}
	for _, c := range []struct{ op, input, want string }{
		{
			"external_client_context", `{"message":{"connector_id":"c","external_provider":"p"},"client_name":"Desk"}`,
			`{"name":"n","output":{"source":"channel","connector_id":"c","client_name":"Desk","external_provider":"p","external_conversation_id":null,"external_message_id":null,"sender_id":null,"room_kind":null}}`,
		},
		{"external_client_context", `{"message":{}}`, `{"name":"n","error":"connector_id must be a non-empty slug."}`},
		{"webhook_signature", `{"body":"b","header":"v1=62a56fc1ffb54e3ab8e58bbcc56fe8c7b5ed1a1f4ab4a8e76a4a9a0bdf9d3a5b","secret":"s","options":{"expected_prefix":"v1="}}`, `{"name":"n","output":false}`},
		{"compaction_boundary", `{"messages":"s"}`, `{"name":"n","error":"invalid_ai_message_envelope: message must be an array"}`},
		{"compact", `{"messages":["s"]}`, `{"name":"n","error":"invalid_ai_message_envelope: message must be an array"}`},
		{"compaction_item_from_message", `{"message":{"role":""}}`, `{"name":"n","error":"invalid_ai_message_envelope: role must be a non-empty string"}`},
		{"compaction_item", `{"item":7}`, `{"name":"n","error":"invalid_ai_compaction_item: item must be an array"}`},
		{
			"external_client_context", `{"message":{"connector_id":"c","external_provider":"p"},"source":""}`,
			`{"name":"n","output":{"source":"","connector_id":"c","client_name":"c","external_provider":"p","external_conversation_id":null,"external_message_id":null,"sender_id":null,"room_kind":null}}`,
		},
		{
			"build_tool_call", `{"content":"","tool_name":5,"parameters":"x","turn":"2"}`,
			`{"name":"n","output":{"schema":"agents-api.message","version":1,"type":"tool_call","role":"assistant","content":"","payload":{"tool_name":"5","parameters":{},"turn":2},"metadata":{}}}`,
		},
		{"build_text", `{"role":"user","content":null}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_text", `{"role":"","content":null}`, `{"name":"n","error":"invalid_ai_message_envelope: role must be a non-empty string"}`},
		{"build_tool_call", `{"content":null,"tool_name":"t"}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_tool_result", `{"content":null,"tool_name":"t"}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_approval_required", `{"content":null}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_tool_result", `{"content":7,"tool_name":"t"}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_approval_required", `{"content":7}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"build_tool_call", `{"content":7}`, `{"name":"n","error":"invalid_ai_message_envelope: content must be a string or array"}`},
		{"run_control_status", `{"run_outcome":{"status":"stalled"},"status":"failed"}`, `{"name":"n","output":"stalled"}`},
		{"channel_session_key", `{"connector_id":"My_Bot","external_conversation_id":" C1 ","agent_slug":"helper-one"}`, `{"name":"n","output":"wp_agent_channel_session_47ce8de17b6282f492c6ce62d267c0e2"}`},
		{"renormalize_provider", `{"role":""}`, `{"name":"n","error":"invalid_ai_message_envelope: role must be a non-empty string"}`},
		{"to_provider_messages", `"s"`, `{"name":"n","error":"invalid_ai_message_envelope: message must be an array"}`},
		{"conversation_result", `"s"`, `{"name":"n","error":"invalid_agent_conversation_result: messages must be an array"}`},
	} {
		if got := key(c.op, c.input); got != c.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.op, c.input, got, c.want)
		}
	}
	// A turn as weakly typed callers give it.
	for given, want := range map[string]string{
		`2`: "2", `"2"`: "2", `" 2 "`: "2", `2.0`: "2", `2.9`: "2", `-2.9`: "-2", `"2.9"`: "2", `true`: "1", `false`: "0", `null`: "0", `"two"`: "0", `[2]`: "0", `9007199254740993`: "9007199254740993",
	} {
		got := key("build_tool_call", `{"content":"","tool_name":"t","turn":`+given+`}`)
		if !strings.Contains(got, `"turn":`+want+`}`) {
			t.Errorf("turn %s: %s", given, got)
		}
	}
	// Options of a signature; what is of another type does not count.
	const raw = "5f3f850aa4b6d3c1707218b64ef62f01d70f24963c61fc43dedeb40f37b76216"
	for options, want := range map[string]string{
		`{"allow_raw_hex":true}`: "true", `{"allow_raw_hex":"0"}`: "false", `{"expected_prefix":"x="}`: "false", `{"expected_prefix":"","allow_raw_hex":true}`: "true", `{"expected_prefix":""}`: "false", `{"allow_raw_hex":1}`: "false", `{"allow_raw_hex":"true"}`: "false",
	} {
		got := key("webhook_signature", `{"body":"{\"event\":\"high_water\"}","header":"`+raw+`","secret":"tide-secret","options":`+options+`}`)
		if got != `{"name":"n","output":`+want+`}` {
			t.Errorf("%s: %s", options, got)
		}
	}
}

func TestSignaturePrefix(t *testing.T) {
	t.Parallel()
	const digits = "5f3f850aa4b6d3c1707218b64ef62f01d70f24963c61fc43dedeb40f37b76216"
	for _, c := range []struct{ header, prefix, want string }{
		{"sha256=" + digits, `null`, "true"},
		{"sha256=" + digits, `5`, "true"},
		{"sha256=" + digits, `[]`, "true"},
		{"sha256=" + digits, `"v1="`, "false"},
		{"v1=" + digits, `"v1="`, "true"},
		{"5" + digits, `5`, "false"},
	} {
		got := run(t, `{"name":"n","op":"webhook_signature","input":{"body":"{\"event\":\"high_water\"}","header":"`+c.header+`","secret":"tide-secret","options":{"expected_prefix":`+c.prefix+`}}}`)
		if got[0] != `{"name":"n","output":`+c.want+`}` {
			t.Errorf("%s with the prefix %s: %s", c.header, c.prefix, got[0])
		}
	}
}

// A client that waits for an answer before it sends the next line gets it.
func TestAnswersEachLineAtOnce(t *testing.T) {
	t.Parallel()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- apply.Apply(t.Context(), in, out)
		in.Close() // nobody waits for one who went away early
		out.Close()
	}()
	lines := bufio.NewScanner(receive)
	for i := range 3 {
		fmt.Fprintf(send, "{\"name\":%d,\"op\":\"type\",\"input\":{}}\n", i)
		if !lines.Scan() || lines.Text() != fmt.Sprintf(`{"name":%d,"output":"text"}`, i) {
			t.Fatalf("answer %d is %q", i, lines.Text())
		}
	}
	send.Close()
	if err := <-done; err != nil || lines.Scan() {
		t.Errorf("%v, and %q", err, lines.Text())
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	request := "{\"name\":1,\"op\":\"type\",\"input\":{}}\n"
	var out bytes.Buffer
	if err := apply.Apply(t.Context(), io.MultiReader(strings.NewReader(request), iotest.ErrReader(broken)), &out); !errors.Is(err, broken) {
		t.Errorf("reading: %v", err)
	}
	if out.String() != "{\"name\":1,\"output\":\"text\"}\n" {
		t.Errorf("what was answered is %q", out.String())
	}
	if err := apply.Apply(t.Context(), strings.NewReader(request), failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("flushing: %v", err)
	}
	if err := apply.Apply(t.Context(), strings.NewReader(strings.Repeat(request, 1000)), failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := apply.Apply(ctx, strings.NewReader(request), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	out.Reset()
	if err := apply.ApplyWith(t.Context(), strings.NewReader(request+`{"name":2,"op":"type","input":{"content":"`+strings.Repeat("x", 500)+"\"}}\n"+request), &out, stream.Options{MaxMessage: 100}); err != nil {
		t.Error(err)
	}
	if out.String() != "{\"name\":1,\"output\":\"text\"}\n{\"name\":2,\"error\":\""+unserializable+"\"}\n{\"name\":1,\"output\":\"text\"}\n" {
		t.Errorf("a line that is too large: %s", out.String())
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func FuzzApply(f *testing.F) {
	for _, op := range apply.Operations() {
		f.Add(op, []byte(`{"messages":[{"role":"user","content":"x"}],"policy":{"enabled":true,"max_messages":0},"message":{"content":[]},"item":{"type":"t","content":""}}`))
		f.Add(op, []byte(`[{"role":"user"},{"metadata":{"type":"tool_call"}}]`))
	}
	f.Fuzz(func(t *testing.T, op string, input []byte) {
		request, err := value.Append([]byte(`{"name":"n","op":`), op)
		if err != nil {
			return
		}
		request = append(append(append(request, `,"input":`...), input...), '}')
		var out bytes.Buffer
		if err := apply.Apply(t.Context(), bytes.NewReader(request), &out); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if _, err := value.Decode(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	})
}

// Memory does not grow with the number of lines: the answers are only counted.
func TestManyLines(t *testing.T) {
	t.Parallel()
	lines := scale.N(20000)
	in, send := io.Pipe()
	defer in.Close()
	go func() {
		for i := range lines {
			fmt.Fprintf(send, "{\"name\":%d,\"op\":\"normalize\",\"input\":{\"role\":\"user\",\"content\":\"x\"}}\n", i)
		}
		send.Close()
	}()
	counted := &counter{}
	if err := apply.Apply(t.Context(), in, counted); err != nil || counted.lines != lines {
		t.Errorf("%d answers, %v", counted.lines, err)
	}
}

type counter struct{ lines int }

func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}
