package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

// layeredStore returns a store with a table for each of its logs, and others for the
// rest: log i is in tables[i].
func layeredStore(t testing.TB) (img image, tables []string) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	opts := uncompacted(fs)
	before := map[string]bool{}
	for i := range 4 {
		e, err := disk.Open("/data", opts)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			commit(t, e, journal.Batch{Appends: []journal.Append{{
				Log: layer(i), Records: []journal.Record{{
					Data: fmt.Appendf(nil, "%d.%d", i, n), Put: []journal.IndexPut{{Key: fmt.Appendf(nil, "k/%d/%d", i, n)}},
					Take: []journal.Take{{Name: fmt.Sprintf("c/%d/%d", i, n)}},
				}},
			}}})
		}
		mustClose(t, e)
		tables = append(tables, newTable(t, fs, before))
	}
	return takeImage(t, fs, "/data"), tables
}

// newTable returns the last table that was not there before.
func newTable(t testing.TB, fs vfs.FS, before map[string]bool) (table string) {
	t.Helper()
	for _, name := range takeImage(t, fs, "/data").paths() {
		if strings.HasSuffix(name, ".sst") && !before[name] {
			before[name] = true
			table = name
		}
	}
	return table
}

// uncompacted returns options that keep every table as it was flushed.
func uncompacted(fs vfs.FS) disk.Options {
	return testOptions(fs).Tuned(func(p *pebble.Options) { p.DisableAutomaticCompactions = true })
}

func layer(i int) journal.LogName { return room.In("layer", fmt.Sprint(i)) }

func readLayer(e journal.Engine, i int) ([]string, error) {
	var got []string
	for entry, err := range journal.Records(ctx, e, layer(i), journal.ReadOptions{}) {
		if err != nil {
			return got, err
		}
		got = append(got, string(entry.Data))
	}
	return got, nil
}

func layerTexts(i int) []string {
	var want []string
	for n := range 5 {
		want = append(want, fmt.Sprintf("%d.%d", i, n))
	}
	return want
}

// spoil damages the first block of a table, where its keys are.
func spoil(img image, file string) image {
	data := bytes.Clone(img[file])
	data[len(data)/8] ^= 0x10
	return img.with(file, data)
}

func TestADamagedTableHidesOnlyItsLogs(t *testing.T) {
	t.Parallel()
	img, tables := layeredStore(t)
	if len(tables) < 4 {
		t.Fatalf("the store has only %d tables", len(tables))
	}
	const hit = 1
	damaged := spoil(img, tables[hit])
	fs := damaged.mount(t)

	report, err := repair.Check("/data", testOptions(fs), nil)
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(report.Problems, "\n")
	if report.OK() || !strings.Contains(problems, path.Base(tables[hit])) || report.Records != 15 || report.Logs != 3 {
		t.Errorf("the check does not name table %s, or misses what is readable: %+v", tables[hit], report)
	}

	e, err := disk.Open("/data", uncompacted(fs))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		got, err := readLayer(e, i)
		if i == hit {
			if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), path.Base(tables[hit])) {
				t.Errorf("log %d in the damaged table is read as %v, %v", i, got, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, layerTexts(i)) {
			t.Errorf("log %d beside the damaged table is read as %v, %v", i, got, err)
		}
	}
	// Damage fails the engine: reads continue, appends are refused.
	<-e.Failed()
	if _, err := e.Append(ctx, diaryEntry(1, 1)); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("an engine that found damage answers %v", err)
	}
	if got, err := readLayer(e, 3); err != nil || len(got) != 5 {
		t.Errorf("after that log 3 is read as %v, %v", got, err)
	}
	_ = e.Close()
}

