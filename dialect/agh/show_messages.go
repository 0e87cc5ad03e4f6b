package agh

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// messageShape is a message in a list. Key is FROM/ID, which distinguishes messages
// with the same id.
type messageShape struct {
	MessageID   string         `json:"message_id"`
	Key         string         `json:"key"`
	WorkspaceID string         `json:"workspace_id,omitempty"`
	Channel     string         `json:"channel"`
	Surface     wire.Surface   `json:"surface,omitempty"`
	ThreadID    string         `json:"thread_id,omitempty"`
	DirectID    string         `json:"direct_id,omitempty"`
	Kind        wire.Kind      `json:"kind"`
	Direction   direction      `json:"direction"`
	PeerFrom    string         `json:"peer_from"`
	PeerTo      string         `json:"peer_to,omitempty"`
	SessionID   string         `json:"session_id,omitempty"`
	WorkID      string         `json:"work_id,omitempty"`
	ReplyTo     string         `json:"reply_to,omitempty"`
	TraceID     string         `json:"trace_id,omitempty"`
	CausationID string         `json:"causation_id,omitempty"`
	Intent      string         `json:"intent,omitempty"`
	Text        string         `json:"text,omitempty"`
	PreviewText string         `json:"preview_text,omitempty"`
	Trust       wire.Trust     `json:"trust"`
	Body        jsontext.Value `json:"body"`
	Timestamp   string         `json:"timestamp"`
}

func (r *netChannel) showMessage(e *wire.Envelope, data []byte, record *envelope.Envelope) messageShape {
	m := messageShape{
		MessageID: e.ID, Key: wire.RecordKey(e.From, e.ID), WorkspaceID: e.Workspace, Channel: e.Channel, Surface: e.Surface, ThreadID: e.Thread, DirectID: e.Direct,
		Kind: e.Kind, Direction: r.space.direction(e, record), PeerFrom: e.From, PeerTo: e.To, SessionID: r.sessionOf(e.From),
		WorkID: e.Work, ReplyTo: e.ReplyTo, TraceID: e.Trace, CausationID: e.Causation,
		PreviewText: strings.ToValidUTF8(e.Preview(), "\uFFFD"), Trust: trustOf(e, data), Body: e.Body, Timestamp: whenUnix(e.TS),
	}
	if e.TS == 0 {
		m.Timestamp = "1970-01-01T00:00:00Z"
	}
	if say, ok := e.Content.(*wire.SayBody); ok {
		m.Intent, m.Text = say.Intent, say.Text
	}
	return m
}

// trustOf returns what is known of the sender of an envelope.
func trustOf(e *wire.Envelope, data []byte) wire.Trust {
	if trust, _ := wire.Verify(e, data); trust == wire.Verified {
		return trust
	}
	return wire.Unverified
}

// direction says whether a hosted or a remote peer sent a message.
func (sp *space) direction(e *wire.Envelope, record *envelope.Envelope) direction {
	if record.Sender == wire.RemoteIdentity(sp.name, e.From) {
		return received
	}
	return sent
}

// filter selects messages.
type filter struct{ kind, work string }

func (f filter) takes(e *wire.Envelope) bool {
	return (f.kind == "" || string(e.Kind) == f.kind) && (f.work == "" || e.Work == f.work)
}

// stored is a message that was read from the log.
type stored struct {
	envelope *wire.Envelope
	data     []byte
	record   *envelope.Envelope
}

// messages yields the messages of a conversation in the order of a query.
func (sp *space) messages(ctx context.Context, q hub.EntryQuery, each func(stored) (more bool, err error)) error {
	return sp.pages(ctx, q, func(page []hub.Entry) (bool, error) {
		list, err := sp.fetch(ctx, page)
		if err != nil {
			return false, err
		}
		return eachOf(list, each)
	})
}

