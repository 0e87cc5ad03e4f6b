package channel

import "slices"

// Members are the members of a channel at one moment. It is immutable: a join or a
// leave makes another.
type Members interface {
	Has(agent string) bool
	// Each calls yield for each member, in a fixed order, until it returns false.
	Each(yield func(agent string) bool)
	Count() int
}

// NewMembers returns the listed agents as members.
func NewMembers(agents ...string) Members { return memberList(agents) }

type memberList []string

func (l memberList) Has(agent string) bool { return slices.Contains(l, agent) }
func (l memberList) Count() int            { return len(l) }
func (l memberList) Each(yield func(agent string) bool) {
	for _, agent := range l {
		if !yield(agent) {
			return
		}
	}
}

// Members returns the participants of the creation as members.
func (m *Metadata) Members() Members { return participants{m} }

// participants holds one pointer, so that making it allocates nothing.
type participants struct{ m *Metadata }

func (p participants) Has(agent string) bool { return p.m.Has(agent) }
func (p participants) Count() int            { return len(p.m.Participants) }
func (p participants) Each(yield func(agent string) bool) {
	for i := range p.m.Participants {
		if !yield(p.m.Participants[i].Agent) {
			return
		}
	}
}
