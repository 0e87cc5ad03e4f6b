package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/registry"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Profile is who an identity is and what it may do. It is a snapshot: nothing in
// it may be changed.
type Profile = profile.Profile

// Details are what an identity says of itself and what the hub has observed of it.
type Details = profile.Details

// Agent returns an identity by id or, failing that, by name: if a name equals another
// identity's id, the id wins.
func (h *Hub) Agent(nameOrID string) (Profile, error) {
	if m := h.registry.ByID(nameOrID); m != nil {
		return m.Profile(), nil
	}
	if m := h.registry.ByName(nameOrID); m != nil {
		return m.Profile(), nil
	}
	if m := h.outside(nameOrID); m != nil {
		return m.Profile(), nil
	}
	_, err := h.registry.Require(nameOrID)
	return Profile{}, err
}

// Outside lets a dialect find its identities that are not registered, by names that
// begin with a prefix. The function find adopts the identity that it returns. Only
// the dialect may register such a name.
func (h *Hub) Outside(prefix string, find func(name string) (id string, ok bool)) {
	h.outsiders.Store(prefix, find)
}

// finderOf returns the function that Outside was given for a name's prefix; nil:
// there is none.
func (h *Hub) finderOf(name string) (find func(string) (string, bool)) {
	h.outsiders.Range(func(prefix, finder any) bool {
		if p, ok := prefix.(string); ok && strings.HasPrefix(name, p) {
			find, _ = finder.(func(string) (string, bool))
		}
		return find == nil
	})
	return find
}

// outside finds an identity that only its dialect knows by name, or nil.
func (h *Hub) outside(name string) *registry.Member {
	if find := h.finderOf(name); find != nil {
		if id, ok := find(name); ok {
			return h.registry.ByID(id)
		}
	}
	return nil
}

// AgentByID returns an identity by id only.
func (h *Hub) AgentByID(id string) (Profile, error) {
	m, err := h.registry.Require(id)
	if err != nil {
		return Profile{}, err
	}
	return m.Profile(), nil
}

// FindAgent returns the id that a name has.
func (h *Hub) FindAgent(name string) (id string, ok bool) {
	m := h.registry.ByName(name)
	if m == nil {
		m = h.outside(name)
	}
	if m == nil {
		return "", false
	}
	if other := h.registry.ByID(name); other != nil {
		return other.ID, true // an old name that equals an id: the id wins
	}
	return m.ID, true
}

// Name returns the name that an id has, or the id itself if nobody has it.
func (h *Hub) Name(id string) string {
	if m := h.registry.ByID(id); m != nil {
		return m.Name()
	}
	return id
}

// AgentQuery selects and orders identities.
type AgentQuery struct {
	identity.Query
	Names  bool // Text is also searched in names
	ByName bool // default: in the order of registration
	Limit  int  // zero or less selects none
}