// fetch reads the messages of index entries. Neighbours in the log are read
// together.
func (sp *space) fetch(ctx context.Context, entries []hub.Entry) ([]stored, error) {
	list := make([]stored, 0, len(entries))
	for i := 0; i < len(entries); {
		from, err := work.ParseSeq(entries[i].Value)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%v", err)
		}
		n := 1
		for ; i+n < len(entries) && n < 64 && entries[i+n].Channel == entries[i].Channel; n++ {
			if seq, err := work.ParseSeq(entries[i+n].Value); err != nil || seq != from+uint64(n) {
				break
			}
		}
		for record, err := range sp.s.hub.Log(ctx, entries[i].Channel, from, from+uint64(n)-1) {
			if err != nil {
				return nil, err
			}
			e, data, err := wire.Message(record)
			if err != nil {
				continue // written by a newer version
			}
			list = append(list, stored{e, data, record})
		}
		i += n
	}
	return list, nil
}

func (c *call) threadMessages(r *netChannel) error {
	return c.listMessages(r, thread.Type, c.PathValue("thread_id"))
}

func (c *call) directMessages() error {
	r, _, err := c.direct()
	if fault.CodeOf(err) == fault.NotFound && r == nil {
		if r, roomErr := c.channel(); roomErr == nil && c.who.Role != Reader {
			return c.listMessages(r, direct.Type, c.PathValue("direct_id")) // an unknown room has no messages
		}
	}
	if err != nil {
		return err
	}
	return c.listMessages(r, direct.Type, c.PathValue("direct_id"))
}

// listMessages answers with messages of one conversation, ascending.
func (c *call) listMessages(r *netChannel, kind, id string) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	params := c.URL.Query()
	f := filter{params.Get("kind"), params.Get("work_id")}
	if f.kind != "" && !wire.Kind(f.kind).Known() {
		return fault.New(fault.Invalid, "`kind` is one of greet, whois, say, capability, receipt and trace, not %.40q", f.kind)
	}
	before, after := params.Get("before"), params.Get("after")
	if before != "" && after != "" {
		return fault.New(fault.Invalid, "`before` and `after` exclude each other; give one of them")
	}
	q := hub.EntryQuery{Type: kind, Prefix: work.MessagePrefix(r.channel, id), Limit: pageOf(limit)}
	if q.Before, err = r.cursor(c.Context(), kind, id, before, f); err != nil {
		return err
	}
	if q.After, err = r.cursor(c.Context(), kind, id, after, f); err != nil {
		return err
	}
	if before != "" && limit > 0 {
		return c.messagesBefore(r, q, f, limit)
	}
	return c.list("messages", func(add func(any) error) error {
		n := 0
		return r.space.messages(c.Context(), q, func(m stored) (bool, error) {
			if !f.takes(m.envelope) {
				return true, nil
			}
			n++
			return limit == 0 || n < limit, add(r.showMessage(m.envelope, m.data, m.record))
		})
	})
}

