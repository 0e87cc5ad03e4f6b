package branch

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Tree is a branch's place among the branches of its session, as
// BRANCH_TREE_UPDATED reports it.
type Tree struct {
	ForkedFrom           *string  `json:"forkedFrom,omitzero"`
	ForkedAtMessageID    *string  `json:"forkedAtMessageId,omitzero"`
	ForkedAtMessageIndex *int64   `json:"forkedAtMessageIndex,omitzero"`
	SiblingIndex         int64    `json:"siblingIndex"`
	TotalSiblings        int64    `json:"totalSiblings"`
	IsOriginal           bool     `json:"isOriginal"`
	OriginalBranchID     *string  `json:"originalBranchId,omitzero"`
	PreviousSiblingID    *string  `json:"previousSiblingId,omitzero"`
	NextSiblingID        *string  `json:"nextSiblingId,omitzero"`
	ChildBranches        []string `json:"childBranches"`
}

// Sum returns a checksum of a place.
func (t *Tree) Sum() string {
	data, err := json.Marshal(t, json.Deterministic(true))
	if err != nil {
		return "" // ids were checked before
	}
	h := fnv.New64a()
	_, _ = h.Write(data) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// ForkPoint is where a branch was forked off. Its zero value is a branch that
// is not a fork.
type ForkPoint struct {
	Source       string `json:"sourceBranchId,omitzero"`
	MessageID    string `json:"fromMessageId,omitzero"`
	MessageIndex int64  `json:"resolvedMessageIndex,omitzero"`
}

// Node is one branch of a session: all that its tree fields are computed from.
type Node struct {
	ID    string
	Fork  ForkPoint
	Order int64 // ascending in the order of creation
}

// Place is a branch's tree fields with its ancestors and its sibling group.
type Place struct {
	Tree
	// Ancestors maps the depth, from "0" at the root, to a branch.
	Ancestors map[string]string
	// Siblings are the group in order of their index, the branch included.
	Siblings []string
}

// Places computes the tree fields of every branch of a session. A fork whose
// source is gone is in no group, and has no ancestors beyond what is known.
func Places(nodes []Node) map[string]Place {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
	})
	byID := make(map[string]*Node, len(nodes))
	for i := range nodes {
		byID[nodes[i].ID] = &nodes[i]
	}
	type point struct{ source, message string }
	children := map[string][]string{}
	forks := map[point][]string{}
	first := map[string]point{} // the point at which a source was first forked
	for _, n := range nodes {
		if n.Fork.Source == "" {
			continue
		}
		p := point{n.Fork.Source, n.Fork.MessageID}
		children[p.source] = append(children[p.source], n.ID)
		forks[p] = append(forks[p], n.ID)
		if _, ok := first[p.source]; !ok {
			first[p.source] = p
		}
	}
	places := make(map[string]Place, len(nodes))
	for _, n := range nodes {
		place := Place{Tree: Tree{IsOriginal: n.Fork.Source == "", ChildBranches: children[n.ID]}}
		if place.ChildBranches == nil {
			place.ChildBranches = []string{}
		}
		group := []string{n.ID}
		switch {
		case n.Fork.Source != "":
			place.ForkedFrom, place.ForkedAtMessageID = new(n.Fork.Source), new(n.Fork.MessageID)
			place.ForkedAtMessageIndex, place.OriginalBranchID = new(n.Fork.MessageIndex), new(n.Fork.Source)
			place.Ancestors = ancestors(&n, byID)
			group = forks[point{n.Fork.Source, n.Fork.MessageID}]
			if byID[n.Fork.Source] != nil {
				group = append([]string{n.Fork.Source}, group...)
			}
		case first[n.ID] != point{}:
			group = append([]string{n.ID}, forks[first[n.ID]]...)
		}
		place.among(n.ID, group)
		places[n.ID] = place
	}
	return places
}

// among sets the sibling fields of one member of a group.
func (p *Place) among(id string, group []string) {
	at := slices.Index(group, id)
	p.Siblings = group
	p.SiblingIndex, p.TotalSiblings = int64(at), int64(len(group))
	if at > 0 {
		p.PreviousSiblingID = new(group[at-1])
	}
	if at+1 < len(group) {
		p.NextSiblingID = new(group[at+1])
	}
}

// ancestors returns the sources up to the root. A cycle, which no server
// writes, ends where it closes.
func ancestors(n *Node, byID map[string]*Node) map[string]string {
	var chain []string
	for n != nil && n.Fork.Source != "" && len(chain) <= len(byID) {
		chain = append(chain, n.Fork.Source)
		n = byID[n.Fork.Source]
	}
	slices.Reverse(chain)
	out := make(map[string]string, len(chain))
	for depth, id := range chain {
		out[strconv.Itoa(depth)] = id
	}
	return out
}

// Subtree lists a branch and all that was forked from it, leaves first: the
// order in which they are deleted.
func Subtree(nodes []Node, id string) []string {
	children := map[string][]string{}
	for _, n := range nodes {
		children[n.Fork.Source] = append(children[n.Fork.Source], n.ID)
	}
	var out []string
	seen := map[string]bool{}
	var walk func(string)
	walk = func(id string) {
		if seen[id] {
			return
		}
		seen[id] = true
		for _, child := range children[id] {
			walk(child)
		}
		out = append(out, id)
	}
	walk(id)
	return out
}

// Changed lists the branches whose tree fields differ between two moments,
// those that are new included, in the order of their ids.
func Changed(before, after map[string]Place) []string {
	var out []string
	for id, now := range after {
		if then, ok := before[id]; !ok || !sameTree(&then.Tree, &now.Tree) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func sameTree(a, b *Tree) bool {
	same := func(x, y *string) bool { return (x == nil) == (y == nil) && deref(x) == deref(y) }
	return same(a.ForkedFrom, b.ForkedFrom) && same(a.ForkedAtMessageID, b.ForkedAtMessageID) &&
		a.SiblingIndex == b.SiblingIndex && a.TotalSiblings == b.TotalSiblings && a.IsOriginal == b.IsOriginal &&
		same(a.OriginalBranchID, b.OriginalBranchID) && same(a.PreviousSiblingID, b.PreviousSiblingID) &&
		same(a.NextSiblingID, b.NextSiblingID) && slices.Equal(a.ChildBranches, b.ChildBranches)
}
