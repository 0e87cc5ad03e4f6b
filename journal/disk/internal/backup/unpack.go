package backup

import (
	"archive/tar"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// Unpack writes an archive to a folder, which must not exist, and makes it a
// checkpoint. An incomplete stream leaves a folder that is not a checkpoint.
func Unpack(fs vfs.FS, r io.Reader, dir string, progress Progress) error {
	if storefs.Exists(fs, dir) {
		return fmt.Errorf("backup: %s exists already", dir)
	}
	if err := storefs.MakeDir(fs, fs.PathJoin(dir, datadir.StoreDir)); err != nil {
		return err
	}
	archive := tar.NewReader(r)
	var sums strings.Builder
	var held []byte // CHECKPOINT, written last: a folder without it is not restored
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
		if header.Name == CheckpointFile {
			held, err = io.ReadAll(io.LimitReader(body, 1<<10))
		} else {
			err = unpackFile(fs, fs.PathJoin(dir, header.Name), body)
		}
		if err != nil {
			return fmt.Errorf("backup: %s: %w", header.Name, err)
		}
		done += header.Size
		progress.Tell(header.Name, done, 0)
		sums.WriteString(sumsLine(hex.EncodeToString(sum.Sum(nil)), header.Size, header.Name))
	}
	want, err := io.ReadAll(io.LimitReader(archive, 64<<20))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) { // another archive may follow
		return errors.New("backup: the stream does not end with its list of checksums")
	}
	if string(want) != sums.String() {
		return errors.New("backup: the stream is damaged: checksums do not match")
	}
	if err := storefs.SyncDir(fs, fs.PathJoin(dir, datadir.StoreDir)); err != nil {
		return err
	}
	if err := storefs.WriteFile(fs, dir, sumsFile, want); err != nil {
		return err
	}
	return storefs.WriteFile(fs, dir, CheckpointFile, held)
}

// archived reports whether a backup may have a file of this name.
func archived(name string) bool {
	if name == datadir.FormatFile || name == CheckpointFile {
		return true
	}
	base, ok := strings.CutPrefix(name, datadir.StoreDir+"/")
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