// messagesBefore answers with the nearest messages before one.
func (c *call) messagesBefore(r *netChannel, q hub.EntryQuery, f filter, limit int) error {
	q.Reverse = true
	var page []messageShape
	err := r.space.messages(c.Context(), q, func(m stored) (bool, error) {
		if f.takes(m.envelope) {
			page = append(page, r.showMessage(m.envelope, m.data, m.record))
		}
		return len(page) < limit, nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(page)
	return listAll(c, "messages", page)
}

// cursor returns the place of a message, named by an id or FROM/ID, in a conversation.
// The filter must select the message.
func (r *netChannel) cursor(ctx context.Context, kind, id, name string, f filter) (string, error) {
	if name == "" {
		return "", nil
	}
	found, err := r.find(ctx, kind, id, name)
	if err != nil {
		return "", err
	}
	for _, m := range found {
		if f.takes(m.envelope) {
			return m.key, nil
		}
	}
	return "", fault.New(fault.NotFound, "the cursor %.150q is not a message of this list", name)
}

// placed is a message with its place in its conversation.
type placed struct {
	stored
	key string
}

// find returns the messages with a name in a conversation, in order.
func (r *netChannel) find(ctx context.Context, kind, id, name string) ([]placed, error) {
	prefixes := []string{work.IDPrefix(name)}
	if from, rest, ok := strings.Cut(name, "/"); ok && wire.ValidPeerOrHandle(from) {
		prefixes = append(prefixes, work.IDKey(rest, from))
	}
	var found []placed
	for _, prefix := range prefixes {
		err := r.space.entries(ctx, hub.EntryQuery{Type: kind, Prefix: prefix}, func(e hub.Entry) (bool, error) {
			where, err := work.ParseWhere(e.Value)
			if err != nil || where.Channel != r.channel || where.ID != id {
				return err == nil, err
			}
			for record, err := range r.space.s.hub.Log(ctx, e.Channel, where.Seq, where.Seq) {
				if err != nil {
					return false, err
				}
				if read, data, err := wire.Message(record); err == nil {
					place := work.Place{Workspace: r.space.name, Channel: r.channel, ID: id}
					key := place.MessageKey(&work.Message{ID: read.ID, From: read.From, TS: read.TS})
					found = append(found, placed{stored{read, data, record}, key})
				}
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b placed) int { return strings.Compare(a.key, b.key) })
	return found, nil
}

// workShape is a piece of work.
type workShape struct {
	WorkID          string       `json:"work_id"`
	WorkspaceID     string       `json:"workspace_id,omitempty"`
	Channel         string       `json:"channel"`
	Surface         wire.Surface `json:"surface"`
	ThreadID        string       `json:"thread_id,omitempty"`
	DirectID        string       `json:"direct_id,omitempty"`
	OpenedByPeerID  string       `json:"opened_by_peer_id,omitempty"`
	OpenedSessionID string       `json:"opened_session_id,omitempty"`
	TargetPeerID    string       `json:"target_peer_id,omitempty"`
	State           string       `json:"state"`
	OpenedAt        string       `json:"opened_at,omitempty"`
	LastActivityAt  string       `json:"last_activity_at,omitempty"`
	TerminalAt      string       `json:"terminal_at,omitempty"`
}

// workRow is a piece of work and its conversation.
type workRow struct {
	work.WorkRow
	surface wire.Surface
}

func (w *workRow) container() wire.Container {
	return wire.Container{Channel: w.Channel, Surface: w.surface, ID: w.ID}
}

// workRow looks a piece of work up.
func (sp *space) workRow(ctx context.Context, id string) (workRow, bool, error) {
	for kind, surface := range map[string]wire.Surface{thread.Type: wire.Thread, direct.Type: wire.Direct} {
		e, ok, err := sp.entry(ctx, kind, work.WorkKey(id))
		if err != nil {
			return workRow{}, false, err
		}
		if ok {
			row, err := work.ParseWorkRow(e.Value)
			if err != nil {
				return workRow{}, false, fault.Wrap(fault.Internal, err, "%v", err)
			}
			return workRow{row, surface}, true, nil
		}
	}
	return workRow{}, false, nil
}

func (c *call) showWork(sp *space) error {
	id := c.PathValue("work_id")
	row, ok, err := sp.workRow(c.Context(), id)
	if err != nil {
		return err
	}
	if !ok {
		return fault.New(fault.NotFound, "the workspace %q has no work %.150q", sp.name, id)
	}
	r, err := sp.find(row.Channel)
	if err != nil {
		return err
	}
	if err := c.sees(r); err != nil {
		return err
	}
	w := workShape{
		WorkID: row.WorkID, WorkspaceID: sp.name, Channel: row.Channel, Surface: row.surface, OpenedByPeerID: row.Work.Opener,
		OpenedSessionID: r.sessionOf(row.Work.Opener), TargetPeerID: row.Work.Target, State: row.Work.State.String(),
		OpenedAt: whenUnix(row.Work.OpenedAt), LastActivityAt: whenUnix(row.Work.LastAt), TerminalAt: whenUnix(row.Work.TerminalAt),
	}
	if row.surface == wire.Thread {
		w.ThreadID = row.ID
	} else {
		if err := c.seesDirect(r, []string{row.Work.Opener, row.Work.Target}); err != nil {
			return err
		}
		w.DirectID = row.ID
	}
	return c.answer(http.StatusOK, map[string]any{"work": w})
}
