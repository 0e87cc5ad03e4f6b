package agh

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// threadShape is a thread as lists show it.
type threadShape struct {
	WorkspaceID        string `json:"workspace_id,omitempty"`
	Channel            string `json:"channel"`
	ThreadID           string `json:"thread_id"`
	RootMessageID      string `json:"root_message_id"`
	Title              string `json:"title,omitempty"`
	OpenedByPeerID     string `json:"opened_by_peer_id,omitempty"`
	OpenedSessionID    string `json:"opened_session_id,omitempty"`
	OpenedAt           string `json:"opened_at,omitempty"`
	LastActivityAt     string `json:"last_activity_at,omitempty"`
	MessageCount       int    `json:"message_count"`
	ParticipantCount   int    `json:"participant_count"`
	OpenWorkCount      int    `json:"open_work_count"`
	LastMessagePreview string `json:"last_message_preview,omitempty"`
}

// directShape is a direct room as lists show it.
type directShape struct {
	WorkspaceID        string `json:"workspace_id,omitempty"`
	Channel            string `json:"channel"`
	DirectID           string `json:"direct_id"`
	PeerA              string `json:"peer_a"`
	PeerB              string `json:"peer_b"`
	OpenedAt           string `json:"opened_at,omitempty"`
	LastActivityAt     string `json:"last_activity_at,omitempty"`
	MessageCount       int    `json:"message_count"`
	OpenWorkCount      int    `json:"open_work_count"`
	LastMessagePreview string `json:"last_message_preview,omitempty"`
}

func (r *netChannel) sessionOf(peer string) string {
	if p := r.hosted(peer); p != nil {
		return p.session
	}
	return ""
}

func (r *netChannel) showThread(row work.Row) threadShape {
	return threadShape{
		WorkspaceID: r.space.name, Channel: row.Channel, ThreadID: row.ID, RootMessageID: row.Root, Title: row.Title,
		OpenedByPeerID: row.Opener, OpenedSessionID: r.sessionOf(row.Opener), OpenedAt: whenUnix(row.OpenedAt), LastActivityAt: whenUnix(row.LastAt),
		MessageCount: row.Messages, ParticipantCount: row.Speakers, OpenWorkCount: row.OpenWork, LastMessagePreview: row.Preview,
	}
}

func (r *netChannel) showDirect(row work.Row) directShape {
	d := directShape{
		WorkspaceID: r.space.name, Channel: row.Channel, DirectID: row.ID, OpenedAt: whenUnix(row.OpenedAt), LastActivityAt: whenUnix(row.LastAt),
		MessageCount: row.Messages, OpenWorkCount: row.OpenWork, LastMessagePreview: row.Preview,
	}
	if len(row.Peers) == 2 {
		d.PeerA, d.PeerB = row.Peers[0], row.Peers[1]
	}
	return d
}

// conversation returns the row of a thread or direct room.
func (r *netChannel) conversation(ctx context.Context, kind, id string) (work.Row, error) {
	for range 3 { // the row moves when a message is stored meanwhile
		newest, ok, err := r.space.entry(ctx, kind, work.NameKey(r.channel, id))
		if err != nil {
			return work.Row{}, err
		}
		if !ok {
			break
		}
		found, ok, err := r.space.entry(ctx, kind, work.ActivityKey(r.channel, string(newest.Value), id))
		if err != nil {
			return work.Row{}, err
		}
		if ok {
			return r.readRow(ctx, kind, found)
		}
	}
	return work.Row{}, fault.New(fault.NotFound, "the channel %q has no %s %.150q", r.channel, kind, id)
}

