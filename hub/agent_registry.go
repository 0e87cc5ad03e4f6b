package hub

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/identity"
)

// Profile is who an identity is and what it may do. It is a snapshot: nothing in
// it may be changed.
type Profile = profile.Profile

// Details are what an identity tells of itself and what the hub has observed
// of it.
type Details = profile.Details

// member is a registered identity: its profile, and what lives only while the
// hub does.
type member struct {
	id      string
	current atomic.Pointer[profile.Record]

	// write serializes changes of the profile.
	write sync.Mutex
	// opening serializes the opening of channels where their number is bounded.
	opening sync.Mutex
	// asking serializes the asking of requests, whose number is bounded.
	asking sync.Mutex

	inbox inbox
	link  link
	seen  atomic.Int64 // when it last came, spoke or left, in nanoseconds; 0: not in this process

	// transient holds the details of an adopted identity; nil: it is registered.
	transient atomic.Pointer[profile.Full]
}

func (m *member) profile() Profile { return m.current.Load().Profile }
func (m *member) name() string     { return m.current.Load().Passport.Name }

// registry is every identity in memory, by id, by name and in order. Adopted ones
// are found by id only.
type registry struct {
	mu      sync.RWMutex
	ids     map[string]*member
	names   map[string]*member
	order   []*member // by id, which is by age
	adopted int       // how many of ids are not registered
}

func (r *registry) byID(id string) *member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[id]
}

func (r *registry) byName(name string) *member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.names[name]
}

func (r *registry) all() []*member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.order)
}

func (r *registry) size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.order)
}

// add adds a registered identity. One that was adopted under the id keeps its
// endpoints and becomes this one.
func (r *registry) add(m *member) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.make()
	if old := r.ids[m.id]; old != nil && old.transient.Load() != nil {
		old.current.Store(m.current.Load())
		old.transient.Store(nil)
		r.adopted--
		m = old
	}
	r.ids[m.id] = m
	r.names[m.name()] = m
	at, _ := slices.BinarySearchFunc(r.order, m.id, compareMember)
	r.order = slices.Insert(r.order, at, m)
	return m
}

func (r *registry) make() {
	if r.ids == nil {
		r.ids, r.names = map[string]*member{}, map[string]*member{}
	}
}

func (r *registry) remove(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[m.id] != m {
		return
	}
	delete(r.ids, m.id)
	if m.transient.Load() != nil {
		r.adopted--
		return
	}
	if r.names[m.name()] == m {
		delete(r.names, m.name())
	}
	if at, ok := slices.BinarySearchFunc(r.order, m.id, compareMember); ok {
		r.order = slices.Delete(r.order, at, at+1)
	}
}

func (r *registry) unbindAll() {
	for _, m := range r.all() {
		m.link.clear()
	}
}

func compareMember(m *member, id string) int { return cmp.Compare(m.id, id) }

// require returns the member or the refusal of an unknown id.
func (r *registry) require(id string) (*member, error) {
	if m := r.byID(id); m != nil {
		return m, nil
	}
	return nil, fault.New(fault.NotFound, "agent '%s' not found: nobody is registered under that id", id).Because(fault.NoAgent)
}

// Agent returns an identity by id or, failing that, by name: where a name is
// somebody else's id, the id wins.
func (h *Hub) Agent(nameOrID string) (Profile, error) {
	if m := h.registry.byID(nameOrID); m != nil {
		return m.profile(), nil
	}
	if m := h.registry.byName(nameOrID); m != nil {
		return m.profile(), nil
	}
	_, err := h.registry.require(nameOrID)
	return Profile{}, err
}

// AgentByID returns an identity by id only.
func (h *Hub) AgentByID(id string) (Profile, error) {
	m, err := h.registry.require(id)
	if err != nil {
		return Profile{}, err
	}
	return m.profile(), nil
}

// FindAgent returns the id that a name has.
func (h *Hub) FindAgent(name string) (id string, ok bool) {
	m := h.registry.byName(name)
	if m == nil {
		return "", false
	}
	if other := h.registry.byID(name); other != nil {
		return other.id, true // an old name that is somebody's id: the id wins
	}
	return m.id, true
}

// Name returns the name that an id has, or the id itself if nobody has it.
func (h *Hub) Name(id string) string {
	if m := h.registry.byID(id); m != nil {
		return m.name()
	}
	return id
}

// AgentQuery selects and orders identities.
type AgentQuery struct {
	identity.Query
	Names  bool // Text is looked for in names too
	ByName bool // else in the order of registration
	Limit  int  // zero or less selects none
}

// Agents lists identities.
func (h *Hub) Agents(ctx context.Context, q AgentQuery) ([]Profile, error) {
	var found []Profile
	for _, m := range h.registry.all() {
		if !q.ByName && len(found) >= q.Limit {
			break
		}
		wanted := q.Query
		if q.Names && strings.Contains(strings.ToLower(m.name()), strings.ToLower(q.Text)) {
			wanted.Text = ""
		}
		selected, err := h.matches(ctx, wanted, m)
		if err != nil {
			return nil, err
		}
		if selected {
			found = append(found, m.profile())
		}
	}
	if q.ByName {
		slices.SortStableFunc(found, func(a, b Profile) int { return cmp.Compare(a.Passport.Name, b.Passport.Name) })
	}
	return found[:min(max(q.Limit, 0), len(found))], nil
}

// Capabilities maps each capability to the ids that claim or have shown it,
// sorted. It reads every resume.
func (h *Hub) Capabilities(ctx context.Context) (map[string][]string, error) {
	caps := map[string][]string{}
	for _, m := range h.registry.all() {
		d, err := h.detailsOf(ctx, m)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range d.Resume.Capabilities() {
			caps[c] = append(caps[c], m.id)
		}
	}
	return caps, nil
}
