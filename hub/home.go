package hub

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Home is a place that channels share: an HPD session with its branches, an AGH workspace
// with its rooms. Its channels are in one partition of the journal, so that one batch may
// change several of them.
type Home struct {
	ID        string
	Kind      string // the dialect that made it
	Name      string // unique among the homes of its kind
	CreatedAt time.Time
}

const maxHomeKind = 32

// errDeleting says why a home is not found although its name is still taken.
var errDeleting = errors.New("is being deleted")

// Home finds the home of a kind with a name, or makes it.
func (h *Hub) Home(ctx context.Context, kind, name string) (Home, error) {
	for {
		home, err := h.FindHome(ctx, kind, name)
		if errors.Is(err, errDeleting) {
			return Home{}, fault.Wrap(fault.Unavailable, err, "%s home %.100q %v; try again", kind, name, errDeleting)
		}
		if fault.CodeOf(err) != fault.NotFound {
			return home, err
		}
		home, err = h.makeHome(ctx, kind, name)
		if !isConflict(err) {
			return home, err
		}
	}
}

// FindHome finds the home of a kind with a name.
func (h *Hub) FindHome(ctx context.Context, kind, name string) (Home, error) {
	if err := h.checkHome(kind, name); err != nil {
		return Home{}, err
	}
	for {
		state, err := h.journal.Claim(ctx, h.journal.Shard(h.tenant.Directory()), schema.HomeClaim(kind, name))
		if err != nil {
			return Home{}, unavailable(err)
		}
		if state.Pending != nil { // being made or deleted: the answer waits for how that ends
			_ = state.Pending.Wait(ctx)
			if err := ctx.Err(); err != nil {
				return Home{}, fault.Wrap(fault.Unavailable, err, "gave up waiting for home %q: %v", name, err)
			}
			continue
		}
		if state.Durable == nil {
			return Home{}, fault.New(fault.NotFound, "there is no %s home %.100q", kind, name)
		}
		return h.readHome(ctx, state.Durable.Log.ID)
	}
}

func (h *Hub) checkHome(kind, name string) error {
	valid := kind != "" && len(kind) <= maxHomeKind
	for _, c := range []byte(kind) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	switch {
	case !valid:
		return fault.New(fault.Invalid, "a home's kind is 1 to %d of a-z, 0-9, _ and -, not %.40q", maxHomeKind, kind)
	case name == "":
		return fault.New(fault.Invalid, "a home's name is empty; any other text is accepted")
	}
	return h.boundRecord("a home's name", len(name))
}

func (h *Hub) makeHome(ctx context.Context, kind, name string) (Home, error) {
	now := h.now().UTC().Truncate(time.Microsecond)
	id, err := h.minter.Mint(now, "")
	if err != nil {
		return Home{}, unavailable(err)
	}
	record, err := schema.NewHome(id, kind, name, now)
	if err != nil {
		return Home{}, fault.Wrap(fault.Invalid, err, "a home cannot be called %.100q: %v", name, err)
	}
	ticket, err := h.journal.Append(ctx, journal.Batch{Appends: []journal.Append{
		{Log: h.tenant.HomeLog(id), Expect: journal.Exactly(0), Records: []journal.Record{record}},
	}})
	if isConflict(err) {
		return Home{}, err
	}
	if err == nil {
		err = ticket.Wait(ctx)
	}
	return Home{ID: id, Kind: kind, Name: name, CreatedAt: now}, unavailable(err)
}

// readHome reads a home.
func (h *Hub) readHome(ctx context.Context, id string) (Home, error) {
	page, err := h.journal.Read(ctx, h.tenant.HomeLog(id), journal.ReadOptions{})
	if err != nil {
		return Home{}, unavailable(err)
	}
	switch len(page.Entries) {
	case 0:
		return Home{}, fault.New(fault.NotFound, "there is no home '%s'", id)
	case 2:
		return Home{}, fault.Wrap(fault.NotFound, errDeleting, "home '%s' %v", id, errDeleting)
	}
	return decodeHome(id, page.Entries[0].Data)
}

func decodeHome(id string, data []byte) (Home, error) {
	record, at, err := schema.DecodeHome(data)
	if err != nil {
		return Home{}, fault.Wrap(fault.Internal, err, "home '%s' cannot be read: %v", id, err)
	}
	return Home{ID: id, Kind: record.Kind, Name: record.Name, CreatedAt: at}, nil
}

