package pmap_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/internal/pmap"
)

func contents(m pmap.Map[int]) (map[string]int, bool) {
	got, last, sorted := map[string]int{}, "", true
	for k, v := range m.All() {
		sorted = sorted && (len(got) == 0 || last < k)
		got[k], last = v, k
	}
	return got, sorted && len(got) == m.Len()
}

// A map does what Go's map does, and no change reaches an older one.
func TestMapIsAMapAndOldOnesStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m pmap.Map[int]
		model := map[string]int{}
		type version struct {
			m     pmap.Map[int]
			model map[string]int
		}
		versions := []version{{m, maps.Clone(model)}}
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			key := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "key"))
			if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
				m = m.Delete(key)
				delete(model, key)
			} else {
				value := rapid.Int().Draw(t, "value")
				m = m.Set(key, value)
				model[key] = value
			}
			versions = append(versions, version{m, maps.Clone(model)})
		}
		for _, v := range versions {
			got, ordered := contents(v.m)
			if diff := cmp.Diff(v.model, got); diff != "" || !ordered {
				t.Fatalf("ordered %v:\n%s", ordered, diff)
			}
			for k, want := range v.model {
				if value, ok := v.m.Get(k); !ok || value != want {
					t.Fatalf("%s is %d, %v", k, value, ok)
				}
			}
			if _, ok := v.m.Get("none"); ok {
				t.Fatal("a key that was never set is found")
			}
		}
	})
}

// Keys in order are the worst case of a plain tree. Allocations are counted in
// the whole process, so nothing else runs beside.
func TestChangesAreCheap(t *testing.T) { //nolint:paralleltest // see above
	var m pmap.Map[int]
	const n = 20_000
	for i := range n {
		m = m.Set(fmt.Sprintf("%08d", i), i)
	}
	allocs := testing.AllocsPerRun(1000, func() { m.Set("00010000", -1) })
	if allocs > 100 {
		t.Errorf("a change of %d keys copies %.0f nodes", n, allocs)
	}
	for key := range m.All() {
		if key != "00000000" {
			t.Errorf("the first key is %s", key)
		}
		break
	}
}
