package repair

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/store"
	"github.com/parley-hub/parley/journal/internal/order"
)

// builder writes the new store. Keys arrive in order, so that names, heads,
// commits and removals are known before the records come.
type builder struct {
	s       *salvager
	out     *pebble.DB
	batch   *pebble.Batch
	apart   *apartWriter
	names   map[order.ID]journal.LogName
	heads   map[order.ID]order.Head
	entries map[uint64]layout.Entry // entries of commits as they were stored
	last    uint64                  // highest offset
	going   map[order.ID]struct{}   // logs whose removal is not finished: nothing of them is copied

	id     order.ID // the log whose records are arriving
	log    builtLog
	seen   map[order.ID]struct{}
	newest map[journal.LogName]order.ID // last incarnation, known when records begin
}

// builtLog is the part of a log that could be copied.
type builtLog struct {
	seq    uint64 // of the last record copied
	offset uint64
	first  uint64 // of the current batch's records
	hole   bool
	found  uint64 // highest sequence that was readable
}

// kindWrite is a temporary kind of key in the new store: offset and log id, with the
// range of records that the batch wrote. These keys are removed when building ends.
const kindWrite = 1

func (b *builder) take(key, value []byte) error {
	switch key[0] {
	case layout.KindMeta:
		if string(key) == string(layout.KeyEpoch) {
			if epoch, err := layout.DecodeNumber(key, value); err == nil {
				b.s.epoch = max(b.s.epoch, epoch)
			}
		}
		return nil
	case layout.KindName:
		name, err := layout.DecodeName(key, value)
		if err != nil || len(key) != 9 {
			b.s.unreadable(layout.Damaged(err, "the name of log number %x", key[1:]))
			return nil
		}
		b.names[order.ID(binary.BigEndian.Uint64(key[1:]))] = name
		return nil
	case layout.KindHead:
		return b.head(key, value)
	case layout.KindCommit:
		for offset, decode := range layout.DecodeEntries(key, value) {
			en, err := decode()
			if err != nil {
				b.s.unreadable(layout.Damaged(err, "the entries of commits up to %x", key[1:]))
				return nil
			}
			b.entries[offset] = en
			b.last = max(b.last, offset)
		}
		return nil
	case layout.KindRecord:
		return b.record(key, value)
	case layout.KindValue, layout.KindLazy:
		if _, err := layout.DecodeValue(key, value); err != nil {
			b.s.unreadable(layout.Damaged(err, "value %x", key[1:]))
			return nil
		}
		b.s.report.Values++
		return b.set(key, value)
	case layout.KindRemoval:
		r, err := layout.DecodeRemoval(key, value)
		if err != nil {
			b.s.unreadable(layout.Damaged(err, "the mark of a removal, %x,", key))
			return nil
		}
		b.going[r.ID] = struct{}{}
		b.last = max(b.last, r.Offset)
		return nil
	}
	return nil // index and claims are made from the records
}

func (b *builder) head(key, value []byte) error {
	name, _, err := journal.CutLogName(key[1:])
	if err != nil {
		b.s.unreadable(layout.Damaged(err, "the key %x", key))
		return nil
	}
	head, err := layout.DecodeHead(key, value)
	if err != nil {
		b.s.unreadable(layout.Damaged(err, "the head of log %v", name))
		return nil
	}
	b.heads[head.ID] = head
	b.names[head.ID] = name
	return nil
}

func (b *builder) record(key, value []byte) error {
	if len(key) != layout.RecordKeyLen {
		b.s.unreadable(layout.Damaged(layout.ErrKey, "the key %x", key))
		return nil
	}
	id, seq := order.ID(binary.BigEndian.Uint64(key[1:])), layout.SeqOf(key)
	if _, dropped := b.going[id]; dropped {
		return nil
	}
	if id != b.id {
		if err := b.endLog(); err != nil {
			return err
		}
		b.id, b.log = id, builtLog{}
	}
	name, named := b.names[id]
	rec, err := layout.DecodeRecord(value, id, seq)
	if err != nil {
		b.s.unreadable(layout.Damaged(err, "record %d of log %v", seq, name))
		return nil
	}
	b.log.found = seq
	if seq != b.log.seq+1 || !named {
		b.log.hole = true
	}
	if b.log.hole {
		b.s.report.Apart++
		return b.apart.write(id, name, seq, rec)
	}
	if rec.Offset != b.log.offset {
		if err := b.endWrite(); err != nil {
			return err
		}
		b.log.first = seq
	}
	b.log.seq, b.log.offset = seq, rec.Offset
	b.last = max(b.last, rec.Offset)
	b.s.report.Records++
	return b.set(key, value)
}

// endWrite records what one batch wrote to the log.
func (b *builder) endWrite() error {
	if b.log.seq == 0 {
		return nil
	}
	key := binary.BigEndian.AppendUint64([]byte{kindWrite}, b.log.offset)
	key = binary.BigEndian.AppendUint64(key, uint64(b.id))
	value := binary.BigEndian.AppendUint64(nil, b.log.first)
	return b.set(key, binary.BigEndian.AppendUint64(value, b.log.seq-b.log.first+1))
}

