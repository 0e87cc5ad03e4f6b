//go:build fuse

package lossyfs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// file is a file's contents, and what the disk has of them. The file system's lock
// guards it.
type file struct {
	fs.Inode
	all     *FS
	mode    uint32
	changed time.Time
	data    []byte
	synced  []byte // what a loss of power leaves
	kept    bool   // it was synced once, or its folder was
	from    int    // where it differs from synced at most, apart from its length
	to      int
	since   uint64 // files that were opened before this cannot be used
}

// handle is a file that a process has open.
type handle struct {
	number uint64
	sync   bool // every write is synced
}

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeFlusher   = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
)

// handle opens the file.
func (f *file) handle(flags uint32) *handle {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.all.opened++
	if flags&syscall.O_TRUNC != 0 {
		f.resize(0)
	}
	return &handle{number: f.all.opened, sync: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0}
}

// stale reports whether a file was opened before the power was cut.
func (f *file) stale(h fs.FileHandle) bool {
	own, ok := h.(*handle)
	return ok && own.number <= f.since
}

// Open implements fs.NodeOpener.
func (f *file) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return f.handle(flags), 0, fs.OK
}

// Read implements fs.NodeReader.
func (f *file) Read(_ context.Context, h fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.stale(h) {
		return nil, syscall.EIO
	}
	n := copy(into, f.data[min(at, int64(len(f.data))):])
	return fuse.ReadResultData(into[:n]), fs.OK
}

// Write implements fs.NodeWriter.
func (f *file) Write(_ context.Context, h fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.stale(h) {
		return 0, syscall.EIO
	}
	f.resize(max(int64(len(f.data)), at+int64(len(data))))
	f.touch(int(at), int(at)+copy(f.data[at:], data))
	f.changed = time.Now()
	if own, ok := h.(*handle); ok && own.sync {
		f.store()
	}
	return uint32(len(data)), fs.OK
}

// Fsync implements fs.NodeFsyncer.
func (f *file) Fsync(_ context.Context, h fs.FileHandle, _ uint32) syscall.Errno {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.stale(h) {
		return syscall.EIO
	}
	f.store()
	return fs.OK
}

// Flush does nothing: closing a file does not sync it.
func (*file) Flush(context.Context, fs.FileHandle) syscall.Errno { return fs.OK }

// Getattr implements fs.NodeGetattrer.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.describe(out)
	return fs.OK
}

// Setattr implements fs.NodeSetattrer.
func (f *file) Setattr(_ context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.stale(h) {
		return syscall.EIO
	}
	if size, ok := in.GetSize(); ok {
		f.resize(int64(size))
		f.changed = time.Now()
	}
	if mode, ok := in.GetMode(); ok {
		f.mode = mode & 0o7777
	}
	f.describe(out)
	return fs.OK
}

func (f *file) describe(out *fuse.AttrOut) {
	out.Mode, out.Size = f.mode, uint64(len(f.data))
	out.Blocks = (out.Size + 511) / 512
	out.SetTimes(&f.changed, &f.changed, &f.changed)
}

// resize cuts the file, or fills it up with zeros.
func (f *file) resize(size int64) {
	before := int64(len(f.data))
	if size > before {
		f.data = append(f.data, make([]byte, size-before)...)
	}
	f.touch(int(min(size, before)), int(max(size, before)))
	f.data = f.data[:size]
}

func (f *file) touch(from, to int) {
	if f.from == f.to {
		f.from, f.to = from, to
	} else if from < to {
		f.from, f.to = min(f.from, from), max(f.to, to)
	}
}

// store syncs the bytes that differ.
func (f *file) store() {
	if n := len(f.data) - len(f.synced); n > 0 {
		f.synced = append(f.synced, make([]byte, n)...)
	}
	f.synced = f.synced[:len(f.data)]
	from, to := min(f.from, len(f.data)), min(f.to, len(f.data))
	copy(f.synced[from:to], f.data[from:to])
	f.from, f.to, f.kept = 0, 0, true
}

// cut leaves what was synced, and reports how many bytes were not.
func (f *file) cut(opened uint64) (lost int) {
	for i := range max(len(f.data), len(f.synced)) {
		if i >= len(f.data) || i >= len(f.synced) || f.data[i] != f.synced[i] {
			lost++
		}
	}
	f.data, f.since, f.from, f.to = append([]byte(nil), f.synced...), opened, 0, 0
	return lost
}
