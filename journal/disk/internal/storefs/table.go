package storefs

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableBuffer is how much of a table is written at once. Pebble writes one
// block, and its trailer, at a time.
const tableBuffer = 256 << 10

// tableBuffers reuses the buffers: a flush writes several tables, one after the other.
var tableBuffers = sync.Pool{New: func() any { return new([tableBuffer]byte) }}

// tableFile is a table that is being written. Writes are buffered: they are in the
// file only after Sync or Close has returned.
type tableFile struct {
	vfs.File
	buf  *[tableBuffer]byte // nil: nothing is buffered
	used int
}

func (f *tableFile) Write(b []byte) (int, error) {
	if f.used+len(b) > tableBuffer {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(b) >= tableBuffer {
		return f.File.Write(b)
	}
	if f.buf == nil {
		f.buf = tableBuffers.Get().(*[tableBuffer]byte)
	}
	f.used += copy(f.buf[f.used:], b)
	return len(b), nil
}

func (f *tableFile) flush() error {
	if f.used == 0 {
		return nil
	}
	_, err := f.File.Write(f.buf[:f.used])
	f.used = 0
	return err
}

func (f *tableFile) Sync() error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *tableFile) SyncData() error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.File.SyncData()
}

// SyncTo starts writing out what is in the file, without the buffer; it guarantees
// nothing.
func (f *tableFile) SyncTo(length int64) (bool, error) {
	return f.File.SyncTo(length - int64(f.used))
}

func (f *tableFile) Close() error {
	err := f.flush()
	if f.buf != nil {
		tableBuffers.Put(f.buf)
		f.buf = nil
	}
	if err != nil {
		_ = f.File.Close()
		return err
	}
	return f.File.Close()
}
