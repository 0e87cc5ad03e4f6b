package graph_test

import (
	"testing"

	"github.com/parley-hub/parley/graph"
)

// BenchmarkAdvance is one turn on the cookbook's triage graph, the hub's cost
// of routing an envelope.
func BenchmarkAdvance(b *testing.B) {
	g := load(b, cookbook(b, "triage with tasks").graph)
	start := g.Start([]string{"@triage", "@digger", "@scribe"}, "@triage", vars(b, `{"job":"write"}`))
	b.Run("text", func(b *testing.B) {
		e := text("@triage")
		b.ReportAllocs()
		for b.Loop() {
			g.Advance(start, e)
		}
	})
	b.Run("packet", func(b *testing.B) {
		e := packet("@triage", `{"routing":{"kind":"text"},"context_updates":{"set":{},"delete":[]},"body":"a few words of the round's reply"}`)
		b.ReportAllocs()
		for b.Loop() {
			g.Advance(start, e)
		}
	})
}

// BenchmarkLoad is loading a graph with and without the cache.
func BenchmarkLoad(b *testing.B) {
	text := []byte(cookbook(b, "triage with tasks").graph)
	b.Run("registry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := graph.Load(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cache", func(b *testing.B) {
		c := graph.NewCache(nil, 0)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Load(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
