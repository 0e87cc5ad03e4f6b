package compact_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/compact"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func policy(t testing.TB, text string) compact.Policy {
	t.Helper()
	return compact.NormalizePolicy(valuetest.Decode(t, text))
}

// rows are n messages; c is a tool call, r a result, anything else a text.
func rows(kinds string) []any {
	list := []any{}
	for i, kind := range kinds {
		row := value.New().Set("role", "user").Set("content", fmt.Sprintf("m%d", i))
		switch kind {
		case 'c':
			row.Set("metadata", value.New().Set("type", "tool_call"))
		case 'r':
			row.Set("metadata", value.New().Set("type", "tool_result"))
		}
		list = append(list, row)
	}
	return list
}

func says(answer any) compact.Summarizer {
	return func(context.Context, []message.Envelope, *value.Map) (any, error) { return answer, nil }
}

func run(t testing.TB, messages any, p string, s compact.Summarizer) compact.Result {
	t.Helper()
	r, err := compact.Compact(t.Context(), messages, policy(t, p), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contents(r compact.Result) string {
	texts := []string{}
	for _, e := range r.Messages {
		texts = append(texts, value.Text(e.Content))
	}
	return strings.Join(texts, "|")
}

func written(envelopes []message.Envelope) []string {
	texts := []string{}
	for _, e := range envelopes {
		texts = append(texts, valuetest.Write(e))
	}
	return texts
}

func TestStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kinds  string
		recent int
		want   int
	}{
		{"tttt", 2, 2}, {"tcrt", 2, 1}, {"tcrt", 1, 3}, {"tccrrt", 3, 1}, {"tccrrt", 2, 1}, {"ttcr", 1, 2}, {"ttcr", 2, 2}, {"crt", 2, 0}, {"rrrt", 2, 0}, {"ttcrtt", 9, 0}, {"tctt", 2, 1}, {"ctt", 2, 0},
	} {
		spec.Check(t, fmt.Sprintf("agent-message#81: %s keeping %d", c.kinds, c.recent), func(t *spec.T) {
			at, err := compact.Boundary(rows(c.kinds), policy(t, fmt.Sprintf(`{"recent_messages":%d}`, c.recent)))
			t.NoError(err)
			t.Equal(at, c.want)
		})
	}
	spec.Check(t, "agent-message#81: in a compaction", func(t *spec.T) {
		r := run(t, rows("tcrt"), `{"enabled":true,"max_messages":3,"recent_messages":2}`, says("s"))
		t.Equal(contents(r), "Earlier conversation summary:\n\ns|m1|m2|m3")
	})
	spec.Check(t, "agent-message#81: in an archive", func(t *spec.T) {
		r := run(t, rows("tcrt"), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":2}`, says("unused"))
		t.Equal(valuetest.Write(r.ArchiveItems), `[{"role":"user","content":"m0"}]`)
		t.Equal(strings.SplitN(contents(r), "|", 2)[1], "m1|m2|m3")
	})
	talk := valuetest.Decode(t, `[{"role":"user","content":"m0","metadata":{"k":1},"id":"i0","created_at":"c"},`+
		`{"version":"1","type":"delta","data":[1],"content":"m1"},{"role":"tool","content":["m2"]},{"content":"m3"}]`)
	kept, err := message.NormalizeAll(talk)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]compact.Summarizer{
		"an error":         func(context.Context, []message.Envelope, *value.Map) (any, error) { return nil, errors.New("no model") },
		"a blank text":     says(" \t\n"),
		"no text":          says(5),
		"true":             says(true),
		"a map without":    says(map[string]any{"archived_items": []any{1}}),
		"a map with blank": says(map[string]any{"summary": " "}),
		"nothing":          says(nil),
		"a list":           says([]any{"s"}),
	} {
		spec.Check(t, "agent-message#82: a summarizer gives "+name, func(t *spec.T) {
			r := run(t, talk, `{"enabled":true,"max_messages":2,"recent_messages":1}`, s)
			t.Equal(r.Status, compact.StatusFailed)
			t.Equal(written(r.Messages), written(kept))
			reason := "Summary must be a non-empty string."
			if name == "an error" {
				reason = "no model"
			}
			t.Equal(r.Metadata.At("error"), any(reason))
			t.Equal(len(r.Events), 2)
			t.Equal(r.Events[0].(*value.Map).At("type"), any("compaction_started"))
			t.Equal(r.Events[1].(*value.Map).At("type"), any("compaction_failed"))
			t.Equal(r.Events[1].(*value.Map).At("metadata").(*value.Map).At("error"), any(reason))
		})
	}
	spec.Check(t, "agent-message#83: true as max_messages gives 1", func(t *spec.T) {
		t.Equal(policy(t, `{"max_messages":true}`).MaxMessages, int64(1))
	})
	spec.Check(t, "agent-message#90: in a summary", func(t *spec.T) {
		r := run(t, rows("tt"), `{"enabled":true,"max_messages":1,"summary_prefix":"S"}`, says(" \u00a0 "))
		t.Equal(contents(r), "S\n\n\u00a0|m1")
	})
	spec.Check(t, "agent-message#90: in an item", func(t *spec.T) {
		item, err := compact.NormalizeItem(map[string]any{"type": " \u00a0", "content": "c", "id": "\u00a0i "}, nil)
		t.NoError(err)
		t.Equal([]string{item.Type, item.ID}, []string{"\u00a0", "\u00a0i"})
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"max_messages":"6","recent_messages":9}`:                    `"max_messages":6,"recent_messages":5,`,
		`{"max_messages":1,"recent_messages":5}`:                      `"max_messages":1,"recent_messages":1,`,
		`{"max_messages":2,"recent_messages":2}`:                      `"max_messages":2,"recent_messages":1,`,
		`{"max_messages":0,"recent_messages":-3}`:                     `"max_messages":1,"recent_messages":1,`,
		`{"max_messages":7.9,"recent_messages":" 2.9 "}`:              `"max_messages":7,"recent_messages":2,`,
		`{"max_messages":"7x","recent_messages":1}`:                   `"max_messages":1,"recent_messages":1,`,
		`{"max_messages":"1e2","recent_messages":"\t3\n"}`:            `"max_messages":100,"recent_messages":3,`,
		`{"max_messages":null}`:                                       `"max_messages":1,"recent_messages":1,`,
		`{"max_messages":[9]}`:                                        `"max_messages":1,"recent_messages":1,`,
		`{"max_messages":13}`:                                         `"max_messages":13,"recent_messages":12,`,
		`{"max_messages":12}`:                                         `"max_messages":12,"recent_messages":11,`,
		`{"enabled":"false"}`:                                         `"enabled":true,`,
		`{"enabled":"0"}`:                                             `"enabled":false,`,
		`{"enabled":null}`:                                            `"enabled":false,`,
		`{"preserve_tool_boundaries":0}`:                              `"preserve_tool_boundaries":false,`,
		`{"conservation_enabled":1}`:                                  `"conservation_enabled":true,`,
		`{"fail_on_conservation_failure":""}`:                         `"fail_on_conservation_failure":false,`,
		`{"overflow_archive_enabled":[0]}`:                            `"overflow_archive_enabled":true,`,
		`{"minimum_conserved_byte_ratio":"0.5"}`:                      `"minimum_conserved_byte_ratio":0.5,`,
		`{"minimum_conserved_byte_ratio":-2}`:                         `"minimum_conserved_byte_ratio":0.0,`,
		`{"minimum_conserved_byte_ratio":true}`:                       `"minimum_conserved_byte_ratio":0.0,`,
		`{"minimum_conserved_byte_ratio":2}`:                          `"minimum_conserved_byte_ratio":2.0,`,
		`{"minimum_conserved_byte_ratio":"1e999"}`:                    `"minimum_conserved_byte_ratio":1.7976931348623157e+308,`,
		`{"minimum_conserved_byte_ratio":1e999}`:                      `"minimum_conserved_byte_ratio":1.7976931348623157e+308,`,
		`{"minimum_conserved_byte_ratio":-1e999}`:                     `"minimum_conserved_byte_ratio":0.0,`,
		`{"overflow_threshold_bytes":1e999}`:                          `"overflow_threshold_bytes":0,`,
		`{"summary_role":" tool "}`:                                   `"summary_role":"tool",`,
		`{"summary_role":"\u00a0"}`:                                   "\"summary_role\":\"\u00a0\",",
		`{"summary_role":" ","summary_prefix":5}`:                     `"summary_role":"system","summary_prefix":"Earlier conversation summary:",`,
		`{"summary_model":" m ","summary_provider":" p "}`:            `"summary_model":"m","summary_provider":"p",`,
		`{"overflow_threshold_bytes":-4}`:                             `"overflow_threshold_bytes":0,`,
		`{"overflow_threshold_bytes":1e30}`:                           `"overflow_threshold_bytes":9223372036854775807,`,
		`{"overflow_retained_messages":"3"}`:                          `"overflow_retained_messages":3,`,
		`{"overflow_retained_bytes":10}`:                              `"overflow_retained_bytes":10,`,
		`{"overflow_archive_pointer":{"a":1}}`:                        `"overflow_archive_pointer":{"a":1},`,
		`{"overflow_archive_pointer":["x"]}`:                          `"overflow_archive_pointer":["x"],`,
		`{"overflow_archive_pointer":"x"}`:                            `"overflow_archive_pointer":{},`,
		`{"overflow_archive_pointer":[]}`:                             `"overflow_archive_pointer":{},`,
		`{"overflow_stub_role":" user ","overflow_stub_prefix":"\n"}`: `"overflow_stub_role":"user","overflow_stub_prefix":"Earlier conversation archived without summarization."}`,
		`{"keep_me":[1.0],"7":null}`:                                  `"overflow_stub_prefix":"Earlier conversation archived without summarization.","keep_me":[1.0],"7":null}`,
	} {
		got := valuetest.Write(policy(t, in).Canonical())
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s lacks %s", in, got, want)
		}
	}
	if p := compact.NormalizePolicy(map[string]any{"max_messages": math.NaN(), "minimum_conserved_byte_ratio": math.Inf(1)}); p.MaxMessages != 1 || p.MinimumConservedByteRatio != math.MaxFloat64 {
		t.Errorf("what is no number: %+v", p)
	}
	if valuetest.Write(compact.NormalizePolicy("x").Canonical()) != valuetest.Write(compact.DefaultPolicy().Canonical()) {
		t.Error("what is no map is not the default")
	}
	once := policy(t, `{"max_messages":5,"keep":1,"overflow_archive_pointer":{"a":1}}`)
	if valuetest.Write(compact.NormalizePolicy(once.Canonical()).Canonical()) != valuetest.Write(once.Canonical()) {
		t.Error("normalizing twice is not once")
	}
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	if at, err := compact.Boundary(rows("tcrt"), policy(t, `{"recent_messages":2,"preserve_tool_boundaries":false}`)); at != 2 || err != nil {
		t.Errorf("boundaries not preserved: %d %v", at, err)
	}
	if at, err := compact.Boundary([]any{}, policy(t, `{}`)); at != 0 || err != nil {
		t.Errorf("nothing: %d %v", at, err)
	}
	// Keeping none, the cut is behind the last message.
	for kinds, want := range map[string]int{"t": 1, "tcr": 3, "tc": 1} {
		if at, err := compact.Boundary(rows(kinds), compact.Policy{PreserveToolBoundaries: true}); at != want || err != nil {
			t.Errorf("%s keeping none: %d %v", kinds, at, err)
		}
	}
	// Only what decides is looked at.
	list := rows("tttt")
	list[0] = "bad"
	if at, err := compact.Boundary(list, policy(t, `{"recent_messages":2}`)); at != 2 || err != nil {
		t.Errorf("a bad message far away: %d %v", at, err)
	}
	for i := 1; i <= 2; i++ {
		list = rows("tttt")
		list[i] = "bad"
		if _, err := compact.Boundary(list, policy(t, `{"recent_messages":2}`)); !errors.Is(err, message.ErrNotContainer) {
			t.Errorf("a bad message at %d: %v", i, err)
		}
	}
	if _, err := compact.Boundary("s", policy(t, `{}`)); !errors.Is(err, message.ErrNotContainer) {
		t.Errorf("no list: %v", err)
	}
	if at, err := compact.Boundary(valuetest.Decode(t, `{"a":{},"b":{},"c":{}}`), policy(t, `{"recent_messages":1}`)); at != 2 || err != nil {
		t.Errorf("an object: %d %v", at, err)
	}
}

// A call and the result right behind it are never parted, whatever the policy.
func TestBoundaryLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.StringOfN(rapid.RuneFrom([]rune("tcr")), 0, 12, -1).Draw(t, "kinds")
		recent := rapid.IntRange(1, 14).Draw(t, "recent")
		p := compact.DefaultPolicy()
		p.RecentMessages = int64(recent)
		at, err := compact.Boundary(rows(kinds), p)
		if err != nil || at < 0 || at > len(kinds) || at > max(0, len(kinds)-recent) {
			t.Fatalf("%s keeping %d: %d %v", kinds, recent, at, err)
		}
		if at > 0 && (kinds[at-1] == 'c' || at < len(kinds) && kinds[at] == 'r') {
			t.Fatalf("%s is cut at %d, between a call and a result", kinds, at)
		}
	})
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	never := func(context.Context, []message.Envelope, *value.Map) (any, error) {
		t.Error("the summarizer was asked")
		return "s", nil
	}
	for name, c := range map[string]struct{ kinds, policy string }{
		"not enabled":       {"tttt", `{"max_messages":2}`},
		"few enough":        {"tt", `{"enabled":true,"max_messages":2,"recent_messages":1}`},
		"nothing to cut":    {"crr", `{"enabled":true,"max_messages":2,"recent_messages":1}`},
		"below a threshold": {"tt", `{"overflow_archive_enabled":true,"overflow_threshold_bytes":100000}`},
		"no threshold":      {"tt", `{"overflow_archive_enabled":true}`},
		"no archive":        {"tt", `{"overflow_threshold_bytes":1}`},
	} {
		r := run(t, rows(c.kinds), c.policy, never)
		if r.Status != "skipped" || r.Metadata.At("status") != "skipped" || len(r.Events) != 0 || r.ArchiveItems != nil || len(r.Messages) != len(c.kinds) {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Metadata.Has("boundary") || r.Metadata.Has("total_messages") {
			t.Errorf("%s: metadata %s", name, valuetest.Write(r.Metadata))
		}
	}
	if _, err := compact.Compact(t.Context(), []any{"bad"}, policy(t, `{}`), never); !errors.Is(err, message.ErrNotContainer) {
		t.Errorf("a bad message: %v", err)
	}
}

func TestSummarizerIsTold(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), testKey{}, "x")
	var asked []string
	_, err := compact.Compact(ctx, rows("ttttt"), policy(t, `{"enabled":true,"max_messages":3,"recent_messages":2}`),
		func(ctx context.Context, messages []message.Envelope, about *value.Map) (any, error) {
			for _, e := range messages {
				asked = append(asked, value.Text(e.Content))
			}
			about.Delete("policy")
			asked = append(asked, valuetest.Write(about), fmt.Sprint(ctx.Value(testKey{})))
			return "s", nil
		})
	want := `m0|m1|m2|{"total_messages":5,"compact_count":3,"retained_count":2,"boundary":{"compact_until":2,"retain_from":3}}|x`
	if got := strings.Join(asked, "|"); got != want || err != nil {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
}

type testKey struct{}

func TestConservation(t *testing.T) {
	t.Parallel()
	// Six messages of two bytes; the summary adds its prefix.
	conserve := `"enabled":true,"max_messages":3,"recent_messages":1,"summary_prefix":"S","conservation_enabled":true`
	for name, c := range map[string]struct {
		policy string
		answer any
		status string
		want   string
	}{
		"too little":          {`{` + conserve + `}`, "abc", "failed", `{"enabled":true,"minimum_conserved_byte_ratio":1.0,"required_byte_count":12,"conserved_byte_count":8,"conserved_byte_ratio":0.6666666666666666,"passed":false,"failed_closed":true}`},
		"just enough":         {`{` + conserve + `}`, "abcdefg", "compacted", `{"enabled":true,"minimum_conserved_byte_ratio":1.0,"required_byte_count":12,"conserved_byte_count":12,"conserved_byte_ratio":1.0,"passed":true,"failed_closed":false}`},
		"archived":            {`{` + conserve + `}`, map[string]any{"summary": "abc", "archived_items": map[string]any{"x": map[string]any{"content": "wxyz"}}}, "compacted", `{"enabled":true,"minimum_conserved_byte_ratio":1.0,"required_byte_count":12,"conserved_byte_count":12,"conserved_byte_ratio":1.0,"passed":true,"failed_closed":false}`},
		"failing open":        {`{` + conserve + `,"fail_on_conservation_failure":false}`, "abc", "compacted", `{"enabled":true,"minimum_conserved_byte_ratio":1.0,"required_byte_count":12,"conserved_byte_count":8,"conserved_byte_ratio":0.6666666666666666,"passed":false,"failed_closed":false}`},
		"a lower ratio":       {`{` + conserve + `,"minimum_conserved_byte_ratio":0.6}`, "abc", "compacted", `{"enabled":true,"minimum_conserved_byte_ratio":0.6,"required_byte_count":8,"conserved_byte_count":8,"conserved_byte_ratio":0.6666666666666666,"passed":true,"failed_closed":false}`},
		"a huge ratio":        {`{` + conserve + `,"minimum_conserved_byte_ratio":1e300}`, "abcdefg", "failed", `{"enabled":true,"minimum_conserved_byte_ratio":1e+300,"required_byte_count":9223372036854775807,"conserved_byte_count":12,"conserved_byte_ratio":1.0,"passed":false,"failed_closed":true}`},
		"an infinite ratio":   {`{` + conserve + `,"minimum_conserved_byte_ratio":"1e999"}`, "abcdefg", "failed", `{"enabled":true,"minimum_conserved_byte_ratio":1.7976931348623157e+308,"required_byte_count":9223372036854775807,"conserved_byte_count":12,"conserved_byte_ratio":1.0,"passed":false,"failed_closed":true}`},
		"a ratio just missed": {`{` + conserve + `,"minimum_conserved_byte_ratio":0.67}`, "abc", "failed", `{"enabled":true,"minimum_conserved_byte_ratio":0.67,"required_byte_count":9,"conserved_byte_count":8,"conserved_byte_ratio":0.6666666666666666,"passed":false,"failed_closed":true}`},
	} {
		r := run(t, rows("tttttt"), c.policy, says(c.answer))
		if r.Status != c.status || valuetest.Write(r.Metadata.At("conservation")) != c.want {
			t.Errorf("%s: %s %s", name, r.Status, valuetest.Write(r.Metadata.At("conservation")))
		}
		if c.status == "failed" {
			if r.Metadata.At("error") != "Compaction conservation check failed." || !r.Metadata.Has("summary_message") || contents(r) != "m0|m1|m2|m3|m4|m5" {
				t.Errorf("%s: %s, %s", name, valuetest.Write(r.Metadata), contents(r))
			}
		}
	}
	r := run(t, []any{value.New().Set("content", "")}, `{}`, says("s"))
	if got := valuetest.Write(r.Metadata.At("conservation").(*value.Map).At("conserved_byte_ratio")); got != "1.0" {
		t.Errorf("of nothing: %s", got)
	}
	// Content that is no string counts as its text, an item without content whole.
	r = run(t, []any{value.New().Set("content", []any{"é"}), value.New().Set("content", "é")}, `{}`, says("s"))
	if got := valuetest.Write(r.Metadata.At("provenance").(*value.Map).At("original")); got != `{"item_count":2,"byte_count":12}` {
		t.Errorf("sizes: %s", got)
	}
	r = run(t, rows("tttt"), `{"enabled":true,"max_messages":3,"recent_messages":1,"summary_provider":"p","summary_model":"m"}`,
		says(map[string]any{"summary": " s ", "archived_items": []any{"abc", map[string]any{"k": 1}, map[string]any{"content": []any{}}}}))
	if got := valuetest.Write(r.Metadata.At("provenance")); got != `{"original":{"item_count":4,"byte_count":8},"compacted":{"item_count":1,"byte_count":32},"retained":{"item_count":1,"byte_count":2},"archived":{"item_count":3,"byte_count":12}}` {
		t.Errorf("provenance: %s", got)
	}
	if got := valuetest.Write(r.Messages[0]); got != `{"schema":"agents-api.message","version":1,"type":"text","role":"system","content":"Earlier conversation summary:\n\ns","payload":{},"metadata":{"agents_api_compaction":{"compacted_message_count":3,"retained_message_count":1,"summary_provider":"p","summary_model":"m"}}}` {
		t.Errorf("the summary is %s", got)
	}
	if got := valuetest.Write(r.Metadata.At("summarizer")); got != `{"provider":"p","model":"m"}` {
		t.Errorf("the summarizer is %s", got)
	}
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	never := says("unused")
	row := `{"role":"user","content":"m0"}` // 30 bytes, and so the others
	list := rows("tttt")
	size := 4*len(row) + 5
	archived := func(p string) string {
		r := run(t, list, p, never)
		return fmt.Sprintf("%s %d %d", r.Status, len(r.ArchiveItems), len(r.Messages))
	}
	if got := archived(fmt.Sprintf(`{"overflow_archive_enabled":true,"overflow_retained_messages":1,"overflow_threshold_bytes":%d}`, size)); got != "skipped 0 4" {
		t.Errorf("at the threshold: %s", got)
	}
	if got := archived(fmt.Sprintf(`{"overflow_archive_enabled":true,"overflow_retained_messages":1,"overflow_threshold_bytes":%d}`, size-1)); got != "archived 3 2" {
		t.Errorf("over the threshold: %s", got)
	}
	if got := archived(`{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"recent_messages":3}`); got != "archived 1 4" {
		t.Errorf("recent messages: %s", got)
	}
	// One envelope is 112 bytes in a list of its own.
	envelope := len(`[{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"m0","payload":[],"metadata":[]}]`)
	for limit, want := range map[int]string{
		1: "archived 3 2", envelope: "archived 3 2", 2*envelope - 1: "archived 2 3", 2*envelope - 2: "archived 3 2", 3*envelope - 2: "archived 1 4", 3*envelope - 3: "archived 2 3", 100000: "archived 1 4",
	} {
		if got := archived(fmt.Sprintf(`{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":3,"overflow_retained_bytes":%d}`, limit)); got != want {
			t.Errorf("%d bytes retained: %s, want %s", limit, got, want)
		}
	}
	r := run(t, rows("t"), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1}`, never)
	if got, want := valuetest.Write(r.Metadata), `"reason":"overflow_input_unsplittable","total_messages":1,"total_bytes":32,"status":"skipped"}`; !strings.HasSuffix(got, want) || len(r.Events) != 0 || len(r.Messages) != 1 {
		t.Errorf("unsplittable: %s", got)
	}
	r = run(t, rows("tcrt"), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":2,"preserve_tool_boundaries":0}`, never)
	if len(r.ArchiveItems) != 2 {
		t.Errorf("pairs are kept: %s", contents(r))
	}
	// The originals are archived, without keys that are numbers.
	r = run(t, valuetest.Decode(t, `[{"role":"user","content":"é/","extra":1,"7":2},{},{}]`), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":1,"overflow_archive_pointer":{"at":"s3"},"overflow_stub_role":"tool","overflow_stub_prefix":"Gone."}`, never)
	if got := valuetest.Write(r.ArchiveItems); got != `[{"role":"user","content":"é/","extra":1},{}]` {
		t.Errorf("archived: %s", got)
	}
	id := value.Text(r.Metadata.At("archive_id"))
	if len(id) != len("agents-api-overflow-")+16 || contents(r) != "Gone.\n\nArchive ID: "+id+"\nArchived messages: 2|" || r.Messages[0].Role != "tool" {
		t.Errorf("%s: %s", id, contents(r))
	}
	about := r.Metadata.Clone()
	about.Delete("policy")
	about.Delete("archive_id")
	if got := valuetest.Write(about); got != `{"strategy":"deterministic_overflow_archive","archive_pointer":{"at":"s3"},"archive_count":2,"retained_count":1,"total_messages":3,"total_bytes":54,"boundary":{"archive_until":1,"retain_from":2},"status":"archived"}` {
		t.Errorf("about: %s", got)
	}
	if got := r.Messages[0].Metadata.At("agents_api_compaction_archive").(*value.Map); got.Has("status") || got.At("archive_id") != id {
		t.Errorf("the stub's metadata: %s", valuetest.Write(got))
	}
	if len(r.Events) != 1 || r.Events[0].(*value.Map).At("type") != "compaction_overflow_archived" {
		t.Errorf("events: %v", r.Events)
	}
	other := run(t, valuetest.Decode(t, `[{"role":"user","content":"é/","extra":2},{},{}]`), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":1}`, never)
	if other.Metadata.At("archive_id") == any(id) {
		t.Error("other content has the same id")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	archived := run(t, rows("tt"), `{"overflow_archive_enabled":true,"overflow_threshold_bytes":1,"overflow_retained_messages":1}`, says("unused"))
	skipped := run(t, rows("t"), `{}`, says("unused"))
	for name, r := range map[string]compact.Result{"archived": archived, "skipped": skipped} {
		messages := []any{}
		for _, e := range r.Messages {
			messages = append(messages, e.Canonical())
		}
		want := `{"messages":` + valuetest.Write(messages) + `,"metadata":{"compaction":` + valuetest.Write(r.Metadata) + `},"events":` + valuetest.Write(r.Events)
		if name == "archived" {
			want += `,"archive_items":[{"role":"user","content":"m0"}]`
		}
		if got := valuetest.Write(r.Canonical()); got != want+"}" || r.Status != name {
			t.Errorf("%s: got  %s\nwant %s}", r.Status, got, want)
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	item := func(text string, index ...int64) string {
		var at *int64
		if len(index) > 0 {
			at = &index[0]
		}
		i, err := compact.NormalizeItem(valuetest.Decode(t, text), at)
		if err != nil {
			return err.Error()
		}
		return valuetest.Write(i.Canonical())
	}
	const code = "invalid_ai_compaction_item: "
	for in, want := range map[string]string{
		`{"type":" note ","content":"x","id":" i "}`:                                                         `{"schema":"agents-api.compaction-item","version":1,"id":"i","type":"note","content":"x","metadata":{}}`,
		`{"type":"n","content":[],"id":"i","metadata":{"a":1,"0":2},"group":" g ","boundary":{"b":1,"5":2}}`: `{"schema":"agents-api.compaction-item","version":1,"id":"i","type":"n","content":[],"metadata":{"a":1},"group":"g","boundary":{"b":1}}`,
		`{"type":"n","content":{},"id":"i","metadata":null,"group":null,"boundary":[]}`:                      `{"schema":"agents-api.compaction-item","version":1,"id":"i","type":"n","content":{},"metadata":{},"boundary":{}}`,

		`{"content":7,"metadata":7}`:            code + "type must be a non-empty string",
		`{"type":" "}`:                          code + "type must be a non-empty string",
		`{"type":5}`:                            code + "type must be a non-empty string",
		`[]`:                                    code + "type must be a non-empty string",
		`"s"`:                                   code + "item must be an array",
		`{"type":"n","metadata":7}`:             code + "content is required",
		`{"type":"n","content":null}`:           code + "content must be a string or array",
		`{"type":"n","content":7,"metadata":7}`: code + "content must be a string or array",
		`{"type":"n","content":"","metadata":7,"group":7}`: code + "metadata must be an array",
		`{"type":"n","content":"","group":7,"boundary":7}`: code + "group must be a non-empty string",
		`{"type":"n","content":"","group":" "}`:            code + "group must be a non-empty string",
		`{"type":"n","content":"","boundary":7,"id":7}`:    code + "boundary must be an array",
		`{"type":"n","content":"","id":7}`:                 code + "id must be a non-empty string",
		`{"type":"n","content":"","id":" "}`:               code + "id must be a non-empty string",
	} {
		if got := item(in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	if _, err := compact.NormalizeItem(map[string]any{"type": "n", "content": []any{math.NaN()}}, nil); err == nil || err.Error() != code+"item must be JSON serializable" {
		t.Errorf("NaN: %v", err)
	}
	if i, err := compact.NormalizeItem(valuetest.Decode(t, `{"type":"n","content":""}`), nil); err != nil || i.Metadata == nil || i.Boundary != nil {
		t.Errorf("without metadata: %+v %v", i, err)
	}
	// Ids: the order of keys does not matter, everything else does.
	same := item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2}}`, 3)
	if again := item(`{"metadata":{"x":2,"y":1},"content":{"a":[{"c":2,"d":1}],"b":1},"type":"n"}`, 3); id(again) != id(same) {
		t.Errorf("%s and %s", id(again), id(same))
	}
	seen := map[string]string{id(same): "same"}
	for _, other := range []string{
		item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2}}`, 4), item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2}}`),
		item(`{"type":"o","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2}}`, 3), item(`{"type":"n","content":{"b":2,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2}}`, 3),
		item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1}}`, 3), item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2},"group":"g"}`, 3),
		item(`{"type":"n","content":{"b":1,"a":[{"d":1,"c":2}]},"metadata":{"y":1,"x":2},"boundary":{}}`, 3),
	} {
		if before, ok := seen[id(other)]; ok {
			t.Errorf("%s has the id of %s", other, before)
		}
		seen[id(other)] = other
	}
	if got := id(item(`{"type":"note","content":"Remember/é"}`, 0)); got != "item-9b6657b0b7ff06f9" {
		t.Errorf("the id of the vector is %s", got)
	}

	from := func(text string) string {
		i, err := compact.ItemFromMessage(valuetest.Decode(t, text), nil)
		if err != nil {
			return err.Error()
		}
		return valuetest.Write(i.Canonical())
	}
	for in, want := range map[string]string{
		`{"content":["b"],"id":" i ","metadata":{"k":1,"message":"own"}}`: `{"schema":"agents-api.compaction-item","version":1,"id":"i","type":"message:multimodal_part","content":["b"],"metadata":{"k":1,"message":{"role":"assistant","payload":{}}}}`,
		`{"role":" ","id":"i"}`: code + "role must be a non-empty string",
		`{"id":" "}`:            code + "id must be a non-empty string",
		`{"role":""}`:           "invalid_ai_message_envelope: role must be a non-empty string",
		`"s"`:                   "invalid_ai_message_envelope: message must be an array",
		`{"version":1,"type":"tool_call","payload":{"tool_name":"t"},"id":"i"}`: `{"schema":"agents-api.compaction-item","version":1,"id":"i","type":"message:tool_call","content":"","metadata":{"message":{"role":"assistant","payload":{"tool_name":"t"}}}}`,
	} {
		if got := from(in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

func id(item string) string {
	_, rest, _ := strings.Cut(item, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}