// readRow reads a row. Texts that are too long for it are read from the log.
func (r *netChannel) readRow(ctx context.Context, kind string, e hub.Entry) (work.Row, error) {
	row, err := work.ParseRow(e.Key, e.Value)
	if err != nil {
		return row, fault.Wrap(fault.Internal, err, "%v", err)
	}
	if kind == thread.Type && row.Long.Has(work.Title) {
		if row.Title, err = r.space.preview(ctx, e.Channel, 1); err != nil {
			return row, err
		}
	}
	if row.Long.Has(work.Preview) {
		last := hub.EntryQuery{Type: kind, Home: r.space.home.ID, Prefix: work.MessagePrefix(r.channel, row.ID), Reverse: true, Limit: 1}
		page, err := r.space.s.hub.Entries(ctx, last)
		if err != nil || len(page.Entries) == 0 {
			return row, err
		}
		seq, err := work.ParseSeq(page.Entries[0].Value)
		if err != nil {
			return row, fault.Wrap(fault.Internal, err, "%v", err)
		}
		if row.Preview, err = r.space.preview(ctx, e.Channel, seq); err != nil {
			return row, err
		}
	}
	return row, nil
}

// preview returns the text of a message.
func (sp *space) preview(ctx context.Context, channelID string, seq uint64) (string, error) {
	for record, err := range sp.s.hub.Log(ctx, channelID, seq, seq) {
		if err != nil {
			return "", err
		}
		if e, _, err := wire.Message(record); err == nil {
			return e.Preview(), nil
		}
	}
	return "", nil
}

// list streams a list row by row, so that its length needs no memory.
func (c *call) list(name string, rows func(add func(any) error) error) error {
	out := c.share.Pieces(c.Request, c.w, c.s.cfg.Limits.Write)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-store")
	_, _ = out.Write([]byte(`{"` + name + `":[`)) // it is gathered
	first := true
	err := rows(func(item any) error {
		text, err := json.Marshal(item)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "%v", err)
		}
		if !first {
			text = append([]byte{','}, text...)
		}
		first = false
		_, err = out.Write(text)
		return err
	})
	if err == nil {
		err = out.End("]}\n")
	}
	if err != nil && out.Begun() {
		panic(http.ErrAbortHandler) // the client must not take it for the whole list
	}
	return err
}

// listRows lists conversations of a channel, newest activity first.
func (c *call) listRows(r *netChannel, kind, name string, show func(hub.Entry) (any, bool, error)) error {
	return c.listFrom(r, kind, name, work.ActivityPrefix(r.channel), show)
}

// listFrom lists conversations by index entries whose keys, after the prefix, have
// the form of the channel's activity entries.
func (c *call) listFrom(r *netChannel, kind, name, prefix string, show func(hub.Entry) (any, bool, error)) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	params := c.URL.Query()
	if params.Get("before") != "" && params.Get("after") != "" {
		return fault.New(fault.Invalid, "`before` and `after` exclude each other; give one of them")
	}
	q := hub.EntryQuery{Type: kind, Prefix: prefix, Limit: pageOf(limit)}
	for param, into := range map[string]*string{"after": &q.After, "before": &q.Before} {
		id := params.Get(param)
		if id == "" {
			continue
		}
		newest, ok, err := r.space.entry(c.Context(), kind, work.NameKey(r.channel, id))
		if err != nil {
			return err
		}
		if ok {
			*into = prefix + string(newest.Value) + "/" + id
			_, ok, err = r.space.entry(c.Context(), kind, *into)
		}
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.NotFound, "`%s` is not a %s of this list: %.150q", param, kind, id)
		}
	}
	if q.Before != "" && limit > 0 {
		return c.rowsBefore(r, q, name, limit, show)
	}
	return c.list(name, func(add func(any) error) error {
		n := 0
		return r.space.entries(c.Context(), q, func(e hub.Entry) (bool, error) {
			item, ok, err := show(e)
			if err != nil || !ok {
				return err == nil, err
			}
			n++
			return limit == 0 || n < limit, add(item)
		})
	})
}

// rowsBefore answers with the nearest conversations before one.
func (c *call) rowsBefore(r *netChannel, q hub.EntryQuery, name string, limit int, show func(hub.Entry) (any, bool, error)) error {
	q.Reverse = true
	var page []any
	err := r.space.entries(c.Context(), q, func(e hub.Entry) (bool, error) {
		item, ok, err := show(e)
		if ok {
			page = append(page, item)
		}
		return len(page) < limit, err
	})
	if err != nil {
		return err
	}
	slices.Reverse(page)
	return listAll(c, name, page)
}

