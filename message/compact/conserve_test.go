package compact_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parley-hub/parley/message/compact"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

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
