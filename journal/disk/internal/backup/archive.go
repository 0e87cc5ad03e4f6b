// Package backup defines the format of a backup: a checkpoint of a store with its
// position and the checksums of its files, as a folder or as an archive. It never
// opens a store.
package backup

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

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// A backup is sent as a tar archive of a checkpoint. Its last entry is SUMS,
// which lists the other entries' checksums, so that a stream that was cut or
// damaged is never accepted as complete.

// WriteArchive writes a checkpoint as an archive.
func WriteArchive(ctx context.Context, fs vfs.FS, dir string, w io.Writer, progress Progress) error {
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
		progress.Tell(name, done, total)
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
	for _, folder := range []string{"", datadir.StoreDir} {
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
