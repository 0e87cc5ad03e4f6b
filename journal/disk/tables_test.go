package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// oneTable returns a store whose records are all in one table of many blocks.
func oneTable(t testing.TB, tune func(*pebble.Options)) (img image, table string, logs, records int) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	e, err := disk.Open("/data", testOptions(fs).Tuned(tune))
	if err != nil {
		t.Fatal(err)
	}
	logs, records = 3, 60
	for n := range records {
		for i := range logs {
			commit(t, e, journal.Batch{Appends: []journal.Append{{
				Log: layer(i), Records: []journal.Record{{
					Data: bytes.Repeat(fmt.Appendf(nil, "%d.%d ", i, n), 300),
					Put:  []journal.IndexPut{{Key: fmt.Appendf(nil, "k/%d/%d", i, n)}},
				}},
			}}})
		}
	}
	if err := errors.Join(e.FlushStore(), e.CompactStore()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	img = takeImage(t, fs, "/data")
	for _, name := range img.paths() {
		if strings.HasSuffix(name, ".sst") && len(img[name]) > len(img[table]) {
			table = name
		}
	}
	return img, table, logs, records
}

// TestDamageInOneTableHidesOnlyItsBlocks flips a bit, or a range, at every place in
// turn: what is not in the damaged blocks is verified and salvaged, and the errors name
// the damaged blocks.
func TestDamageInOneTableHidesOnlyItsBlocks(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*pebble.Options){
		"one index": func(*pebble.Options) {},
		"an index of indices": func(p *pebble.Options) {
			for i := range p.Levels {
				p.Levels[i].IndexBlockSize, p.Levels[i].BlockSize = 64, 4<<10
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			img, table, logs, records := oneTable(t, tune)
			hideBlocks(t, img, table, int64(logs*records))
		})
	}
}

func hideBlocks(t *testing.T, img image, table string, records int64) {
	t.Helper()
	holes, step := 0, len(img[table])/(12*scale.N(1))
	for at, n := 100, 0; at < len(img[table]); at, n = at+step, n+1 {
		data := bytes.Clone(img[table])
		for i := range data[at:min(at+1+n%2*600, len(data))] {
			data[at+i] ^= 4
		}
		damaged := img.with(table, data)
		fs := damaged.mount(t)
		report, err := repair.Check("/data", testOptions(fs), nil)
		if err != nil {
			t.Fatal(err)
		}
		problems := strings.Join(report.Problems, "\n")
		if !strings.Contains(problems, path.Base(table)) {
			t.Fatalf("byte %d of %d: the table is not named: %+v", at, len(data), report)
		}
		if at > len(data)-5<<10 {
			continue // the index of the table is damaged
		}
		lost := records - report.Records
		if lost > 25 {
			t.Errorf("byte %d of %d: %+v", at, len(data), report)
		}
		if lost > 0 {
			holes++
			if !strings.Contains(problems, "of log ") || !strings.Contains(problems, "missing") {
				t.Errorf("byte %d of %d: %d records are lost and not named: %s", at, len(data), lost, problems)
			}
		}
		salvaged, err := repair.Salvage("/data", "/new", testOptions(fs), nil)
		if err != nil {
			t.Fatal(err)
		}
		if kept := salvaged.Records + salvaged.Apart; kept < report.Records-1 {
			t.Errorf("byte %d of %d: %d records verified, %d salvaged", at, len(data), report.Records, kept)
		}
	}
	if holes < 5 {
		t.Errorf("only %d holes in the records were tried", holes)
	}
}
