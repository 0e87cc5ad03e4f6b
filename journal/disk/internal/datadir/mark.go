package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// MARK holds the minimum that is durable: epoch and last offset. Pebble's own
// recovery treats a damaged end of its log as the end; MARK tells them apart.
// It has two places that are written alternately, so that a write torn by a crash
// leaves the other intact.
const (
	MarkFile     = "MARK"
	markPlaceGap = 4096
	markLen      = 4 + 8 + 8 + 8 + 4
)

var markMagic = []byte("PMK1")

// Mark is the minimum that is durable.
type Mark struct {
	turn   uint64 // counts writes
	Epoch  uint64
	Offset uint64
}

func (m Mark) encode() []byte {
	b := bytes.Clone(markMagic)
	for _, n := range []uint64{m.turn, m.Epoch, m.Offset} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, layout.Castagnoli))
}

func decodeMark(b []byte) (Mark, bool) {
	if len(b) < markLen || !bytes.HasPrefix(b, markMagic) {
		return Mark{}, false
	}
	b = b[:markLen]
	if binary.BigEndian.Uint32(b[markLen-4:]) != crc32.Checksum(b[:markLen-4], layout.Castagnoli) {
		return Mark{}, false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(b[at:]) }
	return Mark{turn: number(4), Epoch: number(12), Offset: number(20)}, true
}

// ReadMark returns the later of the two marks.
func ReadMark(fs vfs.FS, dir string) (Mark, error) {
	b, err := storefs.ReadFile(fs, fs.PathJoin(dir, MarkFile))
	if err != nil {
		return Mark{}, layout.Damaged(err, "%s", MarkFile)
	}
	first, ok := decodeMark(b)
	if len(b) >= markPlaceGap {
		if second, also := decodeMark(b[markPlaceGap:]); also && (!ok || second.turn > first.turn) {
			first, ok = second, true
		}
	}
	if !ok {
		return Mark{}, layout.Damaged(layout.ErrSum, "%s", MarkFile)
	}
	return first, nil
}

// Marker is the open file MARK.
type Marker struct {
	File vfs.File
	Last Mark
}

// OpenMark opens MARK to write marks that follow last, creating it if necessary.
func OpenMark(fs vfs.FS, dir string, last Mark) (*Marker, error) {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, MarkFile), "journal-mark")
	if err != nil {
		return nil, err
	}
	return &Marker{File: f, Last: last}, nil
}

// Write writes a mark to the older place and syncs it.
func (m *Marker) Write(epoch, offset uint64) error {
	next := Mark{turn: m.Last.turn + 1, Epoch: epoch, Offset: offset}
	place := int64(next.turn%2) * markPlaceGap
	if _, err := m.File.WriteAt(next.encode(), place); err != nil {
		return err
	}
	if err := m.File.Sync(); err != nil {
		return err
	}
	m.Last = next
	return nil
}

// CreateMark creates MARK with both places written.
func CreateMark(fs vfs.FS, dir string, epoch, offset uint64) error {
	m, err := OpenMark(fs, dir, Mark{})
	if err != nil {
		return err
	}
	err = errors.Join(m.Write(epoch, offset), m.Write(epoch, offset), m.File.Close())
	if err != nil {
		return err
	}
	return storefs.SyncDir(fs, dir)
}
