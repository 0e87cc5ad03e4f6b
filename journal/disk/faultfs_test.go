package disk_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errInjected = errors.New("injected fault")

// faultFS holds, fails and counts operations on the store's log files.
type faultFS struct {
	vfs.FS
	syncs atomic.Int64 // of log files

	mu        sync.Mutex
	held      *hold
	failWrite bool
	failSync  bool
	free      atomic.Int64 // reported as available; 0: plenty

	syncTime   time.Duration // how long a sync takes
	failTables atomic.Bool   // writing tables fails
	holdTables atomic.Bool   // writing tables blocks
	released   atomic.Bool
}

// release ends every hold, so that no operation stays blocked.
func (f *faultFS) release() {
	f.released.Store(true)
	f.holdTables.Store(false)
	f.mu.Lock()
	h := f.held
	f.mu.Unlock()
	if h != nil {
		h.release()
	}
}

type hold struct {
	reached, released chan struct{}
	reach, release    func()
}

func (f *faultFS) HoldSync() (<-chan struct{}, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &hold{reached: make(chan struct{}), released: make(chan struct{})}
	h.reach = sync.OnceFunc(func() { close(h.reached) })
	h.release = sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		close(h.released)
		if f.held == h {
			f.held = nil
		}
	})
	f.held = h
	return h.reached, h.release
}

func (f *faultFS) FailWrite() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failWrite = true
}

func (f *faultFS) FailSync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failSync = true
}

func (f *faultFS) sync(do func() error) error {
	f.syncs.Add(1)
	for {
		f.mu.Lock()
		h := f.held
		if h == nil {
			fail := f.failSync
			f.failSync = false
			f.mu.Unlock()
			if fail {
				return errInjected
			}
			for until := time.Now().Add(f.syncTime); time.Now().Before(until); {
				runtime.Gosched()
			}
			return do()
		}
		f.mu.Unlock()
		h.reach()
		<-h.released
	}
}

func (f *faultFS) write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failWrite {
		f.failWrite = false
		return errInjected
	}
	return nil
}

func (f *faultFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	switch {
	case err != nil:
	case strings.HasSuffix(name, ".log"):
		return &faultFile{File: file, fs: f}, nil
	case strings.HasSuffix(name, ".sst"):
		return &tableFile{File: file, fs: f}, nil
	}
	return file, err
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, c)
	return f.wrap(name, file, err)
}

func (f *faultFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if free := f.free.Load(); free != 0 {
		return vfs.DiskUsage{AvailBytes: uint64(free), TotalBytes: 1 << 40}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 39, TotalBytes: 1 << 40}, nil
}

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) Write(b []byte) (int, error) {
	if err := f.fs.write(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *faultFile) Sync() error     { return f.fs.sync(f.File.Sync) }
func (f *faultFile) SyncData() error { return f.fs.sync(f.File.SyncData) }

// tableFile is a table that is being written.
type tableFile struct {
	vfs.File
	fs *faultFS
}

func (f *tableFile) Write(b []byte) (int, error) {
	for f.fs.holdTables.Load() {
		runtime.Gosched()
	}
	if f.fs.failTables.Load() {
		return 0, errInjected
	}
	return f.File.Write(b)
}
