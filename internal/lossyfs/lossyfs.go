//go:build fuse

// Package lossyfs is a file system in memory, mounted with FUSE, for processes
// whose machine loses its power: what they did not sync is then gone. Names and
// renames are kept, as by a file system that journals them; a file that was never
// synced, nor its folder since, is empty, or not there.
package lossyfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// FS is a mounted file system.
type FS struct {
	server *fuse.Server
	root   *folder

	mu     sync.Mutex // of all files
	opened uint64     // counts files that were opened
}

// Mount mounts an empty file system on a folder.
func Mount(dir string) (*FS, error) {
	f := &FS{}
	f.root = &folder{all: f}
	var none time.Duration // whatever the kernel remembers may be gone
	server, err := fs.Mount(dir, f.root, &fs.Options{
		EntryTimeout: &none, AttrTimeout: &none, NegativeTimeout: &none,
		MountOptions: fuse.MountOptions{FsName: "lossyfs", Name: "lossyfs", DirectMount: true},
	})
	if err != nil {
		return nil, fmt.Errorf("a file system cannot be mounted: this test needs /dev/fuse, and root or fusermount3: %w", err)
	}
	f.server = server
	return f, nil
}

// Close unmounts it. Nobody may use it any more.
func (f *FS) Close() error { return f.server.Unmount() }

// CutPower drops what was not synced from the top folders of these names, whose
// processes have ended, and reports how many bytes it dropped. Files that were
// opened before cannot be used any more.
func (f *FS) CutPower(rng *rand.Rand, names ...string) (lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if child := f.root.GetChild(name); child != nil {
			lost += f.cut(rng, child)
		}
	}
	return lost
}

func (f *FS) cut(rng *rand.Rand, node *fs.Inode) (lost int) {
	if one, ok := node.Operations().(*file); ok {
		return one.cut(f.opened)
	}
	children := node.Children()
	names := make([]string, 0, len(children))
	for name := range children {
		names = append(names, name)
	}
	slices.Sort(names) // so that rng decides the same each time
	for _, name := range names {
		lost += f.cut(rng, children[name])
		if one, ok := children[name].Operations().(*file); ok && !one.kept && rng.IntN(2) == 0 {
			node.RmChild(name)
		}
	}
	return lost
}

// folder is a directory. Its children are those of its inode.
type folder struct {
	fs.Inode
	all *FS
}

var (
	_ fs.NodeStatfser = (*folder)(nil)
	_ fs.NodeMkdirer  = (*folder)(nil)
	_ fs.NodeCreater  = (*folder)(nil)
	_ fs.NodeUnlinker = (*folder)(nil)
	_ fs.NodeRmdirer  = (*folder)(nil)
	_ fs.NodeRenamer  = (*folder)(nil)
	_ fs.NodeFsyncer  = (*folder)(nil)
)

// Statfs reports much free space.
func (*folder) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	*out = fuse.StatfsOut{Blocks: 1 << 28, Bfree: 1 << 28, Bavail: 1 << 28, Files: 1 << 20, Ffree: 1 << 20, Bsize: 4096, Frsize: 4096, NameLen: 255}
	return fs.OK
}

// Mkdir implements fs.NodeMkdirer.
func (d *folder) Mkdir(ctx context.Context, _ string, _ uint32, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return d.NewPersistentInode(ctx, &folder{all: d.all}, fs.StableAttr{Mode: syscall.S_IFDIR}), fs.OK
}

// Create implements fs.NodeCreater.
func (d *folder) Create(ctx context.Context, _ string, flags, mode uint32, _ *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	one := &file{all: d.all, mode: mode & 0o7777, changed: time.Now()}
	return d.NewPersistentInode(ctx, one, fs.StableAttr{Mode: syscall.S_IFREG}), one.handle(flags), 0, fs.OK
}

// Unlink implements fs.NodeUnlinker.
func (*folder) Unlink(context.Context, string) syscall.Errno { return fs.OK }

// Rmdir implements fs.NodeRmdirer.
func (d *folder) Rmdir(_ context.Context, name string) syscall.Errno {
	if child := d.GetChild(name); child != nil && len(child.Children()) > 0 {
		return syscall.ENOTEMPTY
	}
	return fs.OK
}

// Rename implements fs.NodeRenamer.
func (*folder) Rename(_ context.Context, _ string, to fs.InodeEmbedder, name string, flags uint32) syscall.Errno {
	target := to.EmbeddedInode().GetChild(name)
	switch {
	case flags != 0:
		return syscall.EINVAL
	case target != nil && len(target.Children()) > 0:
		return syscall.ENOTEMPTY
	}
	return fs.OK
}

// Fsync keeps the names of new files.
func (d *folder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	for _, child := range d.Children() {
		if one, ok := child.Operations().(*file); ok {
			one.kept = true
		}
	}
	return fs.OK
}
