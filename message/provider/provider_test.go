package provider_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

func TestAliases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tides":         "tides",
		"a-b_C9":        "a-b_C9",
		"harbour/tides": "harbour_x2f_tides",
		"":              "_x_",
		"7up":           "_x37_up",
		"-x":            "_x2d_x",
		"_x2f_":         "_x5f_x2f_",
		"_x2f/":         "_x5f_x2f_x2f_",
		"_X":            "_X",
		"é":             "_xc3__xa9_",
		"a.b":           "a_x2e_b",
		"azAZ09":        "azAZ09",
		"Zz":            "Zz",
		"z@[`{":         "z_x40__x5b__x60__x7b_",
		"A/:,.":         "A_x2f__x3a__x2c__x2e_",
		"9":             "_x39_",
		"0":             "_x30_",
	} {
		var aliases provider.Aliases
		if got := aliases.Alias(name); got != want {
			t.Errorf("alias of %q: got %q, want %q", name, got, want)
		}
		if got := aliases.Name(want); got != name {
			t.Errorf("name of %q: got %q, want %q", want, got, name)
		}
	}
	long := strings.Repeat("n", provider.MaxToolName)
	var aliases provider.Aliases
	if got := aliases.Alias(long); got != long {
		t.Errorf("a name of 64 became %q", got)
	}
	longer := long + "n"
	alias := aliases.Alias(longer)
	if len(alias) != provider.MaxToolName || !strings.HasPrefix(alias, "nnnnnnnn") || alias == long {
		t.Errorf("a name of 65 became %q", alias)
	}
	if got := aliases.Name(alias); got != longer {
		t.Errorf("got %q back", got)
	}
	if got := (*provider.Aliases)(nil).Alias(longer); got != alias {
		t.Errorf("without a table %q, with one %q", got, alias)
	}
	if got := (*provider.Aliases)(nil).Name("_xZZ_"); got != "_xZZ_" {
		t.Errorf("what is no escape became %q", got)
	}
	// What this never writes is the name of a tool that others named.
	for _, name := range []string{"_xAF_", "_xff_", "bad_xc3_", "a_x62_", "a_x5f_b", "a_x39_"} {
		if got := (*provider.Aliases)(nil).Name(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}

func TestAliasesAreReversibleAndLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[_x0-9a-f/-]{0,80}`)).Draw(t, "name")
		var aliases provider.Aliases
		alias := aliases.Alias(name)
		if len(alias) == 0 || len(alias) > provider.MaxToolName {
			t.Fatalf("%q has %d bytes", alias, len(alias))
		}
		for i, c := range []byte(alias) {
			letter := c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
			if !letter && (i == 0 || (c != '-' && (c < '0' || c > '9'))) {
				t.Fatalf("%q has %q at %d", alias, c, i)
			}
		}
		if got := aliases.Name(alias); got != name {
			t.Fatalf("%q became %q and came back as %q", name, alias, got)
		}
	})
}

func TestNotes(t *testing.T) {
	t.Parallel()
	var notes provider.Notes
	notes.Add(2, provider.Dropped, provider.NoteMedia, "no %s", "sound")
	notes.Add(-1, provider.Moved, provider.NoteOrder, "it moved")
	notes.Add(2, provider.Dropped, provider.NoteMedia, "no %s", "sound")
	notes.Add(2, provider.Changed, provider.NoteMedia, "no sound")
	var got []string
	for _, n := range notes.Sorted() {
		text, err := n.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.String(), string(text))
	}
	want := []string{
		"moved: it moved", `{"index":-1,"kind":"moved","code":"order","text":"it moved"}`,
		"message 2: dropped: no sound", `{"index":2,"kind":"dropped","code":"media","text":"no sound"}`,
		"message 2: changed: no sound", `{"index":2,"kind":"changed","code":"media","text":"no sound"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	first := provider.Note{Index: 0, Kind: provider.Added, Text: "x"}
	if got := first.String(); got != "message 0: added: x" {
		t.Errorf("got %q", got)
	}
}

func events(text string, limit int) (list []string, err error) {
	for data, failed := range provider.Events(strings.NewReader(text), limit) {
		if failed != nil {
			return list, failed
		}
		list = append(list, string(data))
	}
	return list, nil
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"names and comments": {": hi\nevent: x\nid: 1\ndata: a\n\n\n\ndata:b\n\n", []string{"a", "b"}},
		"several lines":      {"data: a\ndata:  b\n\n", []string{"a\n b"}},
		"the last unended":   {"data: a\n\ndata: b", []string{"a", "b"}},
		"carriage returns":   {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		"done":               {"data: a\n\ndata: [DONE]\n\ndata: b\n\n", []string{"a"}},
		"empty data":         {"data:\n\n", []string{""}},
		"nothing":            {"", nil},
	} {
		got, err := events(c.in, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got, err := events("data: 123456\r\n\r\n", 6); err != nil || len(got) != 1 {
		t.Errorf("an event at the limit: %q, %v", got, err)
	}
	if got, err := events("data: 123\ndata: 56\n\n", 6); err != nil || !slices.Equal(got, []string{"123\n56"}) {
		t.Errorf("an event of two lines at the limit: %q, %v", got, err)
	}
	if got, err := events("data: 123\ndata: 567\n\n", 6); !errors.Is(err, provider.ErrEventSize) || got != nil {
		t.Errorf("an event of two lines over the limit: %q, %v", got, err)
	}
	for _, long := range []string{
		"data: a\n\ndata: " + strings.Repeat("x", 100) + "\n\n",
		"data: a\n\n" + strings.Repeat("data: xxxxxxxx\n", 8) + "\n",
	} {
		got, err := events(long, 32)
		if !errors.Is(err, provider.ErrEventSize) || !strings.HasSuffix(err.Error(), "over 32 bytes") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"a"}, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, err := range provider.Events(io.MultiReader(strings.NewReader("data: a\n"), failing{}), 0) {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
	}
	for data := range provider.Events(strings.NewReader("data: a\n\ndata: b\n\n"), 0) {
		if string(data) != "a" {
			t.Errorf("went on after the reader stopped: %q", data)
		}
		break
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBudget(t *testing.T) {
	t.Parallel()
	b := provider.NewBudget(provider.ReadOptions{MaxBytes: 10})
	if err := errors.Join(b.Take(4), b.Take(6)); err != nil {
		t.Fatal(err)
	}
	err := b.Take(1)
	if !errors.Is(err, provider.ErrReplySize) || !strings.HasSuffix(err.Error(), "over 10 bytes") {
		t.Fatalf("got %v", err)
	}
	wide := provider.NewBudget(provider.ReadOptions{})
	if err := wide.Take(provider.MaxReply); err != nil {
		t.Fatal(err)
	}
	if err := wide.Take(1); !errors.Is(err, provider.ErrReplySize) {
		t.Fatalf("got %v", err)
	}
}

func text(e message.Envelope) string {
	data, err := e.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestAggregate(t *testing.T) {
	t.Parallel()
	user := message.Envelope{Type: message.TypeText, Role: "user", Content: "hi"}
	loose := message.Envelope{Type: message.TypeDelta, Role: "assistant", Content: "loose"}
	got := provider.Aggregate([]message.Envelope{
		loose,
		user,
		provider.Delta(provider.DeltaReasoning, 0, "one", "", ""),
		provider.Delta(provider.DeltaToolCall, 0, `{"a":`, "t", "c1"),
		provider.Delta(provider.DeltaReasoning, 1, "two", "", ""),
		provider.Delta(provider.DeltaText, 0, "He", "", ""),
		provider.Delta(provider.DeltaToolCall, 1, "", "u", ""),
		provider.Delta(provider.DeltaToolCall, 0, `1}`, "", ""),
		provider.Delta(provider.DeltaText, 0, "y", "", ""),
		provider.Delta(provider.DeltaText, 1, "", "", ""),
		provider.Delta(provider.DeltaRefusal, 0, "no", "", ""),
		user,
		provider.Delta(provider.DeltaToolCall, 0, `[1]`, "v", ""),
	}, 3)
	const head = `{"schema":"agents-api.message","version":1,`
	want := []string{
		head + `"type":"text","role":"assistant","content":"loose","payload":{},"metadata":{}}`,
		head + `"type":"text","role":"user","content":"hi","payload":{},"metadata":{}}`,
		head + `"type":"text","role":"assistant","content":"Hey","payload":{},"metadata":{"reasoning":"one\n\ntwo"}}`,
		head + `"type":"text","role":"assistant","content":"no","payload":{},"metadata":{"refusal":true}}`,
		head + `"type":"tool_call","role":"assistant","content":"","payload":{"tool_name":"t","parameters":{"a":1},"turn":3},"metadata":{"tool_call_id":"c1"}}`,
		head + `"type":"tool_call","role":"assistant","content":"","payload":{"tool_name":"u","parameters":{},"turn":3},"metadata":{"tool_call_id":"tool-call-3-2"}}`,
		head + `"type":"text","role":"user","content":"hi","payload":{},"metadata":{}}`,
		head + `"type":"tool_call","role":"assistant","content":"","payload":{"tool_name":"v","parameters":{},"turn":3,"arguments_text":"[1]"},"metadata":{"tool_call_id":"tool-call-3-1"}}`,
	}
	var lines []string
	for _, e := range got {
		lines = append(lines, text(e))
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	alone := provider.Aggregate([]message.Envelope{
		provider.Delta(provider.DeltaReasoning, 0, "lost", "", ""),
		provider.Delta(provider.DeltaToolCall, 0, "", "t", ""),
	}, 0)
	if got := text(alone[0]); !strings.HasSuffix(got, `"turn":1},"metadata":{"tool_call_id":"tool-call-1-1","reasoning":"lost"}}`) {
		t.Error(got)
	}
	unsaid := []message.Envelope{provider.Delta(provider.DeltaReasoning, 0, "lost", "", "")}
	if got := provider.Aggregate(unsaid, 1); len(got) != 0 {
		t.Error(got)
	}
	if got := provider.Aggregate(nil, 1); len(got) != 0 {
		t.Error(got)
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	reply := provider.Reply{
		Messages: []message.Envelope{{Type: message.TypeText, Role: "assistant", Content: "x"}},
		Usage:    &provider.Usage{Prompt: 1, Completion: 2, Total: 3},
	}
	failure := &provider.Failure{Provider: "openai", Code: "server_error", Message: "broke", Retryable: true}
	reply.Fail(failure, "raw")
	data, err := reply.Canonical().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"messages":[` +
		`{"schema":"agents-api.message","version":1,"type":"text","role":"assistant","content":"x","payload":{},"metadata":{}},` +
		`{"schema":"agents-api.message","version":1,"type":"error","role":"assistant","content":"broke",` +
		`"payload":{"code":"server_error","message":"broke","retryable":true},"metadata":{"openai":{"error":"raw"}}}],` +
		`"finish":"error","finish_raw":"","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	if reply.Failure != failure || failure.Error() != "openai: server_error: broke" {
		t.Errorf("got %v", reply.Failure)
	}
	if got := (&provider.Failure{Provider: "p", Message: "m"}).Error(); got != "p: m" {
		t.Errorf("got %q", got)
	}
}

func TestParseArguments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		json string
		ok   bool
	}{
		"":             {"{}", true},
		" \n":          {"{}", true},
		"\u00a0":       {"{}", false},
		`{"a":1.50}`:   {`{"a":1.50}`, true},
		`{"a":`:        {"{}", false},
		`[]`:           {"{}", false},
		`null`:         {"{}", false},
		`{"a":1}trail`: {"{}", false},
	} {
		got, ok := provider.ParseArguments(in)
		data, err := got.MarshalJSON()
		if err != nil || string(data) != want.json || ok != want.ok {
			t.Errorf("%q: got %s, %v, %v", in, data, ok, err)
		}
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	for _, parameters := range []*value.Map{nil, value.New()} {
		data, err := provider.Tool{Parameters: parameters}.Schema().MarshalJSON()
		if err != nil || string(data) != `{"type":"object","properties":{}}` {
			t.Errorf("got %s, %v", data, err)
		}
	}
	own := value.New().Set("type", "object")
	if got := (provider.Tool{Parameters: own}).Schema(); got != own {
		t.Errorf("got %v", got)
	}
	for turn, want := range map[int]int{-1: 1, 0: 1, 1: 1, 7: 7} {
		if got := (provider.ReadOptions{Turn: turn}).FirstTurn(); got != want {
			t.Errorf("turn %d: got %d, want %d", turn, got, want)
		}
	}
}
