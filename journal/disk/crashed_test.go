package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

var diary = room.In("history", "diary")

// diaryEntry returns a batch with a numbered record, and another record of length pad.
func diaryEntry(i, pad int) journal.Batch {
	return journal.Batch{Appends: []journal.Append{
		{Log: diary, Records: []journal.Record{{Data: fmt.Appendf(nil, "entry %d", i)}}},
		{Log: room.In("history", "padding"), Records: []journal.Record{{Data: bytes.Repeat([]byte{'x'}, pad)}}},
	}}
}

// waitForMark waits until MARK has reached an offset.
func waitForMark(t testing.TB, fs vfs.FS, e *disk.Engine, offset uint64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); disk.MarkedOffset(fs, "/data") < offset; runtime.Gosched() {
		e.MarkSoon()
		if time.Now().After(deadline) {
			t.Fatal("MARK is not written")
		}
	}
}

// crashedStore returns a store that lost its power after it had synced all of
// its entries, with a MARK that is in the middle of them.
func crashedStore(t testing.TB, marked, all, pad int) image {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	for i := 1; i <= all; i++ {
		ticket := commit(t, e, diaryEntry(i, pad))
		if i == marked {
			waitForMark(t, fs, e, ticket.Offset())
		}
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, e)
	if disk.MarkedOffset(crashed, "/data") != uint64(marked) {
		t.Fatalf("MARK is at %d, want %d", disk.MarkedOffset(crashed, "/data"), marked)
	}
	return takeImage(t, crashed, "/data")
}

func readDiary(t testing.TB, e journal.Engine) []string {
	t.Helper()
	var got []string
	for entry, err := range journal.Records(ctx, e, diary, journal.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(entry.Data))
	}
	return got
}

// TestDamageAfterACrash flips bits and cuts the end of the log that a crash
// left. Data up to MARK is never lost silently; damaged data after MARK is cut
// off, and the cut is reported.
func TestDamageAfterACrash(t *testing.T) {
	t.Parallel()
	t.Run("a log that grew", func(t *testing.T) { testDamageAfterACrash(t, 0) })
	t.Run("a log made longer ahead", func(t *testing.T) { testDamageAfterACrash(t, 2000) })
}

