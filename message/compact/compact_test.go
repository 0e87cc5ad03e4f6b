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
	// If none is kept, the cut is after the last message.
	for kinds, want := range map[string]int{"t": 1, "tcr": 3, "tc": 1} {
		if at, err := compact.Boundary(rows(kinds), compact.Policy{PreserveToolBoundaries: true}); at != want || err != nil {
			t.Errorf("%s keeping none: %d %v", kinds, at, err)
		}
	}
	// Only messages that the decision needs are read.
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

// A call and the result right after it are never separated, whatever the
// policy.
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
