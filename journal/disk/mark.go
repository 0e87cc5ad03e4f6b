package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// MARK says how much is durable at least: epoch and last offset. Pebble's own
// recovery takes a damaged end of its log for the end; MARK tells them apart.
// It has two places that are written in turn, so that a write that a crash
// tears leaves the other.
const (
	markFile     = "MARK"
	markPlaceGap = 4096
	markLen      = 4 + 8 + 8 + 8 + 4
	markInterval = time.Second
)

var markMagic = []byte("PMK1")

type mark struct {
	turn   uint64 // counts writes
	epoch  uint64
	offset uint64
}

func (m mark) encode() []byte {
	b := bytes.Clone(markMagic)
	for _, n := range []uint64{m.turn, m.epoch, m.offset} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, layout.Castagnoli))
}

func decodeMark(b []byte) (mark, bool) {
	if len(b) < markLen || !bytes.HasPrefix(b, markMagic) {
		return mark{}, false
	}
	b = b[:markLen]
	if binary.BigEndian.Uint32(b[markLen-4:]) != crc32.Checksum(b[:markLen-4], layout.Castagnoli) {
		return mark{}, false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(b[at:]) }
	return mark{turn: number(4), epoch: number(12), offset: number(20)}, true
}

// readMark returns the later of the two places.
func readMark(fs vfs.FS, dir string) (mark, error) {
	b, err := storefs.ReadFile(fs, fs.PathJoin(dir, markFile))
	if err != nil {
		return mark{}, layout.Damaged(err, "%s", markFile)
	}
	first, ok := decodeMark(b)
	if len(b) >= markPlaceGap {
		if second, also := decodeMark(b[markPlaceGap:]); also && (!ok || second.turn > first.turn) {
			first, ok = second, true
		}
	}
	if !ok {
		return mark{}, layout.Damaged(layout.ErrSum, "%s", markFile)
	}
	return first, nil
}

// marker is the open file.
type marker struct {
	file vfs.File
	last mark
}

// openMark opens the file to write after a mark, creating it if necessary.
func openMark(fs vfs.FS, dir string, last mark) (*marker, error) {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, markFile), "journal-mark")
	if err != nil {
		return nil, err
	}
	return &marker{file: f, last: last}, nil
}

// write puts a mark into the older place and syncs it.
func (m *marker) write(epoch, offset uint64) error {
	next := mark{turn: m.last.turn + 1, epoch: epoch, offset: offset}
	place := int64(next.turn%2) * markPlaceGap
	if _, err := m.file.WriteAt(next.encode(), place); err != nil {
		return err
	}
	if err := m.file.Sync(); err != nil {
		return err
	}
	m.last = next
	return nil
}

// createMark makes a new file with both places written.
func createMark(fs vfs.FS, dir string, epoch, offset uint64) error {
	m, err := openMark(fs, dir, mark{})
	if err != nil {
		return err
	}
	err = errors.Join(m.write(epoch, offset), m.write(epoch, offset), m.file.Close())
	if err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}

// markLoop writes MARK when Pebble begins a new log, and at most once a second
// while batches become durable.
func (e *Engine) markLoop() {
	defer e.helpers.Done()
	ticker := time.NewTicker(markInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.rotated:
		case <-ticker.C:
		case <-e.stop:
			return
		}
		durable := e.durable.Load()
		if durable == e.mark.last.offset || e.ending() {
			continue
		}
		if err := e.mark.write(e.epoch, durable); err != nil {
			e.report(layout.Damaged(err, "writing %s failed; it", markFile))
			return
		}
	}
}
