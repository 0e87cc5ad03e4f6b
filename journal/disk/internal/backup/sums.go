package backup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// SUMS lists the files of a backup with their checksums, so that a damaged file is
// never accepted: one line for each file, with sum, size and name. It is the last
// entry of an archive, and a file of a checkpoint. Backups that older versions made
// have no SUMS; only their position is checked.
const sumsFile = "SUMS"

func sumsLine(sum string, size int64, name string) string {
	return fmt.Sprintf("%s %d %s\n", sum, size, name)
}

// WriteSums adds SUMS to a checkpoint.
func WriteSums(fs vfs.FS, dir string) error {
	names, _, err := archiveFiles(fs, dir)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			return err
		}
		sum, err := datadir.SumFile(fs, path)
		if err != nil {
			return err
		}
		list.WriteString(sumsLine(sum, info.Size(), name))
	}
	return storefs.WriteFile(fs, dir, sumsFile, []byte(list.String()))
}

// HasSums reports whether a backup has SUMS; backups that older versions made have none.
func HasSums(fs vfs.FS, dir string) bool { return storefs.Exists(fs, fs.PathJoin(dir, sumsFile)) }

// VerifySums compares a checkpoint with its SUMS, if it has them. The error names
// every file that differs.
func VerifySums(fs vfs.FS, dir string, progress Progress) error {
	if !HasSums(fs, dir) {
		return nil
	}
	list, err := storefs.ReadFile(fs, fs.PathJoin(dir, sumsFile))
	if err != nil {
		return layout.Damaged(err, "%s", sumsFile)
	}
	lines := strings.SplitAfter(string(list), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	listed := map[string]bool{}
	var all []error
	for i, line := range lines {
		var sum, name string
		var size int64
		if _, err := fmt.Sscanf(line, "%s %d %s\n", &sum, &size, &name); err != nil || sumsLine(sum, size, name) != line {
			return layout.Damaged(layout.ErrForm, "line %d of %s", i+1, sumsFile)
		}
		listed[name] = true
		progress.Tell("verifying "+name, int64(i), int64(len(lines)))
		if err := verifySum(fs, fs.PathJoin(dir, name), sum, size); err != nil {
			all = append(all, layout.Damaged(err, "%s", name))
		}
	}
	names, _, err := archiveFiles(fs, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if archived(name) && !listed[name] {
			all = append(all, layout.Damaged(fmt.Errorf("%s does not list it", sumsFile), "%s", name))
		}
	}
	return errors.Join(all...)
}

func verifySum(fs vfs.FS, path, want string, size int64) error {
	info, err := fs.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() != size {
		return fmt.Errorf("it has %d bytes, %s says %d", info.Size(), sumsFile, size)
	}
	sum, err := datadir.SumFile(fs, path)
	if err == nil && sum != want {
		err = layout.ErrSum
	}
	return err
}
