package disk

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// A backup travels as a tar archive of a checkpoint. Its last entry is SUMS,
// which lists the other entries' checksums, so that a stream that was cut or
// damaged is never taken for a whole one.

// backupPrefix names the checkpoints that backups are made from.
const backupPrefix = "backup-"

// removeBackups removes what a process left that was killed during a backup.
func removeBackups(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, backupPrefix) {
			if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Backup writes an archive of a live engine to w. The checkpoint it is made
// from lives in the data folder meanwhile. It returns the position that the
// backup holds.
func (e *Engine) Backup(ctx context.Context, w io.Writer, progress Progress) (at journal.StorePosition, err error) {
	fs := e.opts.FS
	dir := fs.PathJoin(e.dir, fmt.Sprintf("%s%d", backupPrefix, e.backups.Add(1)))
	at, err = e.checkpoint(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(dir)) }()
	return at, writeArchive(ctx, fs, dir, w, progress)
}

func writeArchive(ctx context.Context, fs vfs.FS, dir string, w io.Writer, progress Progress) error {
	names, total, err := archiveFiles(fs, dir)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	var sums strings.Builder
	done := int64(0)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sum := crc32.New(layout.Castagnoli)
		size, err := writeEntry(archive, fs, dir, name, sum)
		if err != nil {
			return fmt.Errorf("backup of %s: %w", name, err)
		}
		sums.WriteString(sumsLine(hex.EncodeToString(sum.Sum(nil)), size, name))
		done += size
		progress.tell(name, done, total)
	}
	header := &tar.Header{Name: sumsFile, Mode: 0o600, Size: int64(sums.Len()), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.WriteString(archive, sums.String()); err != nil {
		return err
	}
	return archive.Close()
}

// archiveFiles lists the files of a checkpoint.
func archiveFiles(fs vfs.FS, dir string) (names []string, total int64, err error) {
	for _, folder := range []string{"", storeDir} {
		list, err := fs.List(fs.PathJoin(dir, folder))
		if err != nil {
			return nil, 0, err
		}
		slices.Sort(list)
		for _, name := range list {
			info, err := fs.Stat(fs.PathJoin(dir, folder, name))
			if err != nil {
				return nil, 0, err
			}
			if !info.IsDir() {
				names = append(names, path.Join(folder, name))
				total += info.Size()
			}
		}
	}
	return names, total, nil
}

func writeEntry(archive *tar.Writer, fs vfs.FS, dir, name string, sum hash.Hash) (int64, error) {
	file := fs.PathJoin(dir, name)
	info, err := fs.Stat(file)
	if err != nil {
		return 0, err
	}
	f, err := fs.Open(file)
	if err != nil {
		return 0, err
	}
	header := &tar.Header{Name: name, Mode: 0o600, Size: info.Size(), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	n, err := io.Copy(io.MultiWriter(archive, sum), f)
	return n, errors.Join(err, f.Close())
}

// Unpack writes the archive that Backup made to a folder, which must not exist
// and then is a checkpoint that Restore takes. A stream that is not whole
// leaves a folder that Restore refuses.
func Unpack(r io.Reader, dir string, opts Options, progress Progress) error {
	fs := opts.WithDefaults().FS
	if storefs.Exists(fs, dir) {
		return fmt.Errorf("backup: %s exists already", dir)
	}
	if err := storefs.MakeDir(fs, fs.PathJoin(dir, storeDir)); err != nil {
		return err
	}
	archive := tar.NewReader(r)
	var sums strings.Builder
	var held []byte // CHECKPOINT is written last: without it nothing is restored
	done := int64(0)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("backup: the stream ended before its list of checksums")
		}
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		if header.Name == sumsFile {
			break
		}
		if !archived(header.Name) {
			return fmt.Errorf("backup: the stream has a file %q, which no backup has", header.Name)
		}
		sum := crc32.New(layout.Castagnoli)
		body := io.TeeReader(archive, sum)
		if header.Name == checkpointFile {
			held, err = io.ReadAll(io.LimitReader(body, 1<<10))
		} else {
			err = unpackFile(fs, fs.PathJoin(dir, header.Name), body)
		}
		if err != nil {
			return fmt.Errorf("backup: %s: %w", header.Name, err)
		}
		done += header.Size
		progress.tell(header.Name, done, 0)
		sums.WriteString(sumsLine(hex.EncodeToString(sum.Sum(nil)), header.Size, header.Name))
	}
	want, err := io.ReadAll(io.LimitReader(archive, 64<<20))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if string(want) != sums.String() {
		return errors.New("backup: the stream is damaged: checksums do not match")
	}
	if err := storefs.SyncDir(fs, fs.PathJoin(dir, storeDir)); err != nil {
		return err
	}
	if err := storefs.WriteFile(fs, dir, sumsFile, want); err != nil {
		return err
	}
	return storefs.WriteFile(fs, dir, checkpointFile, held)
}

// archived reports whether a backup may have a file of this name.
func archived(name string) bool {
	if name == formatFile || name == checkpointFile {
		return true
	}
	base, ok := strings.CutPrefix(name, storeDir+"/")
	return ok && base != "" && base != "." && base != ".." && !strings.ContainsAny(base, "/\\")
}

func unpackFile(fs vfs.FS, file string, body io.Reader) error {
	f, err := fs.Create(file, "journal-restore")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Sync(), f.Close())
}
