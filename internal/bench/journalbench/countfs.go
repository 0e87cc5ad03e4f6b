package journalbench

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countFS counts syncs of write-ahead logs and reads of tables.
type countFS struct {
	vfs.FS
	syncs atomic.Int64
	reads atomic.Int64
}

func newCountFS() *countFS { return &countFS{FS: vfs.Default} }

func (c *countFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(name, ".log"):
		return &countFile{File: f, fs: c}, nil
	case strings.HasSuffix(name, ".sst"):
		return &countTable{File: f, fs: c}, nil
	}
	return f, nil
}

func (c *countFS) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, k)
	return c.wrap(name, f, err)
}

func (c *countFS) ReuseForWrite(old, name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.ReuseForWrite(old, name, k)
	return c.wrap(name, f, err)
}

func (c *countFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	return c.wrap(name, f, err)
}

type countFile struct {
	vfs.File
	fs *countFS
}

func (f *countFile) Sync() error {
	f.fs.syncs.Add(1)
	return f.File.Sync()
}

func (f *countFile) SyncData() error {
	f.fs.syncs.Add(1)
	return f.File.SyncData()
}

type countTable struct {
	vfs.File
	fs *countFS
}

func (f *countTable) ReadAt(b []byte, at int64) (int, error) {
	f.fs.reads.Add(1)
	return f.File.ReadAt(b, at)
}
