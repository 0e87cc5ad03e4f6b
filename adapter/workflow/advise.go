package workflow

import (
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/graph"
)

// Advise returns likely mistakes in a graph that is nevertheless accepted: names
// that take no part, rules that never fire, loops on a flag.
func (a Adapter) Advise(m *channel.Metadata) []string {
	s, err := a.begin(m)
	if err != nil {
		return nil // creation fails anyway, with a better message
	}
	// The check assumes that the first participant is the creator.
	order := slices.Insert(m.Others(m.Creator), 0, m.Creator)
	var advice []string
	for _, finding := range graph.Check(s.Graph, order) {
		advice = append(advice, finding.String())
	}
	return advice
}
