package disk

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
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
	entries map[uint64]entry      // entries of commits as they were stored
	last    uint64                // highest offset
	going   map[order.ID]struct{} // logs whose removal is not finished: nothing of them is copied

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

// kindWrite is a scratch kind in the new store: offset and log id, and the
// records that the batch wrote. It is gone when building has finished.
const kindWrite = 1

func (b *builder) take(key, value []byte) error {
	switch key[0] {
	case kindMeta:
		if string(key) == string(keyEpoch) {
			if epoch, err := decodeNumber(key, value); err == nil {
				b.s.epoch = max(b.s.epoch, epoch)
			}
		}
		return nil
	case kindName:
		name, err := decodeName(key, value)
		if err != nil || len(key) != 9 {
			b.s.unreadable(damaged(err, "the name of log number %x", key[1:]))
			return nil
		}
		b.names[order.ID(binary.BigEndian.Uint64(key[1:]))] = name
		return nil
	case kindHead:
		return b.head(key, value)
	case kindCommit:
		for offset, decode := range decodeEntries(key, value) {
			en, err := decode()
			if err != nil {
				b.s.unreadable(damaged(err, "the entries of commits up to %x", key[1:]))
				return nil
			}
			b.entries[offset] = en
			b.last = max(b.last, offset)
		}
		return nil
	case kindRecord:
		return b.record(key, value)
	case kindValue, kindLazy:
		if _, err := decodeValue(key, value); err != nil {
			b.s.unreadable(damaged(err, "value %x", key[1:]))
			return nil
		}
		b.s.report.Values++
		return b.set(key, value)
	case kindRemoval:
		r, err := decodeRemoval(key, value)
		if err != nil {
			b.s.unreadable(damaged(err, "the mark of a removal, %x,", key))
			return nil
		}
		b.going[r.id] = struct{}{}
		b.last = max(b.last, r.offset)
		return nil
	}
	return nil // index and claims are made from the records
}

func (b *builder) head(key, value []byte) error {
	name, _, err := journal.CutLogName(key[1:])
	if err != nil {
		b.s.unreadable(damaged(err, "the key %x", key))
		return nil
	}
	head, err := decodeHead(key, value)
	if err != nil {
		b.s.unreadable(damaged(err, "the head of log %v", name))
		return nil
	}
	b.heads[head.ID] = head
	b.names[head.ID] = name
	return nil
}

func (b *builder) record(key, value []byte) error {
	if len(key) != recordKeyLen {
		b.s.unreadable(damaged(errKey, "the key %x", key))
		return nil
	}
	id, seq := order.ID(binary.BigEndian.Uint64(key[1:])), seqOf(key)
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
	rec, err := decodeRecord(value, id, seq)
	if err != nil {
		b.s.unreadable(damaged(err, "record %d of log %v", seq, name))
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
	if rec.offset != b.log.offset {
		if err := b.endWrite(); err != nil {
			return err
		}
		b.log.first = seq
	}
	b.log.seq, b.log.offset = seq, rec.offset
	b.last = max(b.last, rec.offset)
	b.s.report.Records++
	return b.set(key, value)
}

// endWrite notes what one batch wrote to the log.
func (b *builder) endWrite() error {
	if b.log.seq == 0 {
		return nil
	}
	key := binary.BigEndian.AppendUint64([]byte{kindWrite}, b.log.offset)
	key = binary.BigEndian.AppendUint64(key, uint64(b.id))
	value := binary.AppendUvarint(nil, b.log.first)
	return b.set(key, binary.AppendUvarint(value, b.log.seq-b.log.first+1))
}

// endLog writes where the log ends now.
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
	key := nameKey(nil, b.id)
	if err := b.set(key, appendName(nil, key, name)); err != nil {
		return err
	}
	if b.newest[name] != b.id {
		return nil // the log was dropped and created anew; this is what is left of the old one
	}
	key = headKey(nil, name)
	return b.set(key, appendHead(nil, key, order.Head{ID: b.id, Seq: b.log.seq, Offset: b.log.offset}))
}

// finish writes the entries of commits, so that replaying them gives every
// record that is there and no other.
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
	_ = b.batch.Set(keyEpoch, appendNumber(nil, keyEpoch, max(b.s.epoch, 1)), nil)
	_ = b.batch.Set(keyLast, appendNumber(nil, keyLast, b.last), nil)
	return b.flush()
}

func (b *builder) entry(offset uint64) error {
	there, err := b.writes(offset)
	if err != nil {
		return err
	}
	key := commitKey(nil, offset)
	en := entry{kind: entryBatch}
	if stored, ok := b.entries[offset]; ok {
		en = stored
		var kept []written
		for _, w := range en.writes {
			if now, ok := there[w.id]; ok {
				kept = append(kept, now)
				delete(there, w.id)
			}
		}
		en.writes = kept
	}
	for _, w := range there {
		en.writes = append(en.writes, w)
	}
	var list entryList
	list.addEntry(&en)
	return b.set(key, list.value(key))
}

func (b *builder) writes(offset uint64) (map[order.ID]written, error) {
	lower := binary.BigEndian.AppendUint64([]byte{kindWrite}, offset)
	upper := binary.BigEndian.AppendUint64([]byte{kindWrite}, offset+1)
	there := map[order.ID]written{}
	err := scanRange(b.out, lower, upper, func(key, value []byte) error {
		c := cutter{b: value}
		id := order.ID(binary.BigEndian.Uint64(key[9:]))
		there[id] = written{id: id, first: c.uvarint(), count: c.uvarint()}
		return c.err()
	})
	return there, err
}

func (b *builder) set(key, value []byte) error {
	_ = b.batch.Set(key, value, nil)
	if b.batch.Len() > rebuildBytes {
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

func (a *apartWriter) write(id order.ID, log journal.LogName, seq uint64, rec stored) error {
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
	}{log.String(), uint64(id), seq, rec.offset, rec.data})
}

func (a *apartWriter) close() error {
	if a.file == nil {
		return nil
	}
	return errors.Join(a.buf.Flush(), a.file.Sync(), a.file.Close())
}