// HomePage selects a page of homes.
type HomePage struct {
	After  string // the id of the last home of the page before
	Limit  int    // 0: 50
	Newest bool   // the newest first
}

// Homes lists the homes of a kind by age. Next goes on after the last, and is
// empty at the end.
func (h *Hub) Homes(ctx context.Context, kind string, page HomePage) (list []Home, next string, err error) {
	if page.Limit <= 0 {
		page.Limit = 50
	}
	prefix := schema.Key(schema.IndexHome, kind, "")
	scan := schema.ListScan(prefix, page.After, page.Newest)
	for entry, err := range journal.Index(ctx, h.journal, h.journal.Shard(h.tenant.Directory()), scan) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		if len(list) == page.Limit {
			return list, list[len(list)-1].ID, nil
		}
		home, err := decodeHome(schema.LastPart(entry.Key), entry.Value)
		if err != nil {
			return nil, "", err
		}
		list = append(list, home)
	}
	return list, "", nil
}

// maxKnownHomes bounds how many homes are remembered.
const maxKnownHomes = 16_384

// homes remembers homes that exist, so that an opening reads nothing.
type homes struct {
	mu      sync.Mutex
	known   map[string]Home
	closing closing
}

func (k *homes) get(id string) (Home, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	home, ok := k.known[id]
	return home, ok
}

func (k *homes) add(home Home) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxKnownHomes {
		k.known = map[string]Home{} // they are read again when they are used
	}
	k.known[home.ID] = home
}

// HomeByID returns the home with an id.
func (h *Hub) HomeByID(ctx context.Context, id string) (Home, error) {
	if home, ok := h.homes.get(id); ok {
		return home, nil
	}
	home, err := h.readHome(ctx, id)
	if err == nil {
		h.homes.add(home)
	}
	return home, err
}

// HomeOf returns the home of a channel; empty: it has none.
func HomeOf(channelID string) string {
	home, _ := schema.Split(channelID)
	return home
}

// checkPlace refuses an opening in a home that does not exist, or with members of
// a channel elsewhere: only one home's channels are stored together.
func (h *Hub) checkPlace(ctx context.Context, o Opening) error {
	if o.Home != "" {
		if _, err := h.HomeByID(ctx, o.Home); err != nil {
			return err
		}
	}
	if o.Name != "" {
		if err := h.checkName(o); err != nil {
			return err
		}
	}
	if o.MembersOf == "" {
		return nil
	}
	if o.Home == "" || HomeOf(o.MembersOf) != o.Home {
		return fault.New(fault.Invalid, "members of channel '%s' cannot belong to a channel in home '%s': both must be in one home", o.MembersOf, o.Home)
	}
	_, err := h.Channel(ctx, o.MembersOf)
	return err
}

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

// beginDeletion stores that a home is deleted. Even before that is ordered, none of its
// channels can be loaded or opened.
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

// unloadHome bars all calls from a home's channels, and waits for those in progress.
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

// finishHome removes the contents of a deleted home, and then the home's record.
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
	h.homes.reopen(id) // ids are never reused, so nothing can be loaded
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

// closing are the homes that are being deleted. It is almost always empty.
type closing struct {
	any atomic.Int32
	ids map[string]bool // guarded by the lock of homes
}

// close bars all calls from a home.
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

// reopen admits calls again.
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

// ChannelsIn visits a home's channels, the oldest first.
func (h *Hub) ChannelsIn(ctx context.Context, home string) iter.Seq2[*channel.Metadata, error] {
	return func(yield func(*channel.Metadata, error) bool) {
		o := journal.LogsOptions{Family: schema.FamilyMeta}
		for {
			page, err := h.journal.Logs(ctx, h.tenant.Home(home), o)
			if err != nil {
				yield(nil, unavailable(err))
				return
			}
			for _, log := range page.Logs {
				o.After = log.Log
				m, err := h.Channel(ctx, schema.InHome(home, log.Log.ID))
				if fault.CodeOf(err) == fault.NotFound {
					continue // it is being deleted
				}
				if !yield(m, err) || err != nil {
					return
				}
			}
			if !page.More {
				return
			}
		}
	}
}
