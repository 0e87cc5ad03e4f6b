package hub

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/profile"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// Details returns what an identity tells of itself, by id.
func (h *Hub) Details(ctx context.Context, id string) (Details, error) {
	m, err := h.registry.require(id)
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
func (h *Hub) detailsOf(ctx context.Context, m *member) (*profile.Full, error) {
	if d := m.transient.Load(); d != nil {
		return d, nil
	}
	r := m.current.Load()
	if d := h.profiles.Get(m.id, r.Seq); d != nil {
		return d, nil
	}
	d := &profile.Full{}
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(m.id), journal.ReadOptions{From: r.Base, To: r.Seq}) {
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
	h.profiles.Put(m.id, d)
	return d, nil
}

// unread is why details could not be read: their owner may just have been
// unregistered.
func (h *Hub) unread(m *member, cause error) error {
	if h.registry.byID(m.id) != m {
		return fault.New(fault.NotFound, "agent '%s' not found: it was just unregistered", m.id).Because(fault.NoAgent)
	}
	return unavailable(cause)
}

// matches reports whether a search selects an identity. It reads the details
// only of those whose brief cannot tell.
func (h *Hub) matches(ctx context.Context, q identity.Query, m *member) (bool, error) {
	r := m.current.Load()
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
	m := &member{id: id}
	m.current.Store(&r)
	h.registry.add(m)
	return nil
}