func testDamageAfterACrash(t *testing.T, ahead int) {
	t.Parallel()
	const marked, all, pad = 8, 16, 10
	img := crashedStore(t, marked, all, pad)
	file := ""
	for _, name := range img.paths() {
		if strings.HasSuffix(name, ".log") && len(img[name]) > 0 {
			file = name
		}
	}
	data := append(img[file], make([]byte, ahead)...)
	var refused, cut, harmless int
	check := func(what string, damaged []byte) {
		fs := img.with(file, damaged).mount(t)
		e, err := disk.Open("/data", testOptions(fs))
		if err != nil {
			refused++
			if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), path.Base(file)) {
				t.Errorf("%s: the error does not name the file: %v", what, err)
			}
			return
		}
		defer e.Close() //nolint:errcheck // on a file system in memory
		got := readDiary(t, e)
		if len(got) < marked {
			t.Errorf("%s: opened with %d entries, MARK says %d", what, len(got), marked)
		}
		for i, text := range got {
			if text != fmt.Sprintf("entry %d", i+1) {
				t.Errorf("%s: entry %d is %q", what, i+1, text)
			}
		}
		found := e.Recovery()
		switch {
		case len(got) == all:
			harmless++
		case len(found.Cuts) == 1 && found.Cuts[0].File == path.Base(file):
			cut++
			c := found.Cuts[0]
			if c.Bytes <= 0 || c.Offset+c.Bytes > int64(len(damaged)) {
				t.Errorf("%s: the cut is %+v", what, c)
			}
		case len(damaged) < len(data):
			cut++ // no damaged bytes are left to report
		default:
			t.Errorf("%s: %d of %d entries, and the cuts are %v", what, len(got), all, found.Cuts)
		}
	}
	stride := max(1, 12/scale.N(1))
	for at := 0; at < len(data); at += stride {
		flipped := bytes.Clone(data)
		flipped[at] ^= 1 << (at % 8)
		check(fmt.Sprintf("byte %d flipped", at), flipped)
		check(fmt.Sprintf("cut to %d bytes", at), data[:at])
	}
	if refused == 0 || cut == 0 {
		t.Errorf("%d refused, %d cut off, %d harmless: each should happen", refused, cut, harmless)
	}
	e, err := disk.Open("/data", testOptions(img.with(file, data).mount(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // on a file system in memory
	if got, found := readDiary(t, e), e.Recovery(); len(got) != all || len(found.Cuts) > 0 {
		t.Errorf("without damage: %d of %d entries, and the cuts are %v", len(got), all, found.Cuts)
	}
}

// TestCutWithProof damages the middle of a long log: later parts of the log prove
// that the unreadable part had been synced, so its positions must not be reused.
func TestCutWithProof(t *testing.T) {
	t.Parallel()
	const marked, all, pad = 2, 12, 8 << 10
	img := crashedStore(t, marked, all, pad)
	for _, file := range img.paths() {
		if !strings.HasSuffix(file, ".log") || len(img[file]) < 40<<10 {
			continue
		}
		damaged := bytes.Clone(img[file])
		damaged[20<<10] ^= 4
		fs := img.with(file, damaged).mount(t)
		e := mustOpen(t, fs)
		found := e.Recovery()
		got := readDiary(t, e)
		place, err := e.Place(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < marked || len(got) >= all || !found.Lost || len(found.Cuts) != 1 || place.Epoch != 2 {
			t.Errorf("%d of %d entries, recovery %+v, epoch %d", len(got), all, found, place.Epoch)
		}
		mustClose(t, e)
		kept := 0
		for name, data := range takeImage(t, fs, "/data") {
			if strings.HasPrefix(path.Base(name), "CUT-") {
				kept++
				if !bytes.Contains(damaged, data) || int64(len(data)) != found.Cuts[0].Bytes {
					t.Error("what was cut off is not what was there")
				}
			}
		}
		if kept != 1 {
			t.Errorf("%d files keep what was cut off", kept)
		}
		return
	}
	t.Fatal("no log is long enough")
}

// TestLossIsAcceptedOnlyWhenAsked opens a store that ends before its MARK.
func TestLossIsAcceptedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	img := crashedStore(t, 5, 5, 10)
	for _, file := range img.paths() {
		if strings.HasSuffix(file, ".log") && len(img[file]) > 0 {
			img = img.with(file, img[file][:len(img[file])/2])
		}
	}
	fs := img.mount(t)
	if _, err := disk.Open("/data", testOptions(fs)); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("got %v, want damage", err)
	}
	opts := testOptions(fs)
	opts.AcceptLoss = true
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	place, err := e.Place(ctx, 0)
	if err != nil || place.Epoch != 2 || !e.Recovery().Lost {
		t.Errorf("place %+v, recovery %+v, %v", place, e.Recovery(), err)
	}
	before := readDiary(t, e)
	mustClose(t, e)
	e = mustOpen(t, fs)
	defer mustClose(t, e)
	if diff := cmp.Diff(before, readDiary(t, e)); diff != "" || len(before) >= 5 {
		t.Errorf("%d entries; %s", len(before), diff)
	}
}

// TestADamagedManifestAfterACrash: Pebble treats damage in its MANIFEST as its end,
// and would lose tables that were added later.
func TestADamagedManifestAfterACrash(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	for i := 1; i <= 3; i++ {
		commit(t, e, diaryEntry(i, 10))
	}
	if err := e.FlushStore(); err != nil {
		t.Fatal(err)
	}
	for i := 4; i <= 6; i++ {
		commit(t, e, diaryEntry(i, 10))
	}
	img := takeImage(t, fs.CrashClone(vfs.CrashCloneCfg{}), "/data")
	mustClose(t, e)
	// The log with the contents of the table has been reused or removed.
	var logs []string
	manifest := ""
	for _, file := range img.paths() {
		switch {
		case strings.HasSuffix(file, ".log"):
			logs = append(logs, file)
		case strings.HasPrefix(path.Base(file), "MANIFEST-"):
			manifest = file
		}
	}
	for _, file := range logs[:len(logs)-1] {
		delete(img, file)
	}
	refused := 0
	for at := range img[manifest] {
		damaged := bytes.Clone(img[manifest])
		damaged[at] ^= 1 << (at % 8)
		again := img.with(manifest, damaged)
		left := again.mount(t)
		e, err := disk.Open("/data", testOptions(left))
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), path.Base(manifest)) {
				t.Errorf("byte %d: the error does not name the file: %v", at, err)
			}
			for name := range again {
				if _, kept := takeImage(t, left, "/data")[name]; !kept {
					t.Errorf("byte %d: %s is gone", at, name)
				}
			}
			continue
		}
		if got := readDiary(t, e); len(got) != 6 {
			t.Errorf("byte %d: opened with %d of 6 entries", at, len(got))
		}
		_ = e.Close()
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}
