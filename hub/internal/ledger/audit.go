package ledger

import (
	"context"
	"fmt"
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

// Fields are the members of an audit record besides its time and kind.
type Fields map[string]any

// AuditLine is one record of the audit.
type AuditLine struct {
	ID   string // increases in the order that records were made; followers leave it out
	At   time.Time
	Kind string
	Data []byte // the record: a JSON object with sorted keys
}

// AuditSink receives each record after it is stored, from several goroutines and in
// an order that may differ from that of the ids. It must return soon; its errors
// are logged.
type AuditSink interface {
	Audit(line AuditLine) error
}

// audit counts the bytes that this process has stored, and holds the other sinks.
type audit struct {
	bytes atomic.Int64
	mu    sync.Mutex
	sinks []AuditSink
}

// AuditBytes returns how much of the audit this process has stored.
func (l *Ledger) AuditBytes() int64 { return l.audit.bytes.Load() }

// AuditRecord makes one line of the audit log: a JSON object with sorted keys. It
// is indexed by an id minted with it, so that the whole audit reads in the order of
// events, regardless of where each record is stored.
func (l *Ledger) AuditRecord(kind string, f Fields) (journal.Record, error) {
	id, at, err := l.auditTime()
	if err != nil {
		return journal.Record{}, err
	}
	data, err := schema.EncodeAudit(at, kind, f)
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.Invalid, err, "audit record %q cannot be written: %v", kind, err)
	}
	indexed := data
	if len(data) > journal.MaxIndexValue {
		if indexed, err = schema.ShortAudit(at, kind, f); err != nil {
			return journal.Record{}, err
		}
	}
	return auditRecord(id, data, indexed), nil
}

// SortedAuditRecord is AuditRecord for short members in the order of their names.
func (l *Ledger) SortedAuditRecord(kind string, fields []schema.AuditField) (journal.Record, error) {
	return l.encoded(kind, func(at string) ([]byte, error) { return schema.EncodeSortedAudit(at, kind, fields) })
}

// OpenedRecord returns the AuditRecord of a channel's creation. By is nil if nobody
// is named.
func (l *Ledger) OpenedRecord(m *channel.Metadata, by *schema.AuditBy) (journal.Record, error) {
	if len(m.Participants) <= fewParticipants {
		return l.encoded(schema.AuditOpened, func(at string) ([]byte, error) { return schema.EncodeOpened(at, m, by) })
	}
	f := Fields{
		"channel_id": m.ID, "manifest_type": m.Manifest.Type, "manifest_version": m.Manifest.Version,
		"creator_id": m.Creator, "participants": m.IDs(),
	}
	if by != nil {
		f["by"] = by.Map()
	}
	return l.AuditRecord(schema.AuditOpened, f)
}

// fewParticipants fit into a record without shortening it for lists.
const fewParticipants = 64

// encoded makes a record that is short enough for lists.
func (l *Ledger) encoded(kind string, encode func(at string) ([]byte, error)) (journal.Record, error) {
	id, at, err := l.auditTime()
	if err != nil {
		return journal.Record{}, err
	}
	data, err := encode(at)
	if err == nil && len(data) > journal.MaxIndexValue {
		err = fmt.Errorf("it has %d bytes; at most %d are taken", len(data), journal.MaxIndexValue)
	}
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.Invalid, err, "audit record %q cannot be written: %v", kind, err)
	}
	return auditRecord(id, data, data), nil
}

// auditTime mints the id of a record and formats its time.
func (l *Ledger) auditTime() (id, at string, err error) {
	now := l.Now().UTC()
	if id, err = l.Minter.Mint(now, ""); err != nil {
		return "", "", Unavailable(err)
	}
	return id, envelope.FormatTime(now), nil
}

func auditRecord(id string, data, indexed []byte) journal.Record {
	return journal.Record{Data: data, Put: []journal.IndexPut{{Key: schema.Key(schema.IndexAudit, id), Value: indexed}}}
}

// AuditIn stores a record in a batch of its own.
func (l *Ledger) AuditIn(ctx context.Context, p journal.PartitionName, kind string, f Fields) error {
	line, err := l.AuditRecord(kind, f)
	if err != nil {
		return err
	}
	return l.Commit(ctx, journal.Batch{Appends: []journal.Append{
		{Log: schema.AuditIn(p), Records: []journal.Record{line}},
	}})
}

// Stored counts audit records that have become durable, and passes them to the
// sinks.
func (l *Ledger) Stored(records ...journal.Record) {
	l.audit.mu.Lock()
	sinks := l.audit.sinks
	l.audit.mu.Unlock()
	for i := range records {
		l.audit.bytes.Add(int64(len(records[i].Data)) + 1) // plus a newline
		if len(sinks) == 0 {
			continue
		}
		line, err := DecodeAudit(schema.LastPart(records[i].Put[0].Key), records[i].Data)
		if err != nil {
			l.Log.Error("audit record cannot be read", "error", err)
			continue
		}
		for _, sink := range sinks {
			l.Isolate(func() {
				if err := sink.Audit(line); err != nil {
					l.Log.Error("audit sink failed", "id", line.ID, "error", err)
				}
			})
		}
	}
}

// StoredIn calls Stored for the audit records of a batch.
func (l *Ledger) StoredIn(batch *journal.Batch) {
	for i := range batch.Appends {
		if batch.Appends[i].Log.Family == schema.FamilyAudit {
			l.Stored(batch.Appends[i].Records...)
		}
	}
}

// DecodeAudit reads a record of the audit.
func DecodeAudit(id string, data []byte) (AuditLine, error) {
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

// AddSink passes every record from now on to one more sink, until remove is called.
func (l *Ledger) AddSink(sink AuditSink) (remove func()) {
	l.audit.mu.Lock()
	defer l.audit.mu.Unlock()
	mine := &auditSeat{sink}
	l.audit.sinks = append(slices.Clip(l.audit.sinks), mine)
	return func() {
		l.audit.mu.Lock()
		defer l.audit.mu.Unlock()
		l.audit.sinks = slices.DeleteFunc(slices.Clone(l.audit.sinks), func(s AuditSink) bool { return s == AuditSink(mine) })
	}
}

// auditSeat distinguishes two uses of the same sink.
type auditSeat struct{ AuditSink }
