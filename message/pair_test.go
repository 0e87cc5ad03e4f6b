package message_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
)

func TestOrphans(t *testing.T) {
	t.Parallel()
	call := func(tool, id string) string { return toolRow("tool_call", tool, id) }
	result := func(tool, id string) string { return toolRow("tool_result", tool, id) }
	type orphan = message.Orphan
	oc := func(i int, tool, id string) orphan {
		return orphan{Index: i, Kind: "orphan_tool_call", Type: "tool_call", ToolName: tool, ToolCallID: id}
	}
	or := func(i int, tool, id string) orphan {
		return orphan{Index: i, Kind: "orphan_tool_result", Type: "tool_result", ToolName: tool, ToolCallID: id}
	}
	for name, c := range map[string]struct {
		messages string
		want     []orphan
	}{
		"nothing":                    {`[]`, []orphan{}},
		"other types do not pair":    {`[{"role":"user","content":"q"},{"version":1,"type":"final_result","payload":{"tool_name":"a"}}]`, []orphan{}},
		"by id":                      {list(call("a", "1"), result("b", "1")), []orphan{}},
		"by name, oldest first":      {list(call("a", ""), call("a", ""), result("a", "")), []orphan{oc(1, "a", "")}},
		"an id matches that id only": {list(call("a", "1"), result("a", "2")), []orphan{oc(0, "a", "1"), or(1, "a", "2")}},
		"no id does not match an id": {list(call("a", "1"), result("a", "")), []orphan{oc(0, "a", "1"), or(1, "a", "")}},
		"an id does not match no id": {list(call("a", ""), result("a", "1")), []orphan{oc(0, "a", ""), or(1, "a", "1")}},
		"names differ":               {list(call("a", ""), result("b", "")), []orphan{oc(0, "a", ""), or(1, "b", "")}},
		"a result before its call":   {list(result("a", "1"), call("a", "1")), []orphan{or(0, "a", "1"), oc(1, "a", "1")}},
		"ids repeat":                 {list(call("a", "1"), call("b", "1"), result("a", "1"), result("b", "1"), result("b", "1")), []orphan{or(4, "b", "1")}},
		"by index, calls among results": {
			list(result("x", "9"), call("a", "1"), result("y", "8"), call("b", "2")),
			[]orphan{or(0, "x", "9"), oc(1, "a", "1"), or(2, "y", "8"), oc(3, "b", "2")},
		},
		"an id that is no string is none": {`[{"version":1,"type":"tool_call","payload":{"tool_name":7},"metadata":{"tool_call_id":7}}]`, []orphan{oc(0, "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := message.Orphans(decoded(t, c.messages))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := message.Orphans(decoded(t, `["s"]`)); err == nil || err.Error() != refusedContainer {
		t.Errorf("a bad entry: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	got, err := message.Prune(decoded(t, `{"a":{"role":"user","content":"q","extra":1},"b":`+toolRow("tool_call", "t", "1")+`,"c":{"content":"end"}}`))
	orphan := `{"index":1,"kind":"orphan_tool_call","type":"tool_call","tool_name":"t","tool_call_id":"1"}`
	want := `{"messages":[{"role":"user","content":"q","extra":1},{"content":"end"}],"removed":[` + orphan + `],"events":[{"type":"tool_pair_pruned","metadata":` +
		`{"total_messages":3,"orphan_count":1,"retained_count":2,"removed_indices":[1],"orphans":[` + orphan + `]}}]}`
	if text := written(got.Canonical(), err); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	got, err = message.Prune(decoded(t, list(toolRow("tool_call", "t", ""), toolRow("tool_result", "t", ""))))
	want = `{"messages":` + list(toolRow("tool_call", "t", ""), toolRow("tool_result", "t", "")) +
		`,"removed":[],"events":[{"type":"tool_pair_validated","metadata":{"total_messages":2,"orphan_count":0}}]}`
	if text := written(got.Canonical(), err); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if _, err := message.Prune("s"); err == nil || err.Error() != refusedContainer {
		t.Errorf("no list: %v", err)
	}
}

func toolRow(typ, tool, id string) string {
	row := `{"role":"assistant","content":"","metadata":{"type":"` + typ + `","tool_name":"` + tool + `"`
	if id != "" {
		row += `,"tool_call_id":"` + id + `"`
	}
	return row + `}}`
}

func list(items ...string) string {
	text := "["
	for i, item := range items {
		if i > 0 {
			text += ","
		}
		text += item
	}
	return text + "]"
}
