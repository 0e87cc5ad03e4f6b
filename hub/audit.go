package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// fields are what an audit record says besides its time and kind.
type fields map[string]any

// AuditLine is one record of the audit.
type AuditLine struct {
	ID   string // grows in the order that records were made; followers leave it out
	At   time.Time
	Kind string
	Data []byte // the record: a JSON object with sorted keys
}

// AuditSink is told each record after it is stored, by several goroutines and
// in an order that may differ from that of the ids. It must return soon; what
// it fails at is logged.
type AuditSink interface {
	Audit(line AuditLine) error
}

// audit counts what this process has stored, and tells the other sinks.
type audit struct {
	bytes atomic.Int64
	mu    sync.Mutex
	sinks []AuditSink
}

// auditRecord makes one line of the audit log: a JSON object with sorted keys.
// It is indexed by an id minted with it, so that all of the audit reads in the
// order it happened, wherever it is stored.
func (h *Hub) auditRecord(kind string, f fields) (journal.Record, error) {
	now := h.now().UTC()
	id, err := h.minter.Mint(now, "")
	if err != nil {
		return journal.Record{}, unavailable(err)
	}
	line := make(map[string]any, len(f)+2)
	for k, v := range f {
		line[k] = v
	}
	line["at"], line["kind"] = envelope.FormatTime(now), kind
	data, err := schema.EncodeAudit(line)
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.Invalid, err, "audit record %q cannot be written: %v", kind, err)
	}
	indexed := data
	if len(data) > journal.MaxIndexValue {
		if indexed, err = schema.ShortAudit(line); err != nil {
			return journal.Record{}, err
		}
	}
	return journal.Record{Data: data, Put: []journal.IndexPut{{Key: schema.Key(schema.IndexAudit, id), Value: indexed}}}, nil
}

// stored counts records that have become durable, and tells the sinks.
func (h *Hub) stored(records ...journal.Record) {
	h.audit.mu.Lock()
	sinks := h.audit.sinks
	h.audit.mu.Unlock()
	for i := range records {
		h.audit.bytes.Add(int64(len(records[i].Data)) + 1) // plus a newline
		if len(sinks) == 0 {
			continue
		}
		line, err := auditLine(schema.LastPart(records[i].Put[0].Key), records[i].Data)
		if err != nil {
			h.log.Error("audit record cannot be read", "error", err)
			continue
		}
		for _, sink := range sinks {
			h.hooks.isolated(func() {
				if err := sink.Audit(line); err != nil {
					h.log.Error("audit sink failed", "id", line.ID, "error", err)
				}
			})
		}
	}
}

// storedIn does the same for what a batch wrote to an audit log.
func (h *Hub) storedIn(commit *journal.Batch) {
	for i := range commit.Appends {
		if commit.Appends[i].Log.Family == schema.FamilyAudit {
			h.stored(commit.Appends[i].Records...)
		}
	}
}

func auditLine(id string, data []byte) (AuditLine, error) {
	var head struct {
		At   string `json:"at"`
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return AuditLine{}, fmt.Errorf("audit record %s cannot be read: %w", id, err)
	}
	at, err := envelope.ParseTime(head.At)
	return AuditLine{ID: id, At: at, Kind: head.Kind, Data: data}, err
}

// AddAuditSink tells one more sink of every record from now on, until remove.
// The journal's audit stays what it is.
func (h *Hub) AddAuditSink(sink AuditSink) (remove func()) {
	h.audit.mu.Lock()
	defer h.audit.mu.Unlock()
	mine := &auditSeat{sink}
	h.audit.sinks = append(slices.Clip(h.audit.sinks), mine)
	return func() {
		h.audit.mu.Lock()
		defer h.audit.mu.Unlock()
		h.audit.sinks = slices.DeleteFunc(slices.Clone(h.audit.sinks), func(s AuditSink) bool { return s == AuditSink(mine) })
	}
}

// auditSeat tells two uses of the same sink apart.
type auditSeat struct{ AuditSink }

// AuditLines is a sink that writes each record as a line.
func AuditLines(to io.Writer) AuditSink { return &auditLines{to: to} }

type auditLines struct {
	mu sync.Mutex
	to io.Writer
}

func (s *auditLines) Audit(line AuditLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.to.Write(append(slices.Clip(line.Data), '\n'))
	return err
}

// Audit writes a record of a kind of one's own. Its fields must encode as
// JSON; the time and the kind are set here.
func (h *Hub) Audit(ctx context.Context, kind string, record map[string]any) error {
	if kind == "" {
		return fault.New(fault.Invalid, "an audit record has a kind; any non-empty text is accepted")
	}
	return h.auditIn(ctx, h.tenant.Directory(), kind, record)
}

// auditIn stores a record that nothing else is stored with.
func (h *Hub) auditIn(ctx context.Context, p journal.PartitionName, kind string, f fields) error {
	line, err := h.auditRecord(kind, f)
	if err != nil {
		return err
	}
	return h.commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: schema.AuditIn(p), Records: []journal.Record{line}},
	}})
}

// auditPlace returns the partition for an audit record about a channel: the
// channel's own, or the directory if there is no such channel.
func (h *Hub) auditPlace(ctx context.Context, channelID string) (journal.PartitionName, error) {
	if !channel.ValidID(channelID) {
		return h.tenant.Directory(), nil
	}
	if _, err := h.Channel(ctx, channelID); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return h.tenant.Directory(), nil
		}
		return h.tenant.Directory(), err
	}
	return h.tenant.Channel(channelID).Partition(), nil
}

// ReportTurnFailure audits that an agent could not finish a turn. It does not check
// the ids.
func (h *Hub) ReportTurnFailure(ctx context.Context, channelID, agent, envelopeID, kind, message string) error {
	place, err := h.auditPlace(ctx, channelID)
	if err != nil {
		return err
	}
	err = h.auditIn(ctx, place, "turn_failed", fields{
		"channel_id": channelID, "agent_id": agent, "envelope_id": envelopeID,
		"exc_type": kind, "exc_message": message,
	})
	if err != nil {
		return err
	}
	h.spans.ChannelError(channelID, "turn_failed", kind, message)
	h.hooks.each(func(l Listener) { l.TurnFailed(channelID, agent, envelopeID, message) })
	return nil
}

// gapOf gives the journal's error for a position that is gone the code of a gap.
func gapOf(err error) error {
	var gap *journal.GapError
	if errors.As(err, &gap) {
		return fault.Wrap(fault.Gap, err, "%v", err)
	}
	return unavailable(err)
}
