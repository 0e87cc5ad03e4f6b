package workflow_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/scale"
)

// A loaded workflow with the cookbook's queue must leave the hub space within four
// kilobytes, even if every channel has agents, and therefore a graph, of its own.
func TestMemory(t *testing.T) {
	if own := measure(t, func(channel int) int { return channel }); own > 4000 {
		t.Errorf("a loaded workflow costs %.0f bytes; at most 4000 of 4096 are ours", own)
	}
	if shared := measure(t, func(int) int { return 0 }); shared > 1200 {
		t.Errorf("a loaded workflow that shares its graph costs %.0f bytes, not 1200", shared)
	}
}

// measure loads channels, each with the agents of a team.
func measure(t *testing.T, team func(channel int) int) float64 {
	t.Helper()
	count := scale.N(200)
	records := make([][]byte, count)
	for i := range records {
		name := func(role int) string { return fmt.Sprintf("%032x", 3*team(i)+role) }
		g := strings.NewReplacer("@triage", name(0), "@digger", name(1), "@scribe", name(2), "\n", "").Replace(queue)
		m := adaptertest.Metadata(adapter, `{"graph":`+g+`}`, name(0), name(1), name(2))
		text, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		records[i] = text
	}
	type loaded struct {
		meta  *channel.Metadata
		state channel.State
	}
	all := make([]loaded, count)
	shared := channel.NewInterner(1)
	own := workflow.New(workflow.Options{Graphs: 1})
	before := heap()
	for i := range all {
		m, err := channel.DecodeMetadata(records[i], shared)
		if err != nil {
			t.Fatal(err)
		}
		p, err := adaptertest.Open(own, m)
		if err != nil {
			t.Fatal(err)
		}
		e := adaptertest.Envelope(m.Creator, "ag2.context.set", `{"set":{"job":"dig"}}`)
		if err := p.Post(e); err != nil {
			t.Fatal(err)
		}
		if err := p.Say(m.Creator, m.Participants[1].Agent); err != nil {
			t.Fatal(err)
		}
		all[i] = loaded{m, p.State}
	}
	each := float64(heap()-before) / float64(count)
	runtime.KeepAlive(all)
	runtime.KeepAlive(records)
	t.Logf("%.0f bytes a channel", each)
	return each
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
