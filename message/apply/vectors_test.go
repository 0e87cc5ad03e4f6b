package apply_test

import (
	"bufio"
	"bytes"
	"os"
	"testing"

	"github.com/parley-hub/parley/message/apply"
	"github.com/parley-hub/parley/message/value"
)

// TestVectors runs the spec's vectors through Apply, as `parley message apply`
// does, and compares by the spec's equality.
func TestVectors(t *testing.T) {
	t.Parallel()
	vectors, err := os.ReadFile("../testdata/agent-message-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := apply.Apply(t.Context(), bytes.NewReader(vectors), &out); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(&out)
	answers.Buffer(nil, 1<<20)
	count := 0
	for line := range bytes.Lines(vectors) {
		want := decode(t, line)
		name := value.Text(want.At("name"))
		if !answers.Scan() {
			t.Fatalf("%s: there is no answer", name)
		}
		got := decode(t, answers.Bytes())
		count++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect := value.New().Set("name", name)
			if refusal, ok := want.Get("error"); ok {
				expect.Set("error", refusal)
			} else if preferred, ok := want.Get("output_go"); ok {
				expect.Set("output", preferred)
			} else {
				expect.Set("output", want.At("output"))
			}
			if !value.Equal(got, expect) {
				t.Errorf("got  %s\nwant %s", text(t, got), text(t, expect))
			}
		})
	}
	if count != 226 {
		t.Errorf("ran %d vectors, want 226", count)
	}
}

func decode(t *testing.T, line []byte) *value.Map {
	t.Helper()
	v, err := value.Decode(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	m, _ := value.AsMap(v)
	return m
}

func text(t *testing.T, v any) string {
	t.Helper()
	s, err := value.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(s)
}