// Agents lists identities.
func (h *Hub) Agents(ctx context.Context, q AgentQuery) ([]Profile, error) {
	var found []Profile
	for _, m := range h.registry.All() {
		if !q.ByName && len(found) >= q.Limit {
			break
		}
		wanted := q.Query
		if q.Names && strings.Contains(strings.ToLower(m.Name()), strings.ToLower(q.Text)) {
			wanted.Text = ""
		}
		selected, err := h.matches(ctx, wanted, m)
		if err != nil {
			return nil, err
		}
		if selected {
			found = append(found, m.Profile())
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
	for _, m := range h.registry.All() {
		d, err := h.detailsOf(ctx, m)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range d.Resume.Capabilities() {
			caps[c] = append(caps[c], m.ID)
		}
	}
	return caps, nil
}

// Details returns what an identity tells of itself, by id.
func (h *Hub) Details(ctx context.Context, id string) (Details, error) {
	m, err := h.registry.Require(id)
	if err != nil {
		return Details{}, err
	}
	d, err := h.detailsOf(ctx, m)
	if err != nil {
		return Details{}, err
	}
	return d.Details, nil
}

// detailsOf reads the details of an identity, unless they are in the cache.
func (h *Hub) detailsOf(ctx context.Context, m *registry.Member) (*profile.Full, error) {
	if d := m.Transient.Load(); d != nil {
		return d, nil
	}
	r := m.Current.Load()
	if d := h.profiles.Get(m.ID, r.Seq); d != nil {
		return d, nil
	}
	d := &profile.Full{}
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(m.ID), journal.ReadOptions{From: r.Base, To: r.Seq}) {
		if err != nil {
			return nil, h.unread(m, err)
		}
		if _, err := d.Decode(entry); err != nil {
			return nil, h.unread(m, err)
		}
	}
	if !d.Complete(r) {
		return nil, h.unread(m, errors.New("records are missing"))
	}
	h.profiles.Put(m.ID, d)
	return d, nil
}

// unread returns the error for details that could not be read: the identity may just
// have been unregistered.
func (h *Hub) unread(m *registry.Member, cause error) error {
	if h.registry.ByID(m.ID) != m {
		return fault.New(fault.NotFound, "agent '%s' not found: it was just unregistered", m.ID).Because(fault.NoAgent)
	}
	return unavailable(cause)
}

// matches reports whether a search selects an identity. It reads the details only if the
// brief does not decide it.
func (h *Hub) matches(ctx context.Context, q identity.Query, m *registry.Member) (bool, error) {
	r := m.Current.Load()
	match, rest := r.Decide(q)
	if rest == nil {
		return match, nil
	}
	d, err := h.detailsOf(ctx, m)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return rest.Matches(r.Passport, d.Resume), nil
}

// loadRegistry reads every identity, and finishes what an interrupted
// unregistration left.
func (h *Hub) loadRegistry(ctx context.Context) error {
	opts := journal.LogsOptions{Family: schema.FamilyAgent, Limit: journal.MaxPageEntries}
	for {
		page, err := h.journal.Logs(ctx, h.tenant.Directory(), opts)
		if err != nil {
			return unavailable(err)
		}
		for _, info := range page.Logs {
			opts.After = info.Log
			if err := h.loadMember(ctx, info.Log.ID); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func (h *Hub) loadMember(ctx context.Context, id string) error {
	var r profile.Record
	var d profile.Full
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(id), journal.ReadOptions{}) {
		if err != nil {
			h.log.Error("identity cannot be read and is left out", "agent_id", id, "error", err)
			return nil
		}
		stored, err := d.Decode(entry)
		if err == nil {
			err = r.Apply(&stored, entry)
		}
		if err != nil {
			h.log.Error("identity cannot be read and is left out", "agent_id", id, "seq", entry.Seq, "error", err)
			return nil
		}
		if stored.Kind == schema.AgentUnregistered {
			return h.forget(ctx, id)
		}
	}
	if r.Passport == nil || d.Resume == nil || r.Rule == nil {
		return nil
	}
	if err := r.Measure(&d); err != nil {
		return err
	}
	r.Enforce(h.opts.Limits.Inbox)
	m := &registry.Member{ID: id}
	m.Current.Store(&r)
	h.registry.Add(m)
	return nil
}

// Presence says when and where an identity reads, as far as this process knows.
type Presence struct {
	Online      bool
	LastSeen    time.Time // when it last connected, spoke or disconnected; zero: not since the hub opened
	Connections []Connection
}

// Online reports whether an identity reads anywhere.
func (h *Hub) Online(agent string) bool {
	m := h.registry.ByID(agent)
	return m != nil && m.Link.Present()
}

// Attend records that an identity reads a stream that is not an endpoint, until leave is
// called. It records as many streams as an identity may have endpoints.
func (h *Hub) Attend(agent, dialect, address string) (leave func()) {
	m := h.registry.ByID(agent)
	if m == nil {
		return func() {}
	}
	since := h.now()
	m.Seen.Store(since.UnixNano())
	end := m.Link.Attend(Connection{Dialect: dialect, Address: address, Since: since.UTC()}, h.opts.Limits.Endpoints)
	return func() {
		m.Seen.Store(h.now().UnixNano())
		end()
	}
}

// Presence returns where an identity reads.
func (h *Hub) Presence(agent string) Presence {
	m := h.registry.ByID(agent)
	if m == nil {
		return Presence{}
	}
	var p Presence
	if at := m.Seen.Load(); at != 0 {
		p.LastSeen = time.Unix(0, at).UTC()
	}
	p.Connections = m.Link.Connections()
	p.Online = len(p.Connections) > 0
	return p
}

// OpenChannelsOf counts the channels of an identity that have not ended, up to
// most.
func (h *Hub) OpenChannelsOf(ctx context.Context, agent string, most int) (n int, err error) {
	for _, err := range journal.IndexAll(ctx, h.journal, journal.ScanOptions{Prefix: schema.Key(schema.IndexTurn, agent, "")}) {
		if err != nil {
			return 0, unavailable(err)
		}
		if n++; n >= most {
			break
		}
	}
	return n, nil
}
