package hub

import (
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/identity"
)

// situation is the channel as the batch leaves it.
func (b *batch) situation() expect.Situation {
	return expect.Situation{
		Adapter: b.ch.adapter, Meta: b.meta, State: b.state, Watch: b.watch.Watch, Now: b.now, Humans: &b.hub.registry,
	}
}

// due is when a wait has lasted too long. What became due while no hub ran could
// not be answered, so it gets a grace period from the opening of the hub on.
func (b *batch) due(r *rule, x expect.Wait) expect.Instant {
	due := x.Since.Plus(r.Within)
	if due > b.hub.opened {
		return due
	}
	return max(due, b.hub.opened.Plus(min(r.Within, b.hub.opts.RestartGrace)))
}

// Human reports whether an id is that of a person.
func (r *registry) Human(id string) bool {
	m := r.byID(id)
	return m != nil && m.profile().Passport.Kind.Is(identity.Human)
}
