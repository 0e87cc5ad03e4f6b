// Package storefs wraps the file system of a store for Pebble: it withholds errors
// from Pebble where Pebble would end the process, makes names durable in order, and
// checks that the files are still the ones that were opened. It does not depend on
// what is stored.
package storefs

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Ordered makes the name of a MANIFEST durable before the marker that points
// to it. Pebble syncs the folder only after both, which suffices only on file systems
// that make a folder's changes durable in order. Ordered also writes tables in
// larger pieces.
type Ordered struct{ vfs.FS }

// Create implements vfs.FS.
func (o Ordered) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(o.PathBase(name), "marker.") {
		if err := SyncDir(o.FS, o.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := o.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".sst") {
		f = &tableFile{File: f}
	}
	return f, err
}

// Guard withholds errors of the write-ahead log where Pebble would end the process
// without reporting them: while Pebble takes over a batch it panics on an error, with
// a mutex in a state that makes the panic fatal. There Guard reports the error, which
// fails the engine, and does not return. While the store is being opened, the file
// system of an OpenGuard is under it and withholds all errors.
type Guard struct {
	Ordered
	store  string // files elsewhere are not guarded
	report func(error)
	step   func() // called when a slow operation begins
	turned func(path string, log vfs.File)

	mu      sync.Mutex
	cond    *sync.Cond
	handing bool // Pebble is taking over a batch, or closing
}

// NewGuard returns a guard of the logs of the store in a folder. It calls report with
// errors, step when a slow operation begins, and turned with each log that Pebble
// begins.
func NewGuard(fs vfs.FS, store string, report func(error), step func(), turned func(string, vfs.File)) *Guard {
	g := &Guard{Ordered: Ordered{fs}, store: store, report: report, step: step, turned: turned}
	g.cond = sync.NewCond(&g.mu)
	return g
}

// Hand runs a call during which Pebble must not receive an error of its log.
func (g *Guard) Hand(call func() error) error {
	g.set(true)
	defer g.set(false)
	return call()
}

func (g *Guard) set(handing bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handing = handing
	g.cond.Broadcast()
}

// Handing reports whether a call of Hand is running.
func (g *Guard) Handing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.handing
}

// trip reports an error, and returns it as soon as no call of Hand is running, which
// may be never.
func (g *Guard) trip(err error, what, name string) error {
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

func (g *Guard) log(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") || g.PathDir(name) != g.store {
		return f, err
	}
	if err != nil {
		return nil, g.trip(err, "creating", name)
	}
	g.turned(name, f)
	return newGuardFile(f, g, name), nil
}

// Link implements vfs.FS.
func (g *Guard) Link(old, name string) error {
	g.step()
	return g.Ordered.Link(old, name)
}

// Create implements vfs.FS.
func (g *Guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.step()
	f, err := g.Ordered.Create(name, c)
	return g.log(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (g *Guard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.Ordered.ReuseForWrite(old, name, c)
	return g.log(name, f, err)
}

// OpenDir implements vfs.FS.
func (g *Guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.Ordered.OpenDir(name)
	if err != nil || name != g.store {
		return f, err
	}
	return &guardDir{File: f, fs: g, name: name}, nil
}

// guardFile is a write-ahead log. It is extended in steps, ahead of the writes: a sync
// that also has to write a new length takes half as long again. The space after the
// last record reads as zeros, as in any log that is reused.
type guardFile struct {
	vfs.File
	fs     *Guard
	name   string
	at     int64 // where the next write goes
	length int64 // of the file; -1: it is not extended in advance
}

// zeros is one step by which a log is extended.
var zeros [256 << 10]byte

func newGuardFile(f vfs.File, fs *Guard, name string) *guardFile {
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

// reach extends the file to at least end.
func (f *guardFile) reach(end int64) {
	for f.length >= 0 && f.length < end {
		if extend(f.File, f.length, zeros[:]) != nil {
			f.length = -1 // go on without; if the disk fails, the write returns the error
			return
		}
		f.length += int64(len(zeros))
	}
}

func (f *guardFile) Sync() error     { return f.fs.trip(f.File.Sync(), "syncing", f.name) }
func (f *guardFile) SyncData() error { return f.fs.trip(f.File.SyncData(), "syncing", f.name) }
func (f *guardFile) Close() error    { return f.fs.trip(f.File.Close(), "closing", f.name) }

// guardDir is a folder. If a sync of it failed, Pebble would panic, whatever it is doing.
type guardDir struct {
	vfs.File
	fs   *Guard
	name string
}

func (f *guardDir) Sync() error {
	err := f.File.Sync()
	if err == nil {
		return nil
	}
	f.fs.report(fmt.Errorf("syncing folder %s: %w", f.name, err))
	select {} // never return: the process must end
}