// endLog writes the head of the log in the new store.
func (b *builder) endLog() error {
	if b.id == 0 {
		for id, name := range b.names {
			b.newest[name] = max(b.newest[name], id)
		}
		return nil
	}
	b.seen[b.id] = struct{}{}
	if err := b.endWrite(); err != nil {
		return err
	}
	name, named := b.names[b.id]
	text := name.String()
	if !named {
		text = fmt.Sprintf("number %d, whose name is lost", b.id)
	}
	if end := max(b.log.found, b.heads[b.id].Seq); end > b.log.seq {
		b.s.report.Lost = append(b.s.report.Lost, LostPart{Log: text, From: b.log.seq + 1, To: end})
	}
	if b.log.seq == 0 {
		return nil
	}
	b.s.report.Logs++
	key := layout.NameKey(nil, b.id)
	if err := b.set(key, layout.AppendName(nil, key, name)); err != nil {
		return err
	}
	if b.newest[name] != b.id {
		return nil // the log was dropped and created again; this is the rest of the old one
	}
	key = layout.HeadKey(nil, name)
	return b.set(key, layout.AppendHead(nil, key, order.Head{ID: b.id, Seq: b.log.seq, Offset: b.log.offset}))
}

// finish writes the entries of commits, so that replaying them yields exactly the
// records that were copied.
func (b *builder) finish() error {
	if err := b.endLog(); err != nil {
		return err
	}
	for id, head := range b.heads {
		_, copied := b.seen[id]
		if _, dropped := b.going[id]; !copied && !dropped {
			b.s.report.Lost = append(b.s.report.Lost, LostPart{Log: b.names[id].String(), From: 1, To: head.Seq})
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	for offset := uint64(1); offset <= b.last; offset++ {
		if err := b.entry(offset); err != nil {
			return err
		}
	}
	_ = b.batch.DeleteRange([]byte{kindWrite}, []byte{kindWrite + 1}, nil)
	_ = b.batch.Set(layout.KeyEpoch, layout.AppendNumber(nil, layout.KeyEpoch, max(b.s.epoch, 1)), nil)
	_ = b.batch.Set(layout.KeyLast, layout.AppendNumber(nil, layout.KeyLast, b.last), nil)
	return b.flush()
}

func (b *builder) entry(offset uint64) error {
	there, err := b.writes(offset)
	if err != nil {
		return err
	}
	key := layout.CommitKey(nil, offset)
	en := layout.Entry{Kind: layout.EntryBatch}
	if stored, ok := b.entries[offset]; ok {
		en = stored
		var kept []layout.Written
		for _, w := range en.Writes {
			if now, ok := there[w.ID]; ok {
				kept = append(kept, now)
				delete(there, w.ID)
			}
		}
		en.Writes = kept
	}
	for _, w := range there {
		en.Writes = append(en.Writes, w)
	}
	var list layout.EntryList
	list.AddEntry(&en)
	return b.set(key, list.Value(key))
}

func (b *builder) writes(offset uint64) (map[order.ID]layout.Written, error) {
	lower := binary.BigEndian.AppendUint64([]byte{kindWrite}, offset)
	upper := binary.BigEndian.AppendUint64([]byte{kindWrite}, offset+1)
	there := map[order.ID]layout.Written{}
	err := store.ScanRange(b.out, lower, upper, func(key, value []byte) error {
		id := order.ID(binary.BigEndian.Uint64(key[9:]))
		there[id] = layout.Written{ID: id, First: binary.BigEndian.Uint64(value), Count: binary.BigEndian.Uint64(value[8:])}
		return nil
	})
	return there, err
}

func (b *builder) set(key, value []byte) error {
	_ = b.batch.Set(key, value, nil)
	if b.batch.Len() > salvageBytes {
		return b.flush()
	}
	return nil
}

func (b *builder) flush() error {
	if err := b.out.Apply(b.batch, pebble.NoSync); err != nil {
		return err
	}
	_ = b.batch.Close()
	b.batch = b.out.NewBatch()
	return nil
}

// apartWriter writes records that cannot be part of a log.
type apartWriter struct {
	fs   vfs.FS
	path string
	file vfs.File // nil until there is one
	buf  *bufio.Writer
}

func (a *apartWriter) write(id order.ID, log journal.LogName, seq uint64, rec layout.Stored) error {
	if a.file == nil {
		f, err := a.fs.Create(a.path, "journal-salvage")
		if err != nil {
			return err
		}
		a.file, a.buf = f, bufio.NewWriter(f)
	}
	return json.NewEncoder(a.buf).Encode(struct {
		Log      string `json:"log"`
		Number   uint64 `json:"number"`
		Sequence uint64 `json:"sequence"`
		Offset   uint64 `json:"offset"`
		Data     []byte `json:"data"`
	}{log.String(), uint64(id), seq, rec.Offset, rec.Data})
}

func (a *apartWriter) close() error {
	if a.file == nil {
		return nil
	}
	return errors.Join(a.buf.Flush(), a.file.Sync(), a.file.Close())
}
