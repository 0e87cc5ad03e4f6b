package disk_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lossyFS keeps writes in memory until they are synced, so that when the process ends,
// the disk has exactly what a loss of power would leave. After arm it fails one
// operation, or that one and all after it.
type lossyFS struct {
	vfs.FS
	at    int64  // the operation that fails, counted
	match string // or the first whose description contains this
	kind  error
	stays bool // all later ones fail too

	armed  atomic.Bool
	ops    atomic.Int64
	hit    atomic.Bool
	broken atomic.Bool
	out    *lines // set before it is used
}

// newLossyFS parses "AT:io|full:once|stays", where AT is a number or a part of an
// operation's description.
func newLossyFS(fault string) *lossyFS {
	f := &lossyFS{FS: vfs.Default}
	parts := strings.Split(fault, ":")
	if _, err := fmt.Sscan(parts[0], &f.at); err != nil {
		f.match = parts[0]
	}
	f.kind = errors.New("injected input/output error")
	if parts[1] == "full" {
		f.kind = fmt.Errorf("injected: %w", syscall.ENOSPC)
	}
	f.stays = parts[2] == "stays"
	return f
}

// arm begins to count. The file system may be in use already.
func (f *lossyFS) arm() { f.armed.Store(true) }

// op counts an operation and may fail it.
func (f *lossyFS) op(what string) error {
	if !f.armed.Load() {
		return nil
	}
	hit := f.ops.Add(1) == f.at
	if f.match != "" && strings.Contains(what, f.match) {
		hit = f.hit.CompareAndSwap(false, true)
	}
	if hit {
		f.out.print("fault %s", what)
		f.broken.Store(true)
		return f.kind
	}
	if f.stays && f.broken.Load() {
		return f.kind
	}
	return nil
}

func (f *lossyFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &lossyFile{File: file, fs: f, name: name}, nil
}

func (f *lossyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.op("create " + f.PathBase(name)); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *lossyFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.op("reuse " + f.PathBase(name)); err != nil {
		return nil, err
	}
	file, err := f.FS.ReuseForWrite(old, name, c)
	return f.wrap(name, file, err)
}

func (f *lossyFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	return f.wrap(name, file, err)
}

func (f *lossyFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap(name, file, err)
}

func (f *lossyFS) Rename(from, to string) error {
	if err := f.op("rename " + f.PathBase(to)); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *lossyFS) Remove(name string) error {
	if err := f.op("remove " + f.PathBase(name)); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *lossyFS) MkdirAll(name string, mode os.FileMode) error {
	if err := f.op("make " + f.PathBase(name)); err != nil {
		return err
	}
	return f.FS.MkdirAll(name, mode)
}

func (f *lossyFS) RemoveAll(name string) error {
	if err := f.op("remove " + f.PathBase(name)); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

// lossyFile buffers writes until they are synced.
type lossyFile struct {
	vfs.File
	fs   *lossyFS
	name string

	mu  sync.Mutex
	buf []byte
	at  []placedWrite
}

type placedWrite struct {
	data []byte
	at   int64
}

func (f *lossyFile) Write(b []byte) (int, error) {
	if err := f.fs.op("write " + f.fs.PathBase(f.name)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf = append(f.buf, b...)
	return len(b), nil
}

func (f *lossyFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fs.op("write " + f.fs.PathBase(f.name)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = append(f.at, placedWrite{append([]byte(nil), b...), at})
	return len(b), nil
}

func (f *lossyFile) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.buf) > 0 {
		if _, err := f.File.Write(f.buf); err != nil {
			return err
		}
		f.buf = nil
	}
	for _, w := range f.at {
		if _, err := f.File.WriteAt(w.data, w.at); err != nil {
			return err
		}
	}
	f.at = nil
	return nil
}

func (f *lossyFile) Sync() error {
	if err := f.fs.op("sync " + f.fs.PathBase(f.name)); err != nil {
		return err
	}
	return f.flush()
}

func (f *lossyFile) SyncData() error { return f.Sync() }

// SyncTo does nothing, because it guarantees nothing.
func (f *lossyFile) SyncTo(int64) (bool, error) { return false, nil }

func (f *lossyFile) Preallocate(int64, int64) error { return nil }

// Close discards what was not synced, as a loss of power soon after would.
func (f *lossyFile) Close() error { return f.File.Close() }
