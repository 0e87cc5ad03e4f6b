package graph

import (
	"cmp"
	"slices"
	"strings"
)

// Facts is the state of a workflow channel: all that conditions and targets
// may read. It is a value; advancing makes a new one.
type Facts struct {
	Order   []string // participants by id, in their order
	Creator string   // who opened the channel

	Expected string // who may speak; "" lets anyone
	Ended    bool   // nobody may speak: the channel is to end, with Closing
	Closing  string // why, as the graph or a finish packet says it

	LastSpeaker  string // "" before the first turn
	LastEnvelope string
	Turns        int
	Vars         Vars
}

// Start returns the state of a channel before anyone has spoken.
func (g *Graph) Start(order []string, creator string, vars Vars) Facts {
	return Facts{Order: order, Creator: creator, Expected: g.initial, Vars: vars}
}

// MaySpeak reports whether a substantive envelope of the sender is in turn.
func (f *Facts) MaySpeak(sender string) bool {
	return !f.Ended && (f.Expected == "" || f.Expected == sender)
}

// speaker returns who has just spoken.
func (f *Facts) speaker(t *Turn) string {
	return cmp.Or(f.LastSpeaker, t.Sender)
}

// intern returns the participant's own string for an id, or a copy of an id that
// is not a participant's, so that a state never keeps an envelope's memory
// alive.
func (f *Facts) intern(agent string) string {
	if i := slices.Index(f.Order, agent); i >= 0 {
		return f.Order[i]
	}
	return strings.Clone(agent)
}
