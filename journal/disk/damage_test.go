package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// smallStore returns a store that was closed cleanly, and what is in it.
func smallStore(t testing.TB) (image, contents) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e := mustOpen(t, fs)
	populate(t, e)
	mustClose(t, e)
	e = mustOpen(t, fs)
	for e.Stats().Removals > 0 {
		commit(t, e, journal.Batch{Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: room, Name: "tick"}}}})
	}
	whole, errs := readAll(e)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	mustClose(t, e)
	return takeImage(t, fs, "/data"), whole
}

func mustOpen(t testing.TB, fs vfs.FS) *disk.Engine {
	t.Helper()
	e, err := disk.Open("/data", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testOptions(fs vfs.FS) disk.Options {
	opts := disk.Options{FS: fs, MinFree: -1, MemTableSize: 256 << 10, CacheBytes: 256 << 10}
	return opts.Tuned(withoutFigures)
}

// withoutFigures keeps Pebble from reading tables for its statistics some time after
// it was opened: whether that finds damage would depend on the machine.
func withoutFigures(p *pebble.Options) { p.DisableTableStats = true }

func mustClose(t testing.TB, e *disk.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamageAfterACleanClose flips every byte of every file, and cuts every
// file at every length; at smaller scales than 4, at a part of the places.
func TestDamageAfterACleanClose(t *testing.T) {
	t.Parallel()
	img, whole := smallStore(t)
	for _, file := range img.paths() {
		data := img[file]
		stride := 1
		switch name := path.Base(file); {
		case strings.HasSuffix(name, ".sst"), name == "MARK":
			stride = max(1, 4/scale.N(1)) // most damage here is harmless, and every case reads the whole store
		case strings.HasSuffix(name, ".log"), strings.HasPrefix(name, "OPTIONS"):
			stride = max(1, 3/scale.N(1))
		case strings.HasPrefix(name, "MANIFEST"), name == "SEAL":
			stride = max(1, 2/scale.N(1))
		}
		t.Run(strings.TrimPrefix(file, "/data/"), func(t *testing.T) {
			t.Parallel()
			for at := 0; at < len(data); at += stride {
				flipped := bytes.Clone(data)
				flipped[at] ^= 1 << (at % 8)
				checkDamaged(t, img, file, flipped, whole, fmt.Sprintf("byte %d flipped", at))
				checkDamaged(t, img, file, data[:at], whole, fmt.Sprintf("cut to %d bytes", at))
			}
		})
	}
}

func checkDamaged(t *testing.T, img image, file string, data []byte, whole contents, what string) {
	t.Helper()
	damaged := img.with(file, data)
	fs := damaged.mount(t)
	e, err := disk.Open("/data", testOptions(fs))
	if err != nil {
		if !strings.Contains(err.Error(), path.Base(file)) {
			t.Errorf("%s: %s: the error does not name the file: %v", file, what, err)
		}
		left := takeImage(t, fs, "/data")
		for _, name := range img.paths() {
			if kept, ok := left[name]; !ok {
				t.Errorf("%s: %s: %s is gone", file, what, name)
			} else if !bytes.Equal(kept, damaged[name]) && path.Base(name) != "PID" {
				t.Errorf("%s: %s: %s was changed", file, what, name)
			}
		}
		return
	}
	got, errs := readAll(e)
	for _, err := range errs {
		if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), path.Base(file)) {
			t.Errorf("%s: %s: the error does not name the file: %v", file, what, err)
		}
	}
	if len(errs) == 0 {
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("%s: %s: opened with other data (-want +got):\n%s", file, what, diff)
		}
	} else if err := got.within(whole); err != nil {
		t.Errorf("%s: %s: wrong data: %v", file, what, err)
	}
	_ = e.Close()
}

// TestRebuildingOverDamageKeepsTheIndex rebuilds the index of a store with a table
// that cannot be read. The old index stays, and the store opens.
func TestRebuildingOverDamageKeepsTheIndex(t *testing.T) {
	t.Parallel()
	img, tables := layeredStore(t)
	const hit = 0
	bad := spoil(img, tables[hit])
	fs := bad.mount(t)
	e, err := disk.Open("/data", uncompacted(fs))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.RebuildIndex(ctx); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), path.Base(tables[hit])) {
		t.Errorf("rebuilding the index: %v", err)
	}
	_ = e.Close()
	e, err = disk.Open("/data", uncompacted(takeImage(t, fs, "/data").mount(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // it has found damage
	for i := range 4 {
		if i == hit {
			continue
		}
		if got, err := readLayer(e, i); err != nil || !slices.Equal(got, layerTexts(i)) {
			t.Errorf("log %d is read as %q, %v", i, got, err)
		}
		claim, err := e.Claim(ctx, 0, fmt.Sprintf("c/%d/4", i))
		if err != nil || claim.Durable == nil {
			t.Errorf("the claim of log %d is %v, %v", i, claim.Durable, err)
		}
	}
}
