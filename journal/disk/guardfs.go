package disk

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// orderedFS makes the name of a MANIFEST durable before the marker that points
// to it can be. Pebble syncs the folder only after both, which is enough where
// a folder's changes become durable in order, and not elsewhere. It also writes
// tables in larger pieces.
type orderedFS struct{ vfs.FS }

func (o orderedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(o.PathBase(name), "marker.") {
		if err := syncDir(o.FS, o.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := o.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".sst") {
		f = &tableFile{File: f}
	}
	return f, err
}

// guardFS keeps errors of the write-ahead log from places where Pebble would
// end the process without a word to anyone: in the middle of handing over a
// batch it panics, with a mutex in a state that makes the panic fatal. There an
// error is reported, which fails the engine, and never returned. While the store
// is being opened, ownFS stands under it and keeps all errors.
type guardFS struct {
	orderedFS
	store  string // files elsewhere are none of its business
	report func(error)
	step   func() // something was begun that takes a while
	turned func(path string, log vfs.File)

	mu      sync.Mutex
	cond    *sync.Cond
	handing bool // Pebble is taking over a batch, or closing
}

func newGuardFS(fs vfs.FS, store string, report func(error), step func(), turned func(string, vfs.File)) *guardFS {
	g := &guardFS{orderedFS: orderedFS{fs}, store: store, report: report, step: step, turned: turned}
	g.cond = sync.NewCond(&g.mu)
	return g
}

// hand runs a call during which Pebble must not see an error of its log.
func (g *guardFS) hand(call func() error) error {
	g.set(true)
	defer g.set(false)
	return call()
}

func (g *guardFS) set(handing bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handing = handing
	g.cond.Broadcast()
}

func (g *guardFS) isHanding() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.handing
}

// trip reports an error and returns it as soon as that is safe, which may be
// never.
func (g *guardFS) trip(err error, what, name string) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s %s: %w", what, g.PathBase(name), err)
	g.report(err)
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.handing {
		g.cond.Wait()
	}
	return err
}

func (g *guardFS) log(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") || g.PathDir(name) != g.store {
		return f, err
	}
	if err != nil {
		return nil, g.trip(err, "creating", name)
	}
	g.turned(name, f)
	return newGuardFile(f, g, name), nil
}

func (g *guardFS) Link(old, name string) error {
	g.step()
	return g.orderedFS.Link(old, name)
}

func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.step()
	f, err := g.orderedFS.Create(name, c)
	return g.log(name, f, err)
}

func (g *guardFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.orderedFS.ReuseForWrite(old, name, c)
	return g.log(name, f, err)
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.orderedFS.OpenDir(name)
	if err != nil || name != g.store {
		return f, err
	}
	return &guardDir{File: f, fs: g, name: name}, nil
}

// guardFile is a write-ahead log. It is made longer in steps, ahead of what is
// written: a sync that also has to write down a new length takes half as long
// again. What lies behind the last record reads as zeros, as in any log that is
// used again.
type guardFile struct {
	vfs.File
	fs     *guardFS
	name   string
	at     int64 // where the next write goes
	length int64 // of the file; -1: it grows as it is written
}

// zeros is the step.
var zeros [256 << 10]byte

func newGuardFile(f vfs.File, fs *guardFS, name string) *guardFile {
	g := &guardFile{File: f, fs: fs, name: name, length: -1}
	if info, err := f.Stat(); err == nil && f.Fd() != vfs.InvalidFd {
		g.length = info.Size()
	}
	return g
}

func (f *guardFile) Write(b []byte) (int, error) {
	f.reach(f.at + int64(len(b)))
	n, err := f.File.Write(b)
	f.at += int64(n)
	return n, f.fs.trip(err, "writing", f.name)
}

// reach makes the file at least as long as is needed now.
func (f *guardFile) reach(end int64) {
	for f.length >= 0 && f.length < end {
		if extend(f.File, f.length, zeros[:]) != nil {
			f.length = -1 // then without; if the disk is ill, the write tells
			return
		}
		f.length += int64(len(zeros))
	}
}

func (f *guardFile) Sync() error     { return f.fs.trip(f.File.Sync(), "syncing", f.name) }
func (f *guardFile) SyncData() error { return f.fs.trip(f.File.SyncData(), "syncing", f.name) }
func (f *guardFile) Close() error    { return f.fs.trip(f.File.Close(), "closing", f.name) }

// guardDir is a folder. When it cannot be synced, Pebble panics wherever it is.
type guardDir struct {
	vfs.File
	fs   *guardFS
	name string
}

func (f *guardDir) Sync() error {
	err := f.File.Sync()
	if err == nil {
		return nil
	}
	f.fs.report(fmt.Errorf("syncing folder %s: %w", f.name, err))
	select {} // the process is to end
}