func TestSalvageKeepsWhatIsReadable(t *testing.T) {
	t.Parallel()
	img, tables := layeredStore(t)
	const hit = 1
	for _, c := range []struct {
		name   string
		damage func() image
		lost   []int
	}{
		{"nothing is damaged", func() image { return img }, nil},
		{"a table", func() image { return spoil(img, tables[hit]) }, []int{hit}},
		{"a table is gone", func() image {
			less := img.with(tables[hit], nil)
			delete(less, tables[hit])
			return less
		}, []int{hit}},
		{"the MANIFEST", func() image {
			short := img
			for _, file := range img.paths() {
				if strings.HasPrefix(path.Base(file), "MANIFEST-") {
					short = short.with(file, img[file][:len(img[file])/2])
				}
			}
			return short
		}, nil},
		{"MARK and SEAL", func() image { return img.with("/data/MARK", nil).with("/data/SEAL", []byte("x")) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			damaged := c.damage()
			fs := damaged.mount(t)
			var steps int
			report, err := repair.Salvage("/data", "/new", testOptions(fs), func(string, int64, int64) { steps++ })
			if err != nil {
				t.Fatal(err)
			}
			if steps == 0 {
				t.Error("nobody was told of the progress")
			}
			if len(c.lost) > 0 && !strings.Contains(strings.Join(report.Unreadable, "\n"), strings.TrimSuffix(path.Base(tables[hit]), ".sst")) {
				t.Errorf("unreadable are %v", report.Unreadable)
			}
			opts := testOptions(fs)
			e, err := disk.Open("/new", opts)
			if err != nil {
				t.Fatal(err)
			}
			place, err := e.Place(ctx, 0)
			if err != nil || place.Epoch < 2 || place.Epoch != report.Epoch {
				t.Errorf("place %+v, %v; the report says epoch %d", place, err, report.Epoch)
			}
			index := 0
			for _, err := range journal.Index(ctx, e, 0, journal.ScanOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				index++
			}
			want := 0
			for i := range 4 {
				got, err := readLayer(e, i)
				if err != nil {
					t.Fatal(err)
				}
				claim, err := e.Claim(ctx, 0, fmt.Sprintf("c/%d/4", i))
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(c.lost, i) {
					if len(got) > 0 || claim.Durable != nil {
						t.Errorf("log %d was lost and is %v, its claim %v", i, got, claim.Durable)
					}
					lost := repair.LostPart{Log: layer(i).String(), From: 1, To: 5}
					if !slices.Contains(report.Lost, lost) && !slices.ContainsFunc(report.Lost, func(p repair.LostPart) bool {
						return strings.Contains(p.Log, "lost")
					}) && len(report.Unreadable) == 0 {
						t.Errorf("the report does not tell of log %d: %+v", i, report)
					}
					continue
				}
				want += 5
				if diff := cmp.Diff(layerTexts(i), got); diff != "" {
					t.Errorf("log %d: %s", i, diff)
				}
				if claim.Durable == nil || claim.Durable.Log != layer(i) || claim.Durable.Seq != 5 {
					t.Errorf("the claim of log %d is %v", i, claim.Durable)
				}
			}
			if index != want || report.Records != int64(want) {
				t.Errorf("%d index entries and %d records, want %d", index, report.Records, want)
			}
			commit(t, e, diaryEntry(1, 1))
			mustClose(t, e)
			check, err := repair.Check("/new", opts, nil)
			if err != nil || !check.OK() {
				t.Errorf("the new folder: %+v, %v", check, err)
			}
			for name, data := range takeImage(t, fs, "/data") {
				if was, ok := damaged[name]; ok && !bytes.Equal(was, data) && path.Base(name) != "PID" {
					t.Errorf("%s was written to", name)
				}
			}
		})
	}
}

