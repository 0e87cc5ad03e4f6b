package cluster

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// A backup of a cluster is sent as a sequence of tar archives: the first has the
// number of shards, then there is one for each shard, as the disk engine writes it.
// Unpacked, it is the folders that Folder names, and a file with the number of shards,
// which is written last.
const (
	backupFile   = "CLUSTER"
	backupFolder = "backup" // of the checkpoints, while they are sent
)

// holdTimeout bounds how long the shards wait for each other, so that all checkpoints
// are of one moment.
const holdTimeout = 10 * time.Second

// Backup writes a backup of all shards at one moment, while the node continues to
// work. Only one backup may run at a time.
func (e *Engine) Backup(ctx context.Context, w io.Writer) (err error) {
	fs, dir := e.opts.Disk.FS, e.backupDir()
	if err := fs.RemoveAll(dir); err != nil {
		return err
	}
	holding, cancel := context.WithTimeout(ctx, holdTimeout)
	_, err = e.checkpoint(holding, dir)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(dir)) }()
	number := shardsText(len(e.shards))
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{Name: backupFile, Mode: 0o600, Size: int64(len(number)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := archive.Write(number); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	for _, s := range e.shards {
		if err := s.store().WriteCheckpoint(ctx, Folder(e.opts.Disk, dir, s.n), w); err != nil {
			return fmt.Errorf("shard %d: %w", s.n, err)
		}
	}
	return nil
}

// backupDir returns the folder of the checkpoints while they are sent. A killed process
// may have left some there.
func (e *Engine) backupDir() string {
	return e.opts.Disk.FS.PathJoin(e.opts.Dir, "cluster", backupFolder)
}

func shardsText(n int) []byte { return []byte(strconv.Itoa(n) + "\n") }

// Unpack writes a backup of a cluster, or of a single store, to a folder, which must
// not exist. It reports whether the backup was of a cluster.
func Unpack(r io.Reader, dir string, opts disk.Options, progress func(what string, done, total int64)) (ofCluster bool, err error) {
	stream := bufio.NewReader(r)
	if head, err := stream.Peek(len(backupFile) + 1); err != nil || !bytes.Equal(head, []byte(backupFile+"\x00")) {
		return false, repair.Unpack(stream, dir, opts, progress)
	}
	fs := opts.WithDefaults().FS
	if _, err := fs.Stat(dir); err == nil {
		return true, fmt.Errorf("backup: %s exists already", dir)
	}
	first := tar.NewReader(stream)
	if _, err := first.Next(); err != nil {
		return true, fmt.Errorf("backup: %w", err)
	}
	number, err := io.ReadAll(io.LimitReader(first, 16))
	if err != nil {
		return true, fmt.Errorf("backup: %w", err)
	}
	shards, err := parseShards(number)
	if err != nil {
		return true, err
	}
	if _, err := first.Next(); !errors.Is(err, io.EOF) {
		return true, errors.New("backup: the stream is not that of a cluster")
	}
	if err := fs.MkdirAll(fs.PathDir(Folder(opts, dir, 0)), 0o700); err != nil {
		return true, err
	}
	for n := range shards {
		if err := repair.Unpack(stream, Folder(opts, dir, n), opts, progress); err != nil {
			return true, fmt.Errorf("shard %d of %d: %w", n, shards, err)
		}
	}
	return true, writeBackupFile(fs, dir, number)
}

func parseShards(number []byte) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(string(number), "\n"))
	if err != nil || n < 1 || n > maxShards {
		return 0, fmt.Errorf("backup: %q is not a number of shards", number)
	}
	return n, nil
}

func writeBackupFile(fs vfs.FS, dir string, number []byte) error {
	f, err := fs.Create(fs.PathJoin(dir, backupFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(number)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// BackupShards returns how many shards the backup in a folder has, or 0 if it is not
// the backup of a cluster.
func BackupShards(opts disk.Options, dir string) (int, error) {
	fs := opts.WithDefaults().FS
	f, err := fs.Open(fs.PathJoin(dir, backupFile))
	if err != nil {
		if _, none := fs.Stat(Folder(opts, dir, 0)); none == nil {
			return 0, fmt.Errorf("backup %s is not whole: it has no file %s; the data folder of a node is taken by parley cluster reseed", dir, backupFile)
		}
		return 0, nil
	}
	number, err := io.ReadAll(io.LimitReader(f, 16))
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return parseShards(number)
}
