package storefs

import "github.com/cockroachdb/pebble/v2/vfs"

// tableBuffer is how much of a table is written at once. Pebble writes one
// block, and its trailer, at a time.
const tableBuffer = 256 << 10

// tableFile is a table that is being written. Writes are buffered: they are in the
// file only after Sync or Close has returned.
type tableFile struct {
	vfs.File
	buf []byte
}

func (f *tableFile) Write(b []byte) (int, error) {
	if f.buf == nil {
		f.buf = make([]byte, 0, tableBuffer)
	}
	if len(f.buf)+len(b) > tableBuffer {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(b) >= tableBuffer {
		return f.File.Write(b)
	}
	f.buf = append(f.buf, b...)
	return len(b), nil
}

func (f *tableFile) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	_, err := f.File.Write(f.buf)
	f.buf = f.buf[:0]
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
	return f.File.SyncTo(length - int64(len(f.buf)))
}

func (f *tableFile) Close() error {
	if err := f.flush(); err != nil {
		_ = f.File.Close()
		return err
	}
	return f.File.Close()
}
