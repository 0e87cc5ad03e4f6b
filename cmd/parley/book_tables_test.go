package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/graph"
)

// TestChannelTypesPage: every type that a person may open has a section, its knobs
// have rows, and its expectations are those that the page says.
func TestChannelTypesPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/channels.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, a := range adapter.All() {
		m := a.Manifest()
		if !strings.Contains(page, "\n## "+m.Type+"\n") {
			t.Errorf("%s has no section", m.Type)
		}
		knobs := map[string]any{}
		if len(m.KnobsSchema) > 0 {
			if err := json.Unmarshal(m.KnobsSchema, &knobs); err != nil {
				t.Fatal(err)
			}
		}
		for knob := range knobs {
			if !strings.Contains(page, "\n| `"+knob+"` |") {
				t.Errorf("%s: the knob %s has no row", m.Type, knob)
			}
		}
		var expected []string
		for _, x := range m.Expectations {
			var params struct {
				Seconds int `json:"seconds"`
			}
			if err := json.Unmarshal(x.Params, &params); err != nil {
				t.Fatal(err)
			}
			expected = append(expected, fmt.Sprintf("`%s` %d s: `%s`", x.Name, params.Seconds, x.OnViolation))
		}
		if row := fmt.Sprintf("| `%s` | %s |\n", m.Type, strings.Join(expected, "; ")); !strings.Contains(page, row) {
			t.Errorf("the page lacks the row %s", row)
		}
	}
}

// TestGraphsPage: every condition and every target stands in a graph of the page.
func TestGraphsPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/graphs.md")
	if err != nil {
		t.Fatal(err)
	}
	files := ""
	for _, b := range blocks.FindAllStringSubmatch(string(raw), -1) {
		if b[1] == "yaml" {
			files += b[2]
		}
	}
	for _, wrong := range []string{
		`{"initial_speaker":"a","transitions":[{"when":{"name":"no such"},"then":{"name":"stay"}}]}`,
		`{"initial_speaker":"a","default_target":{"name":"no such"}}`,
	} {
		_, err := graph.Load([]byte(wrong))
		_, known, ok := strings.Cut(fmt.Sprint(err), "; registered are ")
		if names := strings.Split(known, ", "); !ok || len(names) < 5 {
			t.Fatalf("what is known is not said: %v", err)
		} else {
			for _, name := range names {
				if !strings.Contains(files, "name: "+name) {
					t.Errorf("no graph of the page has %s", name)
				}
			}
		}
	}
}
