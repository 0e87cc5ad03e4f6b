package conversation_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/internal/scale"
)

// A hub holds many idle conversations. What this package and channel hold for one
// must leave space for the hub's own share of a kilobyte. Every channel has ids of
// its own here, which is the worst case.
func TestMemory(t *testing.T) {
	count := scale.N(2000)
	shared := channel.NewInterner(1) // shares manifests, but no ids
	records := make([][]byte, count)
	for i := range records {
		m := adaptertest.Metadata(adapter, "", fmt.Sprintf("%032x", 2*i), fmt.Sprintf("%032x", 2*i+1))
		m.ID = fmt.Sprintf("%032x", i)
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
	before := heap()
	for i := range all {
		m, err := channel.DecodeMetadata(records[i], shared)
		if err != nil {
			t.Fatal(err)
		}
		p, err := adaptertest.Open(adapter, m)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 10 {
			e := adaptertest.Text(strings.Clone(m.Participants[turn%2].Agent), "hello")
			e.ID = fmt.Sprintf("%032x", turn)
			p.State = adapter.Fold(p.State, e)
		}
		all[i] = loaded{m, p.State}
	}
	each := float64(heap()-before) / float64(count)
	runtime.KeepAlive(all)
	runtime.KeepAlive(records)
	t.Logf("%.0f bytes a channel", each)
	if each > 800 {
		t.Errorf("a loaded conversation costs %.0f bytes; at most 800 of 1024 are ours", each)
	}
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