// TestSalvageStopsALogAtAHole loses the table in the middle of a log.
func TestSalvageStopsALogAtAHole(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	var tables []string
	before := map[string]bool{}
	for i := range 3 {
		e, err := disk.Open("/data", uncompacted(fs))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			commit(t, e, diaryEntry(i*4+n+1, 1))
		}
		mustClose(t, e)
		tables = append(tables, newTable(t, fs, before))
	}
	img := takeImage(t, fs, "/data")
	damaged := spoil(img, tables[1]).mount(t)
	report, err := repair.Salvage("/data", "/new", testOptions(damaged), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := disk.Open("/new", testOptions(damaged))
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	got := readDiary(t, e)
	if len(got) != 4 || !slices.Contains(report.Lost, repair.LostPart{Log: diary.String(), From: 5, To: 12}) {
		t.Errorf("kept %v, lost %+v", got, report.Lost)
	}
	if report.Apart != 8 { // four of the diary, four of the padding
		t.Errorf("%d records are set apart", report.Apart)
	}
	apart := string(takeImage(t, damaged, "/new")["/new/APART"])
	if strings.Count(apart, "\n") != 8 || !strings.Contains(apart, `"sequence":9`) {
		t.Errorf("APART is %s", apart)
	}
	check, err := repair.Check("/data", testOptions(damaged), nil)
	want := fmt.Sprintf("records 5 to 8 of log %v are missing", diary)
	if err != nil || !strings.Contains(strings.Join(check.Problems, "\n"), want) {
		t.Errorf("the check of the damaged folder says %+v, %v", check, err)
	}
}

// TestSalvageKeepsDropsDropped salvages what crashes leave while a log is being
// removed. Nothing of the log comes back, and nothing is reported as lost.
func TestSalvageKeepsDropsDropped(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	fs := &faultFS{FS: mem, syncTime: time.Millisecond}
	e := mustOpen(t, fs)
	commit(t, e, diaryEntry(1, 1))
	for range 5 {
		dropped := journal.Append{Log: layer(1)}
		for i := range 1000 {
			dropped.Records = append(dropped.Records, journal.Record{Data: fmt.Appendf(nil, "dropped %d", i)})
		}
		commit(t, e, journal.Batch{Appends: []journal.Append{dropped}})
	}
	ticket, err := e.Drop(ctx, layer(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	crashed := []*vfs.MemFS{mem.CrashClone(vfs.CrashCloneCfg{})}
	for e.Stats().Removals > 0 && len(crashed) < 5 {
		for syncs := fs.syncs.Load(); e.Stats().Removals > 0 && fs.syncs.Load() < syncs+2; {
			runtime.Gosched()
		}
		crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{}))
	}
	mustClose(t, e)
	if len(crashed) < 3 {
		t.Fatalf("the removal went by in %d pictures", len(crashed))
	}
	for i, fs := range crashed {
		report, err := repair.Salvage("/data", "/new", testOptions(fs), nil)
		if err != nil {
			t.Fatal(err)
		}
		// A crash may leave a torn end of a log, in which nothing is lost.
		want := &repair.SalvageReport{Epoch: report.Epoch, Logs: 2, Records: 2, Unreadable: report.Unreadable}
		if diff := cmp.Diff(want, report); diff != "" {
			t.Errorf("picture %d (-want +got):\n%s", i, diff)
		}
		for file, data := range takeImage(t, fs, "/new") {
			if bytes.Contains(data, []byte("dropped 9")) {
				t.Errorf("picture %d: %s has records that were dropped", i, file)
			}
		}
		check, err := repair.Check("/new", testOptions(fs), nil)
		if err != nil || !check.OK() {
			t.Errorf("picture %d: the new folder: %+v, %v", i, check, err)
		}
		e, err := disk.Open("/new", testOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		if head, err := e.Head(ctx, layer(1)); err != nil || head.Durable.Exists() {
			t.Errorf("picture %d: the dropped log has head %+v, %v", i, head, err)
		}
		commit(t, e, journal.Batch{Appends: []journal.Append{{Log: layer(1), Records: []journal.Record{{Data: []byte("anew")}}}}})
		if got, err := readLayer(e, 1); err != nil || !slices.Equal(got, []string{"anew"}) {
			t.Errorf("picture %d: created anew, the log is %q, %v", i, got, err)
		}
		mustClose(t, e)
	}
}
