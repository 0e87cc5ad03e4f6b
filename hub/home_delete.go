package hub

import (
	"context"
	"sync/atomic"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// DeleteHome removes a home with all its channels. Its audit stays, and the
// deletion is written to the directory first. A deletion that is interrupted is
// finished by a sweep or by the next hub that opens.
func (h *Hub) DeleteHome(ctx context.Context, homeID string, by *Caller) error {
	home, err := h.HomeByID(ctx, homeID)
	if err != nil {
		return err
	}
	if err := h.beginDeletion(ctx, home, by); err != nil {
		return err
	}
	return h.finishHome(ctx, homeID)
}

// beginDeletion stores that a home is deleted. From before that is ordered, none
// of its channels is loaded or opened.
func (h *Hub) beginDeletion(ctx context.Context, home Home, by *Caller) error {
	f := fields{"home_id": home.ID, "home_kind": home.Kind, "home_name": home.Name}
	by.describe(f)
	line, err := h.auditRecord("home_deleted", f)
	if err != nil {
		return err
	}
	h.unloadHome(home.ID)
	commit := journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.HomeLog(home.ID), Expect: journal.Exactly(1), Records: []journal.Record{schema.HomeDeleted(home.ID, home.Kind, h.now())}},
		{Log: h.tenant.Audit(), Records: []journal.Record{line}},
	}}
	err = h.commit(ctx, commit)
	if err == nil {
		return nil
	}
	if _, other := h.readHome(context.WithoutCancel(ctx), home.ID); other != nil {
		return other // another call was first
	}
	h.homes.reopen(home.ID)
	return err
}

// unloadHome lets nobody into a home's channels any more, and waits for those who
// are in one.
func (h *Hub) unloadHome(id string) {
	h.homes.close(id)
	for _, ch := range h.channels.list() {
		if HomeOf(ch.id) != id {
			continue
		}
		ch.mu.Lock()
		if !ch.gone {
			h.abandon(ch) // unlocks it
		} else {
			ch.mu.Unlock()
		}
	}
}

// finishHome drops what a deleted home holds, and then what says that there was
// one.
func (h *Hub) finishHome(ctx context.Context, id string) error {
	h.unloadHome(id) // also after a restart
	h.leaveHome(id)
	tasks, err := h.taskLogs(ctx, h.tenant.Home(id))
	if err != nil {
		return err
	}
	ticket, err := h.journal.DropPartition(ctx, h.tenant.Home(id), schema.FamilyAudit)
	if err != nil {
		return unavailable(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		return unavailable(err)
	}
	h.subs.closeHome(id)
	if err := h.dropPlaces(ctx, tasks); err != nil {
		return err
	}
	if err := h.drop(ctx, h.tenant.HomeLog(id)); err != nil {
		return err
	}
	h.homes.reopen(id) // ids are never used again, so that nothing can be loaded
	return nil
}

// closeHome ends the followers of a home's channels.
func (s *subscriptions) closeHome(id string) {
	s.mu.RLock()
	var list []*subscription
	for channelID, subs := range s.subs {
		if HomeOf(channelID) == id {
			list = append(list, subs...)
		}
	}
	s.mu.RUnlock()
	for _, sub := range list {
		sub.close(&Gap{Reason: "the log was dropped"})
	}
}

// closing are the homes that are being deleted. There are hardly ever any.
type closing struct {
	any atomic.Int32
	ids map[string]bool // guarded by the lock of homes
}

// close keeps everyone out of a home.
func (k *homes) close(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
	if k.closing.ids == nil {
		k.closing.ids = map[string]bool{}
	}
	if !k.closing.ids[id] {
		k.closing.ids[id] = true
		k.closing.any.Add(1)
	}
}

// reopen lets everyone in again.
func (k *homes) reopen(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing.ids[id] {
		delete(k.closing.ids, id)
		k.closing.any.Add(-1)
	}
}

// closed reports whether a channel is in a home that is being deleted.
func (k *homes) closed(channelID string) bool {
	if k.closing.any.Load() == 0 {
		return false
	}
	home := HomeOf(channelID)
	k.mu.Lock()
	defer k.mu.Unlock()
	return home != "" && k.closing.ids[home]
}
