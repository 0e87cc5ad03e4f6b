package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

const snapshotDir = "snapshots"

var snapshotMagic = []byte("PSN1")

// snapshots are files beside the store, one for each snapshot. They are never
// synced: a checksum detects a file that a crash has torn. The oldest files are
// removed when the total size is too large.
type snapshots struct {
	fs   vfs.FS
	dir  string
	most int64 // bytes in all

	mu    sync.Mutex
	known bool             // files and sizes were read from the folder
	files []string         // oldest first
	sizes map[string]int64 // by file
	total int64
}

func newSnapshots(fs vfs.FS, dir string, most int64) *snapshots {
	return &snapshots{fs: fs, dir: fs.PathJoin(dir, snapshotDir), most: most}
}

// snapshotFile names the file of a snapshot: digests of the partition and of
// the name. The file itself holds both.
func snapshotFile(key journal.ValueKey) string {
	name := sha256.Sum256([]byte(key.Name))
	return partitionFiles(key.Partition) + hex.EncodeToString(name[:16])
}

func partitionFiles(p journal.PartitionName) string {
	encoded, _ := p.AppendBinary(nil)
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]) + "-"
}

// learn lists the folder once; the lock is held.
func (s *snapshots) learn() error {
	if s.known {
		return nil
	}
	names, err := s.fs.List(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	type file struct {
		name string
		info vfs.FileInfo
	}
	var found []file
	for _, name := range names {
		if strings.HasSuffix(name, ".new") { // left by a crash
			_ = s.fs.Remove(s.fs.PathJoin(s.dir, name))
			continue
		}
		if info, err := s.fs.Stat(s.fs.PathJoin(s.dir, name)); err == nil {
			found = append(found, file{name, info})
		}
	}
	slices.SortFunc(found, func(a, b file) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	s.files, s.sizes, s.total = nil, map[string]int64{}, 0
	for _, f := range found {
		s.add(f.name, f.info.Size())
	}
	s.known = true
	return nil
}

func (s *snapshots) add(name string, size int64) {
	s.files = append(s.files, name)
	s.sizes[name] = size
	s.total += size
}

// remove removes a file, if there is one; the lock is held.
func (s *snapshots) remove(name string) error {
	size, ok := s.sizes[name]
	if !ok {
		return nil
	}
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	delete(s.sizes, name)
	s.files = slices.DeleteFunc(s.files, func(other string) bool { return other == name })
	s.total -= size
	return nil
}

func (s *snapshots) put(key journal.ValueKey, snap *journal.Snapshot) error {
	data := appendSnapshot(nil, key, snap)
	size := int64(len(data))
	if size > s.most {
		return &journal.BoundsError{What: "snapshot: bytes", Got: len(data), Max: int(s.most)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.learn(); err != nil {
		return err
	}
	name := snapshotFile(key)
	if err := s.remove(name); err != nil {
		return err
	}
	for s.total+size > s.most {
		if err := s.remove(s.files[0]); err != nil {
			return err
		}
	}
	if err := s.fs.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	path := s.fs.PathJoin(s.dir, name)
	f, err := s.fs.Create(path+".new", "journal-snapshot")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(path+".new", path); err != nil {
		return err
	}
	s.add(name, size)
	return nil
}

// get returns a snapshot, or nil if it does not exist or cannot be read.
func (s *snapshots) get(key journal.ValueKey) *journal.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := storefs.ReadFile(s.fs, s.fs.PathJoin(s.dir, snapshotFile(key)))
	if err != nil {
		return nil
	}
	at, snap, err := decodeSnapshot(data)
	if err != nil || at != key {
		return nil
	}
	return snap
}

func (s *snapshots) drop(key journal.ValueKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.learn(); err != nil {
		return err
	}
	return s.remove(snapshotFile(key))
}

func (s *snapshots) dropPartition(p journal.PartitionName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.learn(); err != nil {
		return err
	}
	prefix := partitionFiles(p)
	for _, name := range slices.Clone(s.files) {
		if strings.HasPrefix(name, prefix) {
			if err := s.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendSnapshot encodes a snapshot: its key, its version, its logs, its data
// and a checksum of all before it.
func appendSnapshot(b []byte, key journal.ValueKey, s *journal.Snapshot) []byte {
	b = append(b, snapshotMagic...)
	b, _ = key.Partition.AppendBinary(b)
	b = append(binary.AppendUvarint(b, uint64(len(key.Name))), key.Name...)
	b = binary.AppendUvarint(b, s.Version)
	b = binary.AppendUvarint(b, uint64(len(s.Logs)))
	for _, l := range s.Logs {
		b, _ = l.Log.AppendBinary(b)
		for _, n := range []uint64{l.At.Epoch, l.At.Incarnation, l.At.Seq} {
			b = binary.AppendUvarint(b, n)
		}
	}
	b = append(b, s.Data...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, layout.Castagnoli))
}

var errSnapshot = errors.New("not a snapshot")

// decodeSnapshot reads what appendSnapshot wrote; the data is part of b.
func decodeSnapshot(b []byte) (key journal.ValueKey, s *journal.Snapshot, err error) {
	end := len(b) - 4
	if end < 0 || !bytes.HasPrefix(b, snapshotMagic) ||
		binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], layout.Castagnoli) {
		return key, nil, errSnapshot
	}
	b = b[len(snapshotMagic):end]
	if key.Partition, b, err = journal.CutPartitionName(b); err != nil {
		return key, nil, err
	}
	number := func() uint64 {
		n, used := binary.Uvarint(b)
		if used <= 0 {
			err = errSnapshot
			return 0
		}
		b = b[used:]
		return n
	}
	if n := number(); err == nil && n <= uint64(len(b)) {
		key.Name, b = string(b[:n]), b[n:]
	} else {
		return key, nil, errSnapshot
	}
	s = &journal.Snapshot{Version: number()}
	for n := number(); err == nil && n > 0; n-- {
		var l journal.LogPosition
		if l.Log, b, err = journal.CutLogName(b); err != nil {
			return key, nil, err
		}
		l.At = journal.Position{Epoch: number(), Incarnation: number(), Seq: number()}
		s.Logs = append(s.Logs, l)
	}
	s.Data = b
	return key, s, err
}

// PutSnapshot implements journal.Engine.
func (e *Engine) PutSnapshot(ctx context.Context, key journal.ValueKey, s journal.Snapshot) error {
	if err := s.Validate(key); err != nil {
		return err
	}
	v, err := e.enter(ctx, e.shard)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := e.refused(); err != nil {
		return err
	}
	if err := e.snapshots.put(key, &s); err != nil {
		return fmt.Errorf("storing snapshot %q of %v: %w", key.Name, key.Partition, err)
	}
	return nil
}

// Snapshot implements journal.Engine.
func (e *Engine) Snapshot(ctx context.Context, key journal.ValueKey, version uint64) (*journal.Snapshot, error) {
	if err := key.Partition.Validate(); err != nil {
		return nil, err
	}
	v, err := e.enter(ctx, e.shard)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	s := e.snapshots.get(key)
	if s == nil || s.Version != version {
		return nil, nil
	}
	if fits, err := s.Fits(ctx, e.Head); err != nil || !fits {
		return nil, err
	}
	return s, nil
}

// DropSnapshot implements journal.Engine.
func (e *Engine) DropSnapshot(ctx context.Context, key journal.ValueKey) error {
	if err := key.Partition.Validate(); err != nil {
		return err
	}
	v, err := e.enter(ctx, e.shard)
	if err != nil {
		return err
	}
	defer v.leave()
	return e.snapshots.drop(key)
}

// dropSnapshots removes the snapshots of a partition.
func (e *Engine) dropSnapshots(ctx context.Context, p journal.PartitionName) error {
	v, err := e.enter(ctx, e.shard)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := e.refusedDrop(); err != nil {
		return err
	}
	return e.snapshots.dropPartition(p)
}
