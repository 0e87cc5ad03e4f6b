package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// walEnd is how one log of the store reads: where Pebble stops, why, and what
// lies beyond.
type walEnd struct {
	path   string
	stop   int64
	size   int64
	err    error // nil: it ends as a log that was closed; io.ErrUnexpectedEOF: as one that was not
	beyond int64 // where the last part of this log after stop ends; 0: there is none
}

// proven reports damage for certain: something later says that what is
// unreadable had been synced, or follows the mark of a clean end.
func (w walEnd) proven() bool {
	return (w.err == nil && w.beyond > 0) || (w.err != nil && !errors.Is(w.err, record.ErrUnexpectedEOF))
}

// scanWALs reads every log of a store as Pebble's recovery would.
func scanWALs(fs vfs.FS, store string) ([]walEnd, error) {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: store})
	if err != nil {
		return nil, err
	}
	var ends []walEnd
	for _, log := range logs {
		for i := range log.NumSegments() {
			_, path := log.SegmentLocation(i)
			end, err := scanWAL(fs, path, log)
			if err != nil {
				return nil, err
			}
			ends = append(ends, end)
		}
	}
	return ends, nil
}

func scanWAL(fs vfs.FS, path string, log wal.LogicalLog) (walEnd, error) {
	end := walEnd{path: path}
	info, err := fs.Stat(path)
	if err != nil {
		return end, err
	}
	end.size = info.Size()
	r := log.OpenForRead()
	defer r.Close() //nolint:errcheck // only read
	for {
		_, at, err := r.NextRecord()
		end.stop = at.Physical
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			end.err = err
			break
		}
	}
	end.beyond, err = lastChunk(fs, path, uint32(log.Num), end.stop)
	return end, err
}

// A log is made of blocks, and these of chunks with headers: a masked CRC32C
// over what follows it, the length, the kind, the number of the log, and for
// some kinds how much of the log is synced.
const (
	walBlock       = 32 << 10
	walHeader      = 11
	walSyncHeader  = 19
	walFirstKind   = 5 // below are kinds without the log's number
	walFirstSynced = 9
	walLastKind    = 12
)

// lastChunk finds the end of the last whole chunk of a log after a place; 0
// when there is none. A log that was used before, under another number, has
// old chunks behind its end: these do not count.
func lastChunk(fs vfs.FS, path string, log uint32, from int64) (int64, error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	last := int64(0)
	block := make([]byte, walBlock)
	number := binary.LittleEndian.AppendUint32(nil, log)
	for at := from / walBlock * walBlock; ; at += walBlock {
		n, err := f.ReadAt(block, at)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return last, nil
			}
			return 0, err
		}
		begin := int(max(from-at, 0))
		for begin < n {
			// The log's number stands seven bytes into a chunk's header.
			next := bytes.Index(block[min(begin+7, n):n], number)
			if next < 0 {
				break
			}
			begin += next
			if size := chunkLen(block[begin:n]); size > 0 {
				begin += size
				last = at + int64(begin)
			} else {
				begin++
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
}

// chunkLen is the length of the whole chunk at the front of b, 0 if there is
// none.
func chunkLen(b []byte) int {
	if len(b) < walHeader {
		return 0
	}
	header := walHeader
	kind := b[6]
	if kind < walFirstKind || kind > walLastKind {
		return 0
	}
	if kind >= walFirstSynced {
		header = walSyncHeader
	}
	size := header + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0
	}
	return size
}

// cutFS shows one file without its end.
type cutFS struct {
	vfs.FS
	path string
	at   int64
}

func (c cutFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || name != c.path {
		return f, err
	}
	return &cutFile{File: f, left: c.at}, nil
}

type cutFile struct {
	vfs.File
	left int64
}

func (c *cutFile) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.File.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}
