package datadir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// SEAL is written after a clean close has flushed, and removed before the next
// open writes. It lists all files of the store with their sizes, and those in
// which Pebble would not notice damage also with a checksum.
const SealFile = "SEAL"

const sealTitle = "parley journal seal 1"

// Seal is the content of SEAL.
type Seal struct {
	Epoch  uint64
	Offset uint64
	files  []sealedFile
}

type sealedFile struct {
	name string
	size int64
	sum  string // in hex, or "-" for a file that has checksums of its own or is not used
}

// MakeSeal returns the seal of a store that is not open.
func MakeSeal(fs vfs.FS, store string, epoch, offset uint64) (Seal, error) {
	s := Seal{Epoch: epoch, Offset: offset}
	names, err := fs.List(store)
	if err != nil {
		return s, err
	}
	slices.Sort(names)
	lastLog := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			lastLog = name // numbers have six digits or more: see below
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") && len(name) > len(lastLog) {
			lastLog = name
		}
	}
	for _, name := range names {
		f, err := sealOne(fs, store, name, lastLog)
		if err != nil {
			return s, err
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

func sealOne(fs vfs.FS, store, name, lastLog string) (sealedFile, error) {
	path := fs.PathJoin(store, name)
	info, err := fs.Stat(path)
	if err != nil {
		return sealedFile{}, err
	}
	f := sealedFile{name: name, size: info.Size(), sum: "-"}
	oldLog := strings.HasSuffix(name, ".log") && name != lastLog // flushed: never read again
	if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") || oldLog || info.IsDir() {
		return f, nil
	}
	f.sum, err = SumFile(fs, path)
	return f, err
}

// SumFile returns the checksum of a file, in hex.
func SumFile(fs vfs.FS, path string) (string, error) {
	f, err := fs.Open(path)
	if err != nil {
		return "", err
	}
	sum := crc32.New(layout.Castagnoli)
	_, err = io.Copy(sum, f)
	return fmt.Sprintf("%08x", sum.Sum32()), errors.Join(err, f.Close())
}

func (s Seal) Encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nepoch %d\noffset %d\n", sealTitle, s.Epoch, s.Offset)
	for _, f := range s.files {
		fmt.Fprintf(&b, "file %s %d %s\n", f.name, f.size, f.sum)
	}
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum([]byte(b.String()), layout.Castagnoli))
	return []byte(b.String())
}

func decodeSeal(data []byte) (Seal, error) {
	var s Seal
	text := string(data)
	at := strings.LastIndex(text, "sum ")
	if at < 0 || text[at:] != fmt.Sprintf("sum %08x\n", crc32.Checksum(data[:at], layout.Castagnoli)) {
		return s, layout.ErrSum
	}
	lines := strings.Split(strings.TrimSuffix(text[:at], "\n"), "\n")
	if len(lines) < 3 || lines[0] != sealTitle {
		return s, layout.ErrForm
	}
	if _, err := fmt.Sscanf(lines[1]+"\n"+lines[2], "epoch %d\noffset %d", &s.Epoch, &s.Offset); err != nil {
		return s, layout.ErrForm
	}
	for _, line := range lines[3:] {
		var f sealedFile
		if _, err := fmt.Sscanf(line, "file %s %d %s", &f.name, &f.size, &f.sum); err != nil {
			return s, layout.ErrForm
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// ReadSeal returns the seal of a folder, or nil if there is none.
func ReadSeal(fs vfs.FS, dir string) (*Seal, error) {
	path := fs.PathJoin(dir, SealFile)
	if !storefs.Exists(fs, path) {
		return nil, nil
	}
	data, err := storefs.ReadFile(fs, path)
	if err != nil {
		return nil, layout.Damaged(err, "%s", SealFile)
	}
	s, err := decodeSeal(data)
	if err != nil {
		return nil, layout.Damaged(err, "%s", SealFile)
	}
	return &s, nil
}

// Verify compares the store with the seal. The error names every file that differs.
func (s *Seal) Verify(fs vfs.FS, store string) error {
	var all []error
	listed := map[string]bool{}
	for _, f := range s.files {
		listed[f.name] = true
		path := fs.PathJoin(store, f.name)
		info, err := fs.Stat(path)
		switch {
		case err != nil:
			all = append(all, layout.Damaged(err, "%s", f.name))
			continue
		case info.Size() != f.size:
			all = append(all, layout.Damaged(fmt.Errorf("it has %d bytes, %s says %d", info.Size(), SealFile, f.size), "%s", f.name))
			continue
		case f.sum == "-":
			continue
		}
		sum, err := SumFile(fs, path)
		if err == nil && sum != f.sum {
			err = layout.ErrSum
		}
		if err != nil {
			all = append(all, layout.Damaged(err, "%s", f.name))
		}
	}
	names, err := fs.List(store)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !listed[name] {
			all = append(all, layout.Damaged(errors.New("it was not there when the store was closed"), "%s", name))
		}
	}
	return errors.Join(all...)
}
