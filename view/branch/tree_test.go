package branch_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/view/branch"
)

func node(id string, order int64, at ...string) branch.Node {
	n := branch.Node{ID: id, Order: order}
	if len(at) == 2 {
		n.Fork = branch.ForkPoint{Source: at[0], MessageID: at[1], MessageIndex: 1}
	}
	return n
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	nodes := []branch.Node{
		node("main", 1), node("lone", 2), node("b", 4, "main", "m-2"), node("a", 3, "main", "m-2"), node("late", 5, "main", "m-9"), node("deep", 6, "a", "m-3"),
	}
	places := branch.Places(nodes)
	spec.Check(t, "hpd-events#69: ancestors by depth", func(t *spec.T) {
		t.Equal(places["main"].Ancestors, map[string]string(nil))
		t.Equal(places["a"].Ancestors, map[string]string{"0": "main"})
		t.Equal(places["deep"].Ancestors, map[string]string{"0": "main", "1": "a"})
	})
	spec.Check(t, "hpd-events#70 hpd-events#82: the source is 0, forks follow in order of creation", func(t *spec.T) {
		for _, id := range []string{"main", "a", "b"} {
			t.Equal(places[id].Siblings, []string{"main", "a", "b"})
			t.Equal(places[id].SiblingIndex, int64(slices.Index(places[id].Siblings, id)))
		}
		t.Equal(places["lone"].Siblings, []string{"lone"})
		t.Equal(places["deep"].Siblings, []string{"a", "deep"})
		t.Equal(places["late"].Siblings, []string{"main", "late"})
	})
	spec.Check(t, "hpd-events#71: every member counts all", func(t *spec.T) {
		t.Equal([]int64{places["main"].TotalSiblings, places["a"].TotalSiblings, places["b"].TotalSiblings, places["lone"].TotalSiblings}, []int64{3, 3, 3, 1})
	})
	spec.Check(t, "hpd-events#72: pointers follow the order", func(t *spec.T) {
		t.Equal(places["main"].PreviousSiblingID, (*string)(nil))
		t.Equal(places["main"].NextSiblingID, new("a"))
		t.Equal(places["a"].PreviousSiblingID, new("main"))
		t.Equal(places["a"].NextSiblingID, new("b"))
		t.Equal(places["b"].PreviousSiblingID, new("a"))
		t.Equal(places["b"].NextSiblingID, (*string)(nil))
		t.Equal(places["b"].OriginalBranchID, new("main"))
	})
	spec.Check(t, "hpd-events#74: a source lists its children", func(t *spec.T) {
		t.Equal(places["main"].ChildBranches, []string{"a", "b", "late"})
		t.Equal(places["a"].ChildBranches, []string{"deep"})
		t.Equal(places["lone"].ChildBranches, []string{})
	})
	spec.Check(t, "hpd-events#74: a fork that is itself forked keeps its own group", func(t *spec.T) {
		before := branch.Places(nodes[:5])
		t.Equal(places["a"].SiblingIndex, before["a"].SiblingIndex)
		t.Equal(branch.Changed(before, places), []string{"a", "deep"})
		t.Equal(branch.Changed(branch.Places(nodes[:2]), branch.Places(nodes[:3])), []string{"b", "main"})
		t.Equal(branch.Changed(places, places), []string(nil))
	})
	spec.Check(t, "hpd-events#80: those that are left are counted again", func(t *spec.T) {
		left := branch.Places([]branch.Node{nodes[0], nodes[2]})
		t.Equal(left["b"].SiblingIndex, int64(1))
		t.Equal(left["b"].TotalSiblings, int64(2))
		t.Equal(left["b"].PreviousSiblingID, new("main"))
		t.Equal(left["main"].ChildBranches, []string{"b"})
	})
	c := &spec.T{T: t}
	c.Equal(branch.Subtree(nodes, "main"), []string{"b", "deep", "a", "late", "main"})
	c.Equal(branch.Subtree(nodes, "lone"), []string{"lone"})
	// A cycle and a missing source, which no server writes, are tolerated.
	c.Equal(len(branch.Places([]branch.Node{node("x", 1, "y", "m"), node("y", 2, "x", "m"), node("z", 3, "gone", "m")})), 3)
	c.Equal(len(branch.Subtree([]branch.Node{node("x", 1, "y", "m"), node("y", 2, "x", "m")}, "x")), 2)
}

// Whatever was forked: pointers lead through a group and back, indexes count
// it, and the order in which branches are listed does not matter.
func TestLawPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := []branch.Node{node("main", 0)}
		for i := range rapid.IntRange(0, 12).Draw(t, "forks") {
			source := rapid.SampledFrom(nodes).Draw(t, "source").ID
			nodes = append(nodes, node(fmt.Sprintf("b%02d", i), int64(i+1), source, fmt.Sprintf("m%d", rapid.IntRange(0, 2).Draw(t, "message"))))
		}
		places := branch.Places(nodes)
		shuffled := rapid.Permutation(nodes).Draw(t, "order")
		if changed := branch.Changed(places, branch.Places(shuffled)); len(changed) > 0 {
			t.Fatalf("the order of listing changes %v", changed)
		}
		for id, p := range places {
			if p.Siblings[p.SiblingIndex] != id || int(p.TotalSiblings) != len(p.Siblings) {
				t.Fatalf("%s is not at its index in %v", id, p.Siblings)
			}
			if p.NextSiblingID != nil && places[*p.NextSiblingID].PreviousSiblingID == nil {
				t.Fatalf("%s points to %s, which points to nobody", id, *p.NextSiblingID)
			}
			for _, child := range p.ChildBranches {
				if *places[child].ForkedFrom != id || len(places[child].Ancestors) != len(p.Ancestors)+1 {
					t.Fatalf("%s is no child of %s", child, id)
				}
			}
		}
	})
}