// listAll answers with a list that is in memory.
func listAll[T any](c *call, name string, page []T) error {
	return c.list(name, func(add func(any) error) error {
		for _, item := range page {
			if err := add(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// pageOf returns how many entries are read at once for a limit.
func pageOf(limit int) int {
	if limit == 0 || limit > 200 {
		return 200
	}
	return limit
}

func (c *call) listThreads(r *netChannel) error {
	if c.URL.Query().Get("count") == "true" {
		t := hub.Total{Exact: true}
		err := r.space.entries(c.Context(), hub.EntryQuery{Type: thread.Type, Prefix: work.ActivityPrefix(r.channel), Limit: 1000}, func(hub.Entry) (bool, error) {
			t.Exact = t.Add()
			return t.Exact, nil
		})
		if err != nil {
			return err
		}
		c.w.Header().Set(hub.HeaderTotal, t.String())
	}
	return c.listRows(r, thread.Type, "threads", func(e hub.Entry) (any, bool, error) {
		row, err := r.readRow(c.Context(), thread.Type, e)
		return r.showThread(row), true, err
	})
}

func (c *call) showThread(r *netChannel) error {
	row, err := r.conversation(c.Context(), thread.Type, c.PathValue("thread_id"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"thread": r.showThread(row)})
}

func (c *call) listDirects(r *netChannel) error {
	if c.who.Role == Reader {
		return c.seesDirect(r, nil)
	}
	show := func(e hub.Entry) (any, bool, error) {
		row, err := r.readRow(c.Context(), direct.Type, e)
		if err != nil {
			return nil, false, err
		}
		return r.showDirect(row), c.seesDirect(r, row.Peers) == nil, nil
	}
	if only := c.URL.Query().Get("peer_id"); only != "" {
		return c.listRooms(r, only, show)
	}
	if mine := c.ownPeers(r); len(mine) == 1 {
		return c.listRooms(r, mine[0].id, show)
	}
	return c.listRows(r, direct.Type, "directs", show)
}

// ownPeers returns the hosted peers of an agent's key in a channel.
func (c *call) ownPeers(r *netChannel) []*peer {
	if c.who.Role != Agent {
		return nil
	}
	id := c.agentID()
	return slices.DeleteFunc(r.everyone(), func(p *peer) bool { return p.agent != id })
}

// listRooms lists the direct rooms of one peer, newest activity first.
func (c *call) listRooms(r *netChannel, peer string, show func(hub.Entry) (any, bool, error)) error {
	if !wire.ValidPeerOrHandle(peer) {
		return fault.New(fault.Invalid, "`peer_id` %.150q cannot be a peer id; one matches ^[a-z0-9][a-z0-9._-]{0,127}$", peer)
	}
	prefix := work.RoomsPrefix(r.channel, peer)
	return c.listFrom(r, direct.Type, "directs", prefix, func(e hub.Entry) (any, bool, error) {
		row, ok, err := r.space.entry(c.Context(), direct.Type, work.ActivityPrefix(r.channel)+e.Key[len(prefix):])
		if err != nil || !ok { // it moves when a message is stored meanwhile, and was then listed before
			return nil, false, err
		}
		return show(row)
	})
}

// direct returns the row of the path's direct room, if the caller may see it.
func (c *call) direct() (*netChannel, work.Row, error) {
	r, err := c.channel()
	if err != nil {
		return nil, work.Row{}, err
	}
	if c.who.Role == Reader {
		return nil, work.Row{}, c.seesDirect(r, nil)
	}
	row, err := r.conversation(c.Context(), direct.Type, c.PathValue("direct_id"))
	if err != nil {
		return nil, row, err
	}
	return r, row, c.seesDirect(r, row.Peers)
}

func (c *call) showDirect() error {
	r, row, err := c.direct()
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"direct": r.showDirect(row)})
}
