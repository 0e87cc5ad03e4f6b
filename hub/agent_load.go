package hub

import (
	"context"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
)

// record is an identity as its log tells it, as far as it is kept in memory.
type record struct {
	Profile
	brief brief
	sizes profileSizes
	seq   uint64 // of its last record
	base  uint64 // the record from which its details can be read
	tail  int    // bytes of the records after that one
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
	var r record
	var d details
	for entry, err := range journal.Records(ctx, h.journal, h.tenant.Agent(id), journal.ReadOptions{}) {
		if err != nil {
			h.log.Error("identity cannot be read and is left out", "agent_id", id, "error", err)
			return nil
		}
		var stored schema.AgentRecord
		if err = identity.Unmarshal("identity", entry.Data, &stored); err == nil {
			err = r.apply(&stored, entry)
		}
		if err == nil {
			err = d.apply(&stored, entry.Seq)
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
	var err error
	if r.sizes, err = measure(&d, r.Rule); err != nil {
		return err
	}
	r.brief = newBrief(d.Resume)
	h.enforce(&r)
	m := &member{id: id}
	m.current.Store(&r)
	h.registry.add(m)
	return nil
}

// apply folds what is kept in memory.
func (r *record) apply(stored *schema.AgentRecord, entry journal.Entry) (err error) {
	if len(stored.Passport) > 0 {
		if r.Passport, err = identity.ParseRecord(stored.Passport); err != nil {
			return err
		}
	}
	if stored.Rule != nil {
		r.Rule = stored.Rule
	}
	if stored.Kind == schema.AgentCeiling {
		r.Ceiling = stored.Ceiling
	}
	r.tail += len(entry.Data)
	if isWhole(stored.Kind) {
		r.base, r.tail = entry.Seq, 0
	}
	r.seq = entry.Seq
	return nil
}
