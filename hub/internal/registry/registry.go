// Package registry holds every identity in memory: who it is, at which endpoints it
// reads, and which places of its inbox are taken. It does not access the journal.
package registry

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/reader"
	"github.com/parley-hub/parley/identity"
)

// Member is a registered identity: its profile, and its state that is kept in
// memory only.
type Member struct {
	ID      string
	Current atomic.Pointer[profile.Record]

	// Write serializes changes of the profile.
	Write sync.Mutex
	// Opening serializes the opening of channels if their number is bounded.
	Opening sync.Mutex
	// Asking serializes the asking of requests, whose number is bounded.
	Asking sync.Mutex

	Places Places
	Link   reader.Link
	Seen   atomic.Int64 // when it last arrived, spoke or left, in nanoseconds; 0: not in this process

	// Transient holds the details of an adopted identity; nil: it is registered.
	Transient atomic.Pointer[profile.Full]
}

// Profile returns who the identity is and what it may do.
func (m *Member) Profile() profile.Profile { return m.Current.Load().Profile }

// Name returns the name of the identity.
func (m *Member) Name() string { return m.Current.Load().Passport.Name }

// Registry holds every identity in memory, by id, by name and in order. Adopted
// identities are found by id only.
type Registry struct {
	mu      sync.RWMutex
	ids     map[string]*Member
	names   map[string]*Member
	order   []*Member // by id, which is by age
	adopted int       // how many of ids are not registered
}

// ByID returns the identity with an id, or nil.
func (r *Registry) ByID(id string) *Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[id]
}

// ByName returns the registered identity with a name, or nil.
func (r *Registry) ByName(name string) *Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.names[name]
}

// All returns the registered identities in the order of their ids.
func (r *Registry) All() []*Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.order)
}

// Size returns how many identities are registered.
func (r *Registry) Size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.order)
}

// Add adds a registered identity. An adopted identity with the same id keeps its
// endpoints and becomes the registered one.
func (r *Registry) Add(m *Member) *Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.make()
	if old := r.ids[m.ID]; old != nil && old.Transient.Load() != nil {
		old.Current.Store(m.Current.Load())
		old.Transient.Store(nil)
		r.adopted--
		m = old
	}
	r.ids[m.ID] = m
	r.names[m.Name()] = m
	at, _ := slices.BinarySearchFunc(r.order, m.ID, compareID)
	r.order = slices.Insert(r.order, at, m)
	return m
}

func (r *Registry) make() {
	if r.ids == nil {
		r.ids, r.names = map[string]*Member{}, map[string]*Member{}
	}
}

// Remove removes an identity, unless another one has replaced it.
func (r *Registry) Remove(m *Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[m.ID] != m {
		return
	}
	delete(r.ids, m.ID)
	if m.Transient.Load() != nil {
		r.adopted--
		return
	}
	if r.names[m.Name()] == m {
		delete(r.names, m.Name())
	}
	if at, ok := slices.BinarySearchFunc(r.order, m.ID, compareID); ok {
		r.order = slices.Delete(r.order, at, at+1)
	}
}

// UnbindAll removes every endpoint of every registered identity.
func (r *Registry) UnbindAll() {
	for _, m := range r.All() {
		m.Link.Clear()
	}
}

func compareID(m *Member, id string) int { return cmp.Compare(m.ID, id) }

// Require returns the member with an id, or an error if there is none.
func (r *Registry) Require(id string) (*Member, error) {
	if m := r.ByID(id); m != nil {
		return m, nil
	}
	return nil, fault.New(fault.NotFound, "agent '%s' not found: nobody is registered under that id", id).Because(fault.NoAgent)
}

// Adopt adds a transient identity, unless it exists.
func (r *Registry) Adopt(m *Member, limit int) (*Member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.make()
	if old := r.ids[m.ID]; old != nil {
		if old.Transient.Load() == nil {
			return nil, fault.New(fault.Conflict, "'%s' is a registered identity, and cannot be adopted", m.ID)
		}
		return old, nil
	}
	if r.adopted >= limit {
		return nil, fault.New(fault.TooLarge, "%d identities are adopted and not registered, which is the limit; register or remove some, or raise limits.transient", r.adopted)
	}
	r.adopted++
	r.ids[m.ID] = m
	return m, nil
}

// Profiles returns the profiles of ids, except for one id and for unknown ids.
func (r *Registry) Profiles(ids []string, without string) []profile.Profile {
	found := make([]profile.Profile, 0, len(ids))
	for _, id := range ids {
		if m := r.ByID(id); m != nil && id != without {
			found = append(found, m.Profile())
		}
	}
	return slices.Clip(found)
}

// Human reports whether an id is that of a person.
func (r *Registry) Human(id string) bool {
	m := r.ByID(id)
	return m != nil && m.Profile().Passport.Kind.Is(identity.Human)
}
