// Package walchunk reads Pebble's logs without Pebble, to find where they end and
// whether an unreadable part had been synced.
package walchunk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Pebble's logs consist of blocks, and blocks of chunks. A chunk's header is a
// masked CRC32C over what follows it, a length, a kind, and in write-ahead logs
// the number of the log and, for the newer kinds, how much of it is synced. A
// record is one full chunk, or a first chunk, any number of middle ones and a last one.
const (
	Block          = 32 << 10 // bytes of a block
	legacyHeader   = 7
	numberedHeader = 11
	syncedHeader   = 19
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errTorn    = errors.New("it ends in the middle of a record")
	errDamaged = errors.New("a part that had been synced is not readable")
)

// End describes how a log ends.
type End struct {
	Stop   int64 // end of the last whole record
	Size   int64
	Err    error // nil: the log was closed, or ends between records
	Beyond int64 // end of the last whole chunk of this log after Stop; 0: none
	Proven bool  // the unreadable part had been synced
}

// chunk is one parsed chunk; size 0 means that there is none.
type chunk struct {
	size     int
	data     []byte
	first    bool
	last     bool
	numbered bool
	number   uint32
	synced   uint64 // 0 if the kind does not have it
}

// parseChunk reads the chunk at the front of b, which ends where its block
// ends.
func parseChunk(b []byte) (c chunk) {
	if len(b) < legacyHeader {
		return chunk{}
	}
	kind, header := b[6], legacyHeader
	switch {
	case kind >= 1 && kind <= 4:
	case kind >= 5 && kind <= 8:
		header = numberedHeader
	case kind >= 9 && kind <= 12:
		header = syncedHeader
	default:
		return chunk{}
	}
	size := header + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return chunk{}
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return chunk{}
	}
	position := (kind - 1) % 4 // full, first, middle, last
	c = chunk{size: size, data: b[header:size], first: position <= 1, last: position == 0 || position == 3}
	if header >= numberedHeader {
		c.numbered, c.number = true, binary.LittleEndian.Uint32(b[7:])
	}
	if header == syncedHeader {
		c.synced = binary.LittleEndian.Uint64(b[11:])
	}
	return c
}

// Read calls each with every record of a log, as far as it is readable, and
// returns how the log ends. Number 0 is for a log without numbers. It reads a few
// blocks at a time.
func Read(r io.ReaderAt, number uint32, each func(record []byte) error) (End, error) {
	c := chunkReader{number: number, each: each}
	buf := make([]byte, 8*Block)
	for base := int64(0); ; base += int64(len(buf)) {
		n, err := r.ReadAt(buf, base)
		if err != nil && !errors.Is(err, io.EOF) {
			return c.end, err
		}
		c.base = base
		more := c.blocks(buf[:n], n < len(buf))
		if more && n == len(buf) {
			continue
		}
		c.end.Size = base + int64(n)
		if c.end.Err == nil && c.partial {
			c.end.Err = errTorn
		}
		if more && c.end.Err == nil {
			return c.end, nil // it ends between two records
		}
		return c.end, c.end.search(r, c.at, number)
	}
}

// chunkReader assembles records from blocks.
type chunkReader struct {
	number  uint32
	each    func(record []byte) error
	base    int64 // place of the blocks in the log
	at      int64 // place where reading is, or stopped
	record  []byte
	partial bool // record holds the beginning of a record
	end     End
}

// blocks reads some whole blocks, of which the last may be short when the log
// ends in it. It reports whether reading goes on.
func (c *chunkReader) blocks(data []byte, last bool) bool {
	for at := 0; at < len(data); {
		c.at = c.base + int64(at)
		block := data[at:min((at/Block+1)*Block, len(data))]
		if len(block) < syncedHeader && zero(block) && (at+len(block) < len(data) || !last) {
			at += len(block) // too little room for a chunk
			continue
		}
		if closed(block, c.number) && !c.partial {
			return false
		}
		k := parseChunk(block)
		if k.size == 0 || (c.number != 0 && (!k.numbered || k.number != c.number)) || k.first == c.partial {
			c.end.Err = errTorn
			return false
		}
		at += k.size
		whole := k.data
		if c.partial || !k.last {
			c.record = append(c.record, k.data...)
			whole = c.record
		}
		if c.partial = !k.last; c.partial {
			continue
		}
		if err := c.each(whole); err != nil {
			c.end.Err = err
			return false
		}
		c.record = c.record[:0]
		c.end.Stop = c.base + int64(at)
	}
	c.at = c.base + int64(len(data))
	return true
}

// closed reports whether block begins with the mark of a clean end: a header with the
// next log number.
func closed(block []byte, number uint32) bool {
	return number != 0 && len(block) >= numberedHeader && block[6] >= 5 && block[6] <= 12 &&
		binary.LittleEndian.Uint32(block[7:]) == number+1
}

// search looks for chunks of the log after the place where reading stopped. A chunk
// that was written after that place had been synced proves damage; so does any chunk
// after a clean end.
func (e *End) search(r io.ReaderAt, from int64, number uint32) error {
	synced := uint64(0)
	block := make([]byte, Block)
	for base := from / Block * Block; ; base += Block {
		n, err := r.ReadAt(block, base)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for at := int(max(from-base, 0)); at < n; {
			c := parseChunk(block[at:n])
			if c.size == 0 || (number != 0 && (!c.numbered || c.number != number)) {
				at = nextHeader(block[:n], at+1)
				continue
			}
			at += c.size
			e.Beyond = base + int64(at)
			synced = max(synced, c.synced)
		}
		if n < Block {
			e.Size = base + int64(n)
			break
		}
	}
	switch {
	case e.Beyond == 0:
	case e.Err == nil:
		e.Proven = true
	case synced > uint64(from):
		e.Proven = true
		e.Err = errDamaged
	}
	return nil
}

// Begins reports whether b begins with a whole chunk; b ends where its block ends.
func Begins(b []byte) bool { return parseChunk(b).size > 0 }

// nextHeader returns the next place where a chunk may begin.
func nextHeader(data []byte, at int) int {
	for ; at < len(data); at++ {
		if kind := at + 6; kind < len(data) && data[kind] >= 1 && data[kind] <= 12 {
			return at
		}
	}
	return at
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
