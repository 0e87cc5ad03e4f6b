package gemini_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/value"
)

// An empty text parts nothing, unless it carries something of its own.
func TestStreamedTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts string
		want  []string
	}{
		"one":                    {`{"text":"a"},{"text":"b"}`, []string{"ab"}},
		"an empty one":           {`{"text":"a"},{"text":""},{"text":"b"}`, []string{"ab"}},
		"an empty signed one":    {`{"text":"a"},{"text":"","thoughtSignature":"s"},{"text":"b"}`, []string{"a", "b"}},
		"an empty first one":     {`{"text":""},{"text":"b"}`, []string{"b"}},
		"a thought in between":   {`{"text":"a"},{"text":"t","thought":true},{"text":"b"}`, []string{"a", "b"}},
		"a signed one that ends": {`{"text":"a","thoughtSignature":"s"},{"text":"b"}`, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := gemini.NewStream(provider.ReadOptions{})
			if _, err := stream.Add([]byte(`{"candidates":[{"content":{"parts":[` + c.parts + `]}}]}`)); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, e := range stream.Reply().Messages {
				texts = append(texts, value.Text(e.Content))
			}
			if diff := cmp.Diff(c.want, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}
