package hub

import (
	"context"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Adopt adds an identity that is not stored, under an id that its dialect derives
// from whatever the identity is known by there. It may do what a registered one
// may, but is not listed and not found by name. It costs no write and is gone with
// the process. Register with its id makes it lasting; Unregister removes it.
// Adopting it again returns it as it is.
func (h *Hub) Adopt(_ context.Context, id string, r Registration) (Profile, error) {
	if !envelope.ValidID(id) {
		return Profile{}, fault.New(fault.Invalid, "%.100q is not an id: 32 lower-case hexadecimal digits are", id)
	}
	if err := r.Passport.Validate(); err != nil {
		return Profile{}, err
	}
	if r.Rule != nil {
		if err := r.Rule.CheckBounds(h.opts.Limits.RuleGlobs); err != nil {
			return Profile{}, err
		}
	}
	r.ID = id
	m, d, err := h.newMember(r)
	if err != nil {
		return Profile{}, err
	}
	m.transient.Store(d)
	if m, err = h.registry.adopt(m, h.opts.Limits.Transient); err != nil {
		return Profile{}, err
	}
	return m.profile(), nil
}

// adopt adds a transient identity, unless it is there.
func (r *registry) adopt(m *member, limit int) (*member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.make()
	if old := r.ids[m.id]; old != nil {
		if old.transient.Load() == nil {
			return nil, fault.New(fault.Conflict, "'%s' is a registered identity, and cannot be adopted", m.id)
		}
		return old, nil
	}
	if r.adopted >= limit {
		return nil, fault.New(fault.TooLarge, "%d identities are adopted and not registered, which is the limit; register or remove some, or raise limits.transient", r.adopted)
	}
	r.adopted++
	r.ids[m.id] = m
	return m, nil
}

// Disown removes an adopted identity. One that was registered since, or that is
// not there, stays as it is.
func (h *Hub) Disown(id string) {
	m := h.registry.byID(id)
	if m == nil {
		return
	}
	m.write.Lock()
	defer m.write.Unlock()
	if m.transient.Load() != nil && h.registry.byID(id) == m {
		h.registry.remove(m)
		m.link.clear()
	}
}

// adopted returns an identity that is adopted and not registered.
func (h *Hub) adopted(id string) (*member, error) {
	m := h.registry.byID(id)
	if m == nil || m.transient.Load() == nil {
		return nil, fault.New(fault.NotFound, "no identity is adopted under the id '%.100s'; leave the id out, and one is made", id).Because(fault.NoAgent)
	}
	return m, nil
}

// Transient reports whether an identity is adopted and not registered.
func (h *Hub) Transient(id string) bool {
	m := h.registry.byID(id)
	return m != nil && m.transient.Load() != nil
}

func errTransient(id string) error {
	return fault.New(fault.Protocol, "'%s' is adopted and not registered, so nothing of it is stored; register it first", id)
}
